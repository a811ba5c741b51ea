package pi

import (
	"encoding/json"
	"fmt"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// state is what a decoder keeps between passes. It holds no turns: every line
// is decided when it is read.
type state struct {
	journal.Clock
	// Headed says that the session's header was read.
	Headed bool `json:"headed,omitempty"`
	// Origin is the session that this one continues, while all turns so far
	// are copies of its own.
	Origin string `json:"origin,omitempty"`
	// Branch are the newest entries from the root to where the session
	// stands, oldest first.
	Branch []entry `json:"branch,omitempty"`
	// Linked says that entries name their parents: not every writer does.
	Linked bool `json:"linked,omitempty"`
}

// entry is an entry of the branch: its id, and how many turns it came to.
type entry struct {
	ID    string `json:"id"`
	Turns int    `json:"n,omitempty"`
}

// maxBranch bounds the entries remembered. Going back to an older one is marked
// all the same, without a number.
const maxBranch = 1024

// decoder reads one session.
type decoder struct {
	state
	journal.Page
	env    harness.Env
	rec    record
	copied map[uint64]bool // the origin's turns, once asked for
	now    string
}

// markSummary is the mark of what stands for turns before it.
const markSummary = "summary"

func newDecoder(saved []byte, env harness.Env) (*decoder, error) {
	d := &decoder{env: env}
	return d, journal.Restore("pi", saved, &d.state)
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.rec.read, d.read)
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// read takes a record to where it stands, and returns its type if that is
// unknown.
func (d *decoder) read() (unknown string) {
	r := &d.rec
	d.clock(r)
	d.parted(r)
	before := len(d.Turns)
	unknown = d.take(r)
	d.grown(r, len(d.Turns)-before)
	return unknown
}

// take adds the turns of a record.
func (d *decoder) take(r *record) (unknown string) {
	switch r.kind {
	case "session":
		d.header(r)
	case "message":
		return d.message(r)
	case "model_change":
		if r.model != "" {
			d.Meta.Model = plain.Text(r.model)
		}
	case "compaction":
		d.compacted(r, r.summary)
	case "branch_summary":
		d.other(r, r.summary, markSummary)
	case "custom_message":
		d.other(r, said(r.content), "")
	case "session_info", "title":
		if r.name != "" {
			d.Meta.Title = plain.Text(r.name)
		}
	case "thinking_level_change", "custom", "label":
	case "":
		return "(none)"
	default:
		return plain.Clip(plain.Text(r.kind), 64)
	}
	return ""
}

// clock sets the time of the record's turns. The header's may be later than
// that of the entries, which a fork copies as they are.
func (d *decoder) clock(r *record) {
	d.Mark = d.Tick(d.Meta, r.ts)
	if d.now = d.TS; d.now != "" && d.Mark == "" && plain.Later(d.now, d.Meta.FirstTS) {
		d.Meta.FirstTS = d.now
	}
}

// parted marks an entry that does not continue the one before it: the user went
// back to an older one. What stood after that stays, in the file and here.
func (d *decoder) parted(r *record) {
	n := len(d.Branch)
	if !r.hasParent || r.kind == "session" || n == 0 {
		return
	}
	if r.parentID == d.Branch[n-1].ID {
		d.Linked = true
		return
	}
	if !d.Linked {
		return
	}
	turns, at := 0, n-1
	for at >= 0 && d.Branch[at].ID != r.parentID {
		turns += d.Branch[at].Turns
		at--
	}
	from, left := "entry "+journal.ID(r.parentID), journal.ID(d.Branch[n-1].ID)
	text := fmt.Sprintf("[branch: starts at %s; the way to %s is left]", from, left)
	switch {
	case r.parentID == "":
		text = fmt.Sprintf("[branch: starts at the beginning; the way to %s is left]", left)
	case at >= 0:
		text = fmt.Sprintf("[branch: starts at %s; the %d turns after it, up to entry %s, are left]", from, turns, left)
	}
	d.Branch = d.Branch[:at+1]
	if at >= 0 && turns == 0 {
		return // nothing that anybody said
	}
	t := turn.Turn{Class: turn.Other, TS: d.now, Mark: d.Mark, Text: text}
	if id := journal.ID(r.id); id != "" {
		t.ID = id + "#branch"
	}
	if d.Origin != "" && d.inherited(t) {
		d.Meta.Inherited++
		return
	}
	d.Add(t)
}

// grown notes where the session stands. Files of version 1 have no ids and no
// branches.
func (d *decoder) grown(r *record, turns int) {
	if r.id == "" || r.kind == "session" || len(r.id) > 128 {
		return
	}
	if len(d.Branch) >= maxBranch {
		d.Branch = append(d.Branch[:0], d.Branch[1:]...)
	}
	d.Branch = append(d.Branch, entry{r.id, turns})
}

// header takes the first line.
func (d *decoder) header(r *record) {
	if d.Headed {
		return
	}
	d.Headed = true
	m := d.Meta
	if r.id != "" {
		m.ID = plain.Text(r.id)
	}
	if m.CWD == "" {
		m.CWD = plain.Text(r.cwd)
	}
	if m.Model == "" {
		m.Model = plain.Text(r.model)
	}
	if r.name != "" {
		m.Title = plain.Text(r.name)
	}
	if r.origin != "" {
		origin := idOf(r.origin)
		if origin == "" {
			origin = r.origin
		}
		m.Kind, m.ForkedFrom = "fork", plain.Text(origin)
		d.Origin = m.ForkedFrom
	}
}

// message takes a message.
func (d *decoder) message(r *record) (unknown string) {
	m := &r.message
	switch m.role {
	case "user":
		if text := said(m.parts); text != "" {
			d.emit(r, turn.Turn{Class: turn.User, Text: text})
		}
	case "assistant":
		d.answer(r)
	case "toolResult":
		text := plain.FirstOf(said(m.parts), plain.Empty)
		d.emit(r, turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{
			Phase: turn.Result, Name: plain.Text(m.toolName), CallID: plain.Text(m.callID), Error: m.failed,
		}})
	case "bashExecution":
		// The user ran it; call and outcome are one record.
		d.emit(r, turn.Turn{Class: turn.ToolUse, Text: "$ " + m.command + "\n" + m.output, Tool: &turn.Tool{
			Phase: turn.Result, Name: "bash", Command: m.command, Exit: m.exit,
		}})
	case "branchSummary":
		d.other(r, m.text+said(m.parts), markSummary)
	case "compactionSummary":
		d.compacted(r, m.text+said(m.parts))
	case "custom", "hookMessage", "system":
		d.other(r, said(m.parts), "")
	default:
		return plain.Clip(plain.Text("message/"+m.role), 64)
	}
	return ""
}

// answer takes what the agent said, block by block.
func (d *decoder) answer(r *record) {
	m := &r.message
	failed := m.stop == "aborted" || m.stop == "error"
	for _, p := range m.parts {
		switch p.kind {
		case "thinking":
			if strings.TrimSpace(p.text) != "" {
				d.emit(r, turn.Turn{Class: turn.Thought, Text: p.text})
			}
		case "text", "image":
			if strings.TrimSpace(p.text) != "" {
				d.emit(r, turn.Turn{Class: turn.Agent, Text: p.text})
			}
		case "toolCall":
			d.call(r, p)
		}
	}
	if m.fault != "" {
		d.other(r, "["+m.stop+": "+m.fault+"]", "")
	}
	if m.model != "" {
		d.Meta.Model = plain.Text(m.model)
	}
	if !m.usage.known || d.Origin != "" {
		return
	}
	u, t := m.usage, &d.Meta.Tokens
	t.Input += u.input
	t.Output += u.output
	t.CacheRead += u.cached
	t.CacheWrite += u.written
	if u.total == 0 {
		u.total = u.input + u.output + u.cached + u.written
	}
	if !failed && u.total > 0 {
		t.Context = u.total
	}
}

// call takes the call of a tool.
func (d *decoder) call(r *record, p part) {
	name, text := plain.Call(plain.Text(p.name), p.args)
	t := &turn.Tool{Phase: turn.Call, Name: name, CallID: plain.Text(p.id)}
	switch name {
	case "bash", "shell":
		t.Command = p.command
	case "write", "edit":
		t.Edits = p.edits
	}
	d.emit(r, turn.Turn{Class: turn.ToolUse, Text: plain.Text(text), Tool: t})
}

// compacted takes the summary that stands for what was said before.
func (d *decoder) compacted(r *record, text string) {
	if strings.TrimSpace(text) == "" {
		text = "(context compacted)"
	}
	before := len(d.Turns)
	d.other(r, text, markSummary)
	d.Meta.Compactions += len(d.Turns) - before
}

// other emits an OTHER turn.
func (d *decoder) other(r *record, text, mark string) {
	if strings.TrimSpace(text) != "" {
		d.emit(r, turn.Turn{Class: turn.Other, Text: plain.Text(text), Mark: mark})
	}
}

// emit hands a turn out, unless it copies one of the session that this one
// continues. Of an entry's turns the first has its id.
func (d *decoder) emit(r *record, t turn.Turn) {
	d.Sign(&t, d.now, r.id)
	if d.Origin != "" && d.inherited(t) {
		d.Meta.Inherited++
		return
	}
	d.Add(t)
}

// inherited reports whether t copies a turn of the origin's. The first that
// does not ends the copied part.
func (d *decoder) inherited(t turn.Turn) bool {
	if d.copied == nil {
		d.copied = make(map[uint64]bool)
		if turns, ok := d.env.Lookup(d.Origin); ok {
			for c := range turns {
				d.copied[key(c)] = true
			}
		}
	}
	if d.copied[key(t)] {
		return true
	}
	d.Origin, d.copied = "", nil
	return false
}

func key(t turn.Turn) uint64 { return plain.Hash(t.TS, string(t.Class), t.Text) }
