package droid

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// state is what a decoder keeps between passes. It holds no turns: every line
// is decided when it is read.
type state struct {
	// TS is the time of the record before, for records without one.
	TS string `json:"ts,omitempty"`
	// Headed says that the header was read.
	Headed bool `json:"headed,omitempty"`
	// Last and Shared are the newest message, and the newest that the model
	// saw too: one of them is the parent of what follows.
	Last   string `json:"last,omitempty"`
	Shared string `json:"shared,omitempty"`
}

// decoder reads one session.
type decoder struct {
	state
	env   harness.Env
	value harness.Value
	rec   record
	turns []turn.Turn
	meta  *session.Meta
	part  int
	mark  string
}

// The marks that this format gives.
const (
	markSummary     = "summary"
	markApproximate = "approximate-time"
)

func newDecoder(saved []byte, env harness.Env) (*decoder, error) {
	d := &decoder{env: env}
	if len(saved) > 0 {
		if err := json.Unmarshal(saved, &d.state); err != nil {
			return nil, fmt.Errorf("droid: %w", err)
		}
	}
	return d, nil
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	lenient, err := d.value.Object(unit, d.rec.read)
	if err != nil {
		return err
	}
	d.turns, d.meta, d.part = d.turns[:0], out.Meta, 0
	out.Unknown = d.take(&d.rec)
	out.Turns = append(out.Turns, d.turns...)
	out.Flagged = out.Flagged || lenient
	d.meta = nil
	return nil
}

// Pending implements harness.Decoder.
func (d *decoder) Pending() bool { return false }

// Flush implements harness.Decoder.
func (d *decoder) Flush(*harness.Out) {}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// take reads a record and returns its type if that is unknown.
func (d *decoder) take(r *record) (unknown string) {
	d.clock(r)
	if r.model != "" {
		d.meta.Model = plain.Text(r.model)
	}
	switch r.kind {
	case "session_start":
		d.header(r)
	case "message":
		return d.message(r)
	case "compaction_state":
		if strings.TrimSpace(r.summary) == "" {
			r.summary = "(context compacted)"
		}
		d.meta.Compactions++
		d.emit(r, turn.Turn{Class: turn.Other, Text: r.summary, Mark: markSummary})
	case "session_settings", "session_end", "todo_state", "agent_turn_outcome":
		d.settle()
	case "":
		return "(none)"
	default:
		return plain.Clip(plain.Text(r.kind), 64)
	}
	return ""
}

// clock sets the time of the record's turns. The header has none.
func (d *decoder) clock(r *record) {
	d.mark = ""
	ts := plain.Text(r.ts)
	if ts == "" {
		if d.TS != "" {
			d.mark = markApproximate
		}
		return
	}
	d.TS = ts
	if d.meta.FirstTS == "" {
		d.meta.FirstTS = ts
	}
	if plain.Later(d.meta.LastTS, ts) {
		d.meta.LastTS = ts
	}
}

// untitled is the title of a session that has none yet.
const untitled = "New Session"

// header takes the first line. A subagent's names the session that called it,
// a fork's the one it continues.
func (d *decoder) header(r *record) {
	if d.Headed {
		return
	}
	d.Headed = true
	m := d.meta
	if m.ID == "" {
		m.ID = plain.Text(r.id)
	}
	if m.CWD == "" {
		m.CWD = plain.Text(r.cwd)
	}
	for _, title := range []string{r.sessionTitle, r.title} {
		if title != "" && title != untitled && m.Title == "" {
			m.Title = plain.Clip(plain.Text(title), 512)
		}
	}
	switch {
	case r.caller != "":
		m.Kind, m.Parent = "subagent", plain.Text(r.caller)
	case r.origin != "":
		m.Kind, m.ForkedFrom = "fork", plain.Text(r.origin)
	}
	d.settle()
}

// settle takes what the file of settings says by now.
func (d *decoder) settle() {
	stem, ok := strings.CutSuffix(d.env.Name(), ".jsonl")
	if !ok {
		return
	}
	s := readSettings(d.env.Near(stem + ".settings.json"))
	if s.model != "" {
		d.meta.Model = s.model
	}
	if s.known {
		t := &d.meta.Tokens
		t.Input, t.Output, t.CacheRead, t.CacheWrite = s.input, s.output, s.cached, s.written
	}
}

// message takes a message.
func (d *decoder) message(r *record) (unknown string) {
	m := &r.message
	switch m.role {
	case "user", "assistant", "system", "tool":
	default:
		return plain.Clip(plain.Text("message/"+m.role), 64)
	}
	d.branch(r)
	// What only one of the two is shown is neither's word: notices of the
	// CLI, what hooks add.
	aside := m.visibility == "user_only" || m.visibility == "llm_only" || m.hook || m.role == "system"
	if said(m.reasoning) && !slices.ContainsFunc(m.parts, func(p part) bool { return p.kind == "thinking" && p.text == m.reasoning }) {
		d.emit(r, turn.Turn{Class: turn.Thought, Text: m.reasoning})
	}
	for _, p := range joined(m.parts) {
		switch p.kind {
		case "thinking":
			d.emit(r, turn.Turn{Class: turn.Thought, Text: p.text})
		case "tool_use":
			d.call(r, p)
		case "tool_result":
			d.result(r, p)
		case "redacted_thinking":
		default:
			d.emit(r, turn.Turn{Class: class(m.role, p.text, aside), Text: p.text})
		}
	}
	if m.role == "assistant" {
		d.settle()
	}
	d.Last = plain.Clip(plain.Text(r.id), 128)
	if m.visibility != "user_only" && !m.hook {
		d.Shared = d.Last
	}
	return ""
}

// joined makes one of the texts that follow one another in a message: a prompt
// is one turn, whatever it carries. Reminders stay apart.
func joined(parts []part) []part {
	var list []part
	for _, p := range parts {
		n := len(list)
		if n > 0 && said(p.text) && speech(list[n-1]) && speech(p) {
			list[n-1].text += "\n" + p.text
			continue
		}
		list = append(list, p)
	}
	return list
}

// speech reports whether a block is what somebody says to the other.
func speech(p part) bool {
	switch p.kind {
	case "text", "image", "document":
		return said(p.text) && !reminder(p.text)
	}
	return false
}

func reminder(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "<system-reminder>")
}

func class(role, text string, aside bool) turn.Class {
	switch {
	case aside, role == "user" && reminder(text):
		return turn.Other
	case role == "user":
		return turn.User
	case role == "tool":
		return turn.ToolUse
	}
	return turn.Agent
}

// branch marks a message that does not continue the one before it.
func (d *decoder) branch(r *record) {
	parent := plain.Clip(plain.Text(r.parentID), 128)
	if parent == "" || d.Last == "" || parent == d.Last || parent == d.Shared {
		return
	}
	t := turn.Turn{Class: turn.Other, Text: "[branch: continues from message " + parent + ", not from " + d.Last + "]"}
	t.ID, t.TS, t.Mark = plain.Clip(plain.Text(r.id), 128)+"#branch", d.TS, d.mark
	d.turns = append(d.turns, t)
}

func (d *decoder) call(r *record, p part) {
	name := p.name
	if name == "" {
		name = "unknown"
	}
	text := "tool_call " + name
	if p.args != "" {
		text += " " + p.args
	}
	t := &turn.Tool{Phase: turn.Call, Name: name, CallID: p.id}
	switch name {
	case "Execute", "Bash":
		t.Command = p.command
	case "Edit", "MultiEdit", "Create", "Write":
		t.Edits = p.edits
	}
	d.emit(r, turn.Turn{Class: turn.ToolUse, Text: text, Tool: t})
}

func (d *decoder) result(r *record, p part) {
	if !said(p.text) {
		p.text = plain.Empty
	}
	d.emit(r, turn.Turn{Class: turn.ToolUse, Text: p.text, Tool: &turn.Tool{Phase: turn.Result, CallID: p.id, Error: p.failed}})
}

// emit hands a turn out. Of a record's turns the first has its id.
func (d *decoder) emit(r *record, t turn.Turn) {
	if !said(t.Text) {
		return
	}
	t.TS, t.ID = d.TS, plain.Clip(plain.Text(r.id), 128)
	if d.part++; d.part > 1 && t.ID != "" {
		t.ID += "#" + strconv.Itoa(d.part)
	}
	if t.Mark == "" {
		t.Mark = d.mark
	}
	d.turns = append(d.turns, t)
}

func said(text string) bool { return strings.TrimSpace(text) != "" }
