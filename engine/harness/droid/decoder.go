package droid

import (
	"encoding/json"
	"slices"
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
	journal.Page
	env harness.Env
	rec record
}

// markSummary is the mark of what stands for turns before it.
const markSummary = "summary"

func newDecoder(saved []byte, env harness.Env) (*decoder, error) {
	d := &decoder{env: env}
	return d, journal.Restore("droid", saved, &d.state)
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.rec.read, d.take)
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// take reads a record and returns its type if that is unknown.
func (d *decoder) take() (unknown string) {
	r := &d.rec
	d.Mark = d.Tick(d.Meta, r.ts) // the header has none
	if r.model != "" {
		d.Meta.Model = plain.Text(r.model)
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
		d.Meta.Compactions++
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

// untitled is the title of a session that has none yet.
const untitled = "New Session"

// header takes the first line. A subagent's names the session that called it,
// a fork's the one it continues.
func (d *decoder) header(r *record) {
	if d.Headed {
		return
	}
	d.Headed = true
	m := d.Meta
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
		d.Meta.Model = s.model
	}
	if s.known {
		t := &d.Meta.Tokens
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
	if plain.Said(m.reasoning) && !slices.ContainsFunc(m.parts, func(p part) bool { return p.kind == "thinking" && p.text == m.reasoning }) {
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
	d.Last = journal.ID(r.id)
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
		if n > 0 && plain.Said(p.text) && speech(list[n-1]) && speech(p) {
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
		return plain.Said(p.text) && !reminder(p.text)
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
	parent := journal.ID(r.parentID)
	if parent == "" || d.Last == "" || parent == d.Last || parent == d.Shared {
		return
	}
	t := turn.Turn{Class: turn.Other, Text: "[branch: continues from message " + parent + ", not from " + d.Last + "]"}
	t.ID, t.TS, t.Mark = journal.ID(r.id)+"#branch", d.TS, d.Mark
	d.Add(t)
}

func (d *decoder) call(r *record, p part) {
	name, text := plain.Call(p.name, p.args)
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
	text := plain.FirstOf(p.text, plain.Empty)
	d.emit(r, turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{Phase: turn.Result, CallID: p.id, Error: p.failed}})
}

// emit hands a turn out. Of a record's turns the first has its id.
func (d *decoder) emit(r *record, t turn.Turn) {
	if !plain.Said(t.Text) {
		return
	}
	d.Sign(&t, d.TS, r.id)
	d.Add(t)
}
