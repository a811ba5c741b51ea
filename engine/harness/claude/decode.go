package claude

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// The bounds of what a decoder remembers.
const (
	maxBlocks = 512 // of one API message
	maxQueued = 64
)

// state is what a decoder carries from one record to the next.
type state struct {
	// Message is the API message that the last assistant record belongs to,
	// Blocks what it has said, Usage its largest token counts.
	Message string   `json:"message,omitempty"`
	Blocks  []string `json:"blocks,omitempty"`
	Usage   usage    `json:"usage,omitzero"`
	// Queued are prompts typed while the agent was busy, of which no record
	// of their delivery has come yet.
	Queued []queued `json:"queued,omitempty"`
	// Last is the uuid of the last record, for the titles that name one.
	Last string `json:"last,omitempty"`
	// Titled is the rank of the source of the title.
	Titled int `json:"titled,omitempty"`
}

type queued struct {
	Text string `json:"text"`
	TS   string `json:"ts"`
}

type decoder struct {
	state
	v   harness.Value
	rec record
}

func newDecoder(saved []byte) (*decoder, error) {
	d := &decoder{}
	if len(saved) > 0 {
		if err := json.Unmarshal(saved, &d.state); err != nil {
			return nil, fmt.Errorf("read decoder state: %w", err)
		}
	}
	return d, nil
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(d.state) }

// Pending implements harness.Decoder.
func (d *decoder) Pending() bool { return len(d.Queued) > 0 }

// Flush implements harness.Decoder: a prompt that was queued and never
// delivered is still what the user said.
func (d *decoder) Flush(out *harness.Out) {
	d.deliverQueued(out)
}

func (d *decoder) deliverQueued(out *harness.Out) {
	for _, q := range d.Queued {
		out.Turns = append(out.Turns, turn.Turn{TS: q.TS, Class: turn.User, Text: q.Text, Mark: "queued"})
	}
	d.Queued = nil
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	r := &d.rec
	lenient, err := d.v.Object(unit, r.read)
	if err != nil {
		return err
	}
	out.Flagged = lenient
	d.describe(out.Meta)
	switch r.typ {
	case "user":
		d.user(out)
	case "assistant":
		d.assistant(out)
	case "system":
		d.system(out)
	case "attachment":
		if r.attachment == "queued_command" {
			d.prompt(out, "queued")
		}
	case "queue-operation":
		d.queue()
	case "summary", "ai-title", "custom-title":
		d.title(out.Meta)
	default:
		if !bookkeeping[r.typ] {
			out.Unknown = r.typ
			if r.typ == "" {
				out.Unknown = "record without a type"
			}
		}
	}
	if r.uuid != "" {
		d.Last = r.uuid
	}
	return nil
}

// describe takes what the envelope says about the session.
func (d *decoder) describe(m *session.Meta) {
	r := &d.rec
	if r.session != "" {
		own, _, _ := strings.Cut(r.session, "#")
		switch {
		case m.Kind == "subagent" || m.Kind == "warmup":
			if m.Parent == "" {
				m.Parent = own
			}
		case m.ID == "":
			m.ID = own
		}
	}
	if m.CWD == "" {
		m.CWD = r.cwd
	}
	if r.branch != "" && r.branch != "HEAD" {
		m.Branch = r.branch
	}
	if r.version != "" {
		m.Version = r.version
	}
	if r.ts != "" {
		if m.FirstTS == "" {
			m.FirstTS = r.ts
		}
		m.LastTS = max(m.LastTS, r.ts)
	}
	if m.Kind == "" {
		switch {
		case r.sessionKind == "bg":
			m.Kind = "fork"
		case r.promptSource == "sdk":
			m.Kind = "sdk"
		}
	}
}

// turn returns a turn with what the envelope gives every turn of a record.
func (d *decoder) turn(c turn.Class, text string, m *session.Meta) turn.Turn {
	r := &d.rec
	t := turn.Turn{TS: r.ts, Class: c, Text: plain.Text(text), ID: r.uuid}
	inside := m.Kind == "subagent" || m.Kind == "warmup"
	if r.sidechain && !inside {
		t.Agent = r.agent
		if t.Agent == "" {
			t.Agent = "sidechain"
		}
	}
	if !inside && r.session != "" && r.session != m.ID && uuidStem().MatchString(m.ID) {
		t.Session = r.session
	}
	return t
}

// user emits the turns of a user record: tool results one by one, and what
// was said between them.
func (d *decoder) user(out *harness.Out) {
	r := &d.rec
	var text parts
	flush := func() {
		if text.any {
			d.say(text.String(), "", out)
		}
		text = parts{}
	}
	for i := range r.content {
		b := &r.content[i]
		switch {
		case b.typ == "tool_result" || b.result:
			flush()
			d.result(b, out)
		case b.typ == "text" || b.typ == "":
			if trim(b.text) == "" {
				continue
			}
			if tag, _, after := leading(trim(b.text)); tag != "" && after == "" {
				flush()
				d.say(b.text, "", out)
				continue
			}
			text.add(b.text)
		default:
			text.add(placeholder(b.typ, ""))
		}
	}
	flush()
}

// prompt emits the content of a record that is a prompt as a whole.
func (d *decoder) prompt(out *harness.Out, mark string) {
	var text parts
	for _, b := range d.rec.content {
		switch {
		case b.typ == "text" || b.typ == "":
			if trim(b.text) != "" {
				text.add(b.text)
			}
		default:
			text.add(placeholder(b.typ, ""))
		}
	}
	if text.any {
		d.say(text.String(), mark, out)
	}
}

// say emits a text that came in the user's name.
func (d *decoder) say(text, mark string, out *harness.Out) {
	r := &d.rec
	if r.meta || r.summary {
		t := d.turn(turn.Other, text, out.Meta)
		if r.summary {
			t.Mark = "summary"
		}
		out.Turns = append(out.Turns, t)
		return
	}
	for _, s := range classify(text) {
		if s.class == turn.User && !r.sidechain {
			d.delivered(s.text, mark, out)
		}
		t := d.turn(s.class, s.text, out.Meta)
		t.Mark = s.mark
		if s.class == turn.User {
			t.Mark = mark
		}
		if out.Meta.Kind == "subagent" && s.text == "Warmup" && len(d.Last) == 0 {
			out.Meta.Kind = "warmup"
		}
		if s.mark == "summary" {
			out.Meta.Compactions++
		}
		out.Turns = append(out.Turns, t)
	}
}

// delivered forgets the queued prompt that text delivers. A prompt that is
// typed while an older one still waits shows that the older one was never
// delivered as a record; it is emitted first.
func (d *decoder) delivered(text, mark string, out *harness.Out) {
	if len(d.Queued) == 0 {
		return
	}
	kept := d.Queued[:0]
	matched := false
	for _, q := range d.Queued {
		if q.Text == text || !matched && strings.Contains(text, q.Text) {
			matched = true
			continue
		}
		kept = append(kept, q)
	}
	d.Queued = kept
	if !matched && mark == "" {
		d.deliverQueued(out)
	}
}

// queue follows the queue of prompts typed while the agent is busy. A queued
// prompt normally comes again as a user record or an attachment and must
// count once.
func (d *decoder) queue() {
	r := &d.rec
	switch r.operation {
	case "enqueue":
		var text parts
		for _, b := range r.content {
			if b.typ == "text" && trim(b.text) != "" {
				text.add(b.text)
			}
		}
		for _, s := range classify(text.String()) {
			if s.class == turn.User && len(d.Queued) < maxQueued {
				d.Queued = append(d.Queued, queued{s.text, r.ts})
			}
		}
	case "remove", "popAll":
		d.Queued = nil
	}
}

func (d *decoder) assistant(out *harness.Out) {
	r := &d.rec
	synthetic := r.model == "<synthetic>" || r.apiErr
	if !synthetic {
		d.account(out.Meta)
	}
	for i := range r.content {
		b := &r.content[i]
		if d.repeated(b) {
			continue
		}
		switch b.typ {
		case "text", "":
			if text := b.text; trim(text) != "" {
				class := turn.Agent
				if synthetic {
					class = turn.Other
				}
				out.Turns = append(out.Turns, d.turn(class, text, out.Meta))
			}
		case "thinking":
			if text := b.text; trim(text) != "" {
				out.Turns = append(out.Turns, d.turn(turn.Thought, text, out.Meta))
			}
		case "redacted_thinking":
		case "tool_use", "server_tool_use", "mcp_tool_use":
			d.call(b, out)
		default:
			if b.result {
				d.result(b, out)
			} else {
				out.Turns = append(out.Turns, d.turn(turn.Other, placeholder(b.typ, b.name), out.Meta))
			}
		}
	}
}

// textSum is an FNV-1a hash; it holds across processes.
func textSum(s string) string {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * prime
	}
	return strconv.FormatUint(h, 36)
}

// repeated reports whether a block was already said by the same API message.
// Most writers give each block a line of its own, some repeat the earlier
// blocks on each line.
func (d *decoder) repeated(b *block) bool {
	r := &d.rec
	if r.messageID == "" {
		return false
	}
	if r.messageID != d.Message {
		d.Message, d.Blocks, d.Usage = r.messageID, nil, usage{}
	}
	key := b.typ + "\x00" + b.id
	if b.id == "" {
		key = b.typ + "\x00" + textSum(b.text)
	}
	for _, k := range d.Blocks {
		if k == key {
			return true
		}
	}
	if len(d.Blocks) < maxBlocks {
		d.Blocks = append(d.Blocks, key)
	}
	return false
}

// account adds the usage of an API message once, at its largest: it repeats
// on every line of the message and grows.
func (d *decoder) account(m *session.Meta) {
	r := &d.rec
	if r.model != "" && !r.sidechain {
		m.Model = r.model
	}
	if !r.hasUsage {
		return
	}
	if r.messageID != d.Message {
		d.Message, d.Blocks, d.Usage = r.messageID, nil, usage{}
	}
	grow := func(seen *int64, now int64, total *int64) {
		if now > *seen {
			*total += now - *seen
			*seen = now
		}
	}
	grow(&d.Usage.Input, r.usage.Input, &m.Tokens.Input)
	grow(&d.Usage.Output, r.usage.Output, &m.Tokens.Output)
	grow(&d.Usage.CacheRead, r.usage.CacheRead, &m.Tokens.CacheRead)
	grow(&d.Usage.CacheWrite, r.usage.CacheWrite, &m.Tokens.CacheWrite)
	if !r.sidechain || m.Kind == "subagent" {
		m.Tokens.Context = r.usage.Input + r.usage.CacheWrite + r.usage.CacheRead
	}
}

func (d *decoder) system(out *harness.Out) {
	r := &d.rec
	var text string
	for _, b := range r.content {
		text = trim(b.text)
	}
	switch r.subtype {
	case "compact_boundary", "microcompact_boundary":
		if text == "" {
			text = "Conversation compacted"
		}
		if r.trigger != "" {
			text += " (" + r.trigger
			if r.preTokens > 0 {
				text += ", " + strconv.FormatInt(r.preTokens, 10) + " tokens before"
			}
			text += ")"
		}
		if r.subtype == "compact_boundary" {
			out.Meta.Compactions++
			out.Meta.Tokens.Context = r.postTokens
		}
	case "stop_hook_summary", "turn_duration":
		return
	default:
		if text == "" && r.errText != "" {
			text = "API error: " + r.errText
		}
	}
	if text != "" {
		out.Turns = append(out.Turns, d.turn(turn.Other, text, out.Meta))
	}
}

// The titles of a session, best last. A summary record may name a leaf of
// another file, whose title it then is.
var titleRank = map[string]int{"summary": 1, "ai-title": 2, "custom-title": 3}

func (d *decoder) title(m *session.Meta) {
	r := &d.rec
	rank := titleRank[r.typ]
	if r.title == "" || rank < d.Titled || r.typ == "summary" && (r.leaf == "" || r.leaf != d.Last) {
		return
	}
	m.Title, d.Titled = r.title, rank
}
