package codex

import (
	"encoding/json"
	"fmt"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// state is what a decoder keeps between passes.
type state struct {
	// ID is the session's own id, once a header told it.
	ID string `json:"id,omitempty"`
	// TS is the time of the record before, for records without one.
	TS string `json:"ts,omitempty"`
	// Turn is the Codex turn, and Marked says that the file names its turns,
	// so that a user message need not start one.
	Turn   string `json:"turn,omitempty"`
	Marked bool   `json:"marked,omitempty"`
	Twins  twins  `json:"twins,omitzero"`
	Replay replay `json:"replay,omitzero"`
	// Calls are the latest calls, oldest first.
	Calls []called `json:"calls,omitempty"`
	// Base is the usage that the parent had; totals count it in (B19).
	Base total `json:"base,omitzero"`
	Used total `json:"used,omitzero"`
}

// total is a cumulative usage.
type total struct {
	Input  int64 `json:"i,omitempty"`
	Cached int64 `json:"c,omitempty"`
	Output int64 `json:"o,omitempty"`
}

// called is a call and what an event said of its end.
type called struct {
	Key    uint64 `json:"h"`
	Name   string `json:"n,omitempty"`
	Exit   *int   `json:"x,omitempty"`
	Failed bool   `json:"f,omitempty"`
}

// maxCalls bounds the calls remembered. Parallel calls number a few dozen.
const maxCalls = 128

// decoder reads one rollout.
type decoder struct {
	state
	env   harness.Env
	value harness.Value
	rec   record
	now   string // the time of the turns of this record, and its mark
	mark  string
	turns []turn.Turn
	meta  *session.Meta
}

func newDecoder(saved []byte, env harness.Env) (*decoder, error) {
	d := &decoder{env: env}
	if len(saved) > 0 {
		if err := json.Unmarshal(saved, &d.state); err != nil {
			return nil, fmt.Errorf("codex: %w", err)
		}
	}
	d.Twins.deliver = d.deliver
	return d, nil
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	lenient, err := d.value.Object(unit, d.rec.read)
	if err != nil {
		return err
	}
	d.turns, d.meta = d.turns[:0], out.Meta
	out.Unknown = d.take(&d.rec)
	out.Turns = append(out.Turns, d.turns...)
	out.Flagged = out.Flagged || lenient
	d.meta = nil
	return nil
}

// Pending implements harness.Decoder.
func (d *decoder) Pending() bool { return len(d.Twins.Queue) > 0 || len(d.Replay.Lead) > 0 }

// Flush implements harness.Decoder.
func (d *decoder) Flush(out *harness.Out) {
	d.turns, d.meta = d.turns[:0], out.Meta
	d.Twins.end()
	for _, t := range d.Replay.release() {
		d.emit(t)
	}
	out.Turns = append(out.Turns, d.turns...)
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// deliver takes a decided turn, which may repeat another session's.
func (d *decoder) deliver(t turn.Turn) {
	if d.Replay.Own {
		d.emit(t)
		return
	}
	own, inherited := d.Replay.take(t, d.env)
	if inherited > 0 {
		d.meta.Inherited += inherited
		d.Base = d.Used
	}
	for _, t := range own {
		d.emit(t)
	}
}

// emit hands a turn out.
func (d *decoder) emit(t turn.Turn) {
	if t.Mark == markSummary {
		d.meta.Compactions++
	}
	d.turns = append(d.turns, t)
}

// The marks that this format gives.
const (
	markSummary     = "summary"
	markApproximate = "approximate-time"
)

// take reads a record and returns its type if that is unknown.
func (d *decoder) take(r *record) (unknown string) {
	d.clock(r)
	last := d.Twins.Last
	unknown = d.dispatch(r)
	// repeated makes a new Last, so one that is the same is of a record
	// before. A record of an unknown type stands between no two events.
	if d.Twins.Last == last && unknown == "" {
		d.Twins.Last = nil
	}
	return unknown
}

func (d *decoder) dispatch(r *record) (unknown string) {
	switch {
	case r.enveloped:
	case r.kind == "" && r.recordType != "":
		return "" // {"record_type":"state"} stands between bare items
	case r.kind == "" && (r.header() || d.ID == "" && r.id != ""):
		d.header(r)
		return ""
	case r.kind == "":
		return "(none)"
	case items[r.kind]:
		return d.item(r)
	default:
		return plain.Clip(plain.Text(r.kind), 64)
	}
	switch r.kind {
	case "session_meta":
		d.header(r)
	case "turn_context":
		d.context(r)
	case "response_item":
		return d.item(r)
	case "event_msg":
		return d.event(r)
	case "compacted":
		d.Twins.item(compaction, []uint64{0}, d.summary(r.message))
	case "inter_agent_communication":
		if text := strings.TrimSpace(r.content + plain.Text(r.message)); text != "" {
			d.Twins.turns(d.other(text))
		}
	case "world_state", "inter_agent_communication_metadata", "token_usage_record":
	default:
		return plain.Clip(plain.Text(r.kind), 64)
	}
	return ""
}

// clock sets the time of the record's turns. A record without one happened
// after the one before it.
func (d *decoder) clock(r *record) {
	d.now, d.mark = r.ts, ""
	if r.ts == "" {
		if d.now = d.TS; d.now != "" {
			d.mark = markApproximate
		}
		return
	}
	d.now = plain.Text(r.ts)
	d.TS = d.now
	if d.meta.FirstTS == "" {
		d.meta.FirstTS = d.now
	}
	if plain.Later(d.meta.LastTS, d.now) {
		d.meta.LastTS = d.now
	}
}

// header takes a session's own header, or one that a resume or fork copied.
func (d *decoder) header(r *record) {
	id := r.id
	if id == "" {
		id = r.sessionID
	}
	m := d.meta
	if d.ID != "" {
		// Only the first is this file's own (formats.md 2, "Metadata").
		if id != "" && id != d.ID {
			if m.ForkedFrom == "" && m.Parent == "" {
				m.ForkedFrom = plain.Text(id)
			}
			if m.Kind == "" {
				m.Kind = "fork"
			}
			d.Replay.add(id)
		}
		return
	}
	if id != "" {
		d.ID = plain.Text(id)
		m.ID = d.ID
	}
	fill(&m.CWD, r.cwd)
	set(&m.Branch, r.branch)
	set(&m.Version, r.version)
	set(&m.Model, r.model)
	parent := r.parent
	switch {
	case r.subagent || r.threadSource == "subagent":
		m.Kind = "subagent"
		set(&m.Parent, parent)
	case r.forkedFrom != "" || parent != "":
		m.Kind = "fork"
	}
	if r.forkedFrom != "" {
		m.ForkedFrom = plain.Text(r.forkedFrom)
	} else if m.Kind == "fork" {
		m.ForkedFrom = plain.Text(parent)
	}
	d.Replay.add(parent)
	d.Replay.add(r.forkedFrom)
}

// context takes a turn_context.
func (d *decoder) context(r *record) {
	fill(&d.meta.CWD, r.cwd)
	set(&d.meta.Model, r.model)
	d.named(r.turnID)
}

// named notes the Codex turn that a record belongs to and starts it if new.
func (d *decoder) named(id string) {
	if id == "" || id == d.Turn {
		return
	}
	if strings.HasPrefix(id, "external-import-turn-") && d.meta.Kind == "" {
		// Another harness's session, imported by the desktop app (B23).
		d.meta.Kind = "import"
	}
	d.Turn, d.Marked = plain.Clip(plain.Text(id), 128), true
	d.Twins.start()
}

// tokens takes a token_count.
func (d *decoder) tokens(r *record) {
	if r.window > 0 {
		d.meta.Tokens.Window = r.window
	}
	if !r.usage.known {
		return
	}
	d.Used = total{r.usage.input, r.usage.cached, r.usage.output}
	t := &d.meta.Tokens
	// cached_input_tokens is inside input_tokens.
	t.Input = max(0, d.Used.Input-d.Base.Input-(d.Used.Cached-d.Base.Cached))
	t.CacheRead = max(0, d.Used.Cached-d.Base.Cached)
	t.Output = max(0, d.Used.Output-d.Base.Output)
	if r.usage.context > 0 {
		t.Context = r.usage.context
	}
}

// other is an OTHER turn of the current record.
func (d *decoder) other(text string) turn.Turn {
	return turn.Turn{TS: d.now, Mark: d.mark, Class: turn.Other, Text: plain.Text(text)}
}

// summary is the turn that a compaction leaves.
func (d *decoder) summary(text string) turn.Turn {
	if strings.TrimSpace(text) == "" {
		text = "(context compacted)"
	}
	return turn.Turn{TS: d.now, Mark: markSummary, Class: turn.Other, Text: plain.Text(text)}
}

// set writes s to field unless it is empty.
func set(field *string, s string) {
	if s != "" {
		*field = plain.Text(s)
	}
}

// fill writes s to field if that is empty.
func fill(field *string, s string) {
	if *field == "" {
		*field = plain.Text(s)
	}
}
