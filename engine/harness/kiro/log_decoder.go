package kiro

import (
	"encoding/json"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// logDecoder reads one log. All it keeps between passes is the time of the
// newest prompt: what follows it has none.
type logDecoder struct {
	journal.Clock
	journal.Page
	env harness.Env
	rec message
}

func newLogDecoder(saved []byte, env harness.Env) (*logDecoder, error) {
	d := &logDecoder{env: env}
	return d, journal.Restore("kiro", saved, &d.Clock)
}

// Decode implements harness.Decoder.
func (d *logDecoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.rec.read, d.take)
}

// State implements harness.Decoder.
func (d *logDecoder) State() ([]byte, error) { return json.Marshal(&d.Clock) }

// take reads a record and returns its kind if that is unknown.
func (d *logDecoder) take() (unknown string) {
	r, m := &d.rec, d.Meta
	switch {
	case r.kind == "":
		return "(none)"
	case !kinds[r.kind]:
		return plain.Clip(plain.Text(r.kind), 64)
	}
	d.Mark = ""
	if r.ts != "" {
		d.TS = r.ts
		ledger.Clock(m, r.ts)
	} else if d.TS != "" {
		d.Mark = journal.Approximate
	}
	d.settle(m)
	switch r.kind {
	case "Clear":
		d.emit(turn.Turn{Class: turn.Other, Text: "[the conversation was cleared]"})
		return ""
	case "Compaction":
		m.Compactions++
	}
	for _, p := range joined(r.parts) {
		d.piece(p)
	}
	return ""
}

// joined puts together what somebody says in several blocks, pictures included.
func joined(parts []piece) (list []piece) {
	speech := func(p piece) bool { return (p.kind == "text" || p.kind == "image") && strings.TrimSpace(p.text) != "" }
	for _, p := range parts {
		if n := len(list); n > 0 && speech(list[n-1]) && speech(p) {
			list[n-1].text += "\n" + p.text
			continue
		}
		list = append(list, p)
	}
	return list
}

// settle takes what the file beside the log says by now.
func (d *logDecoder) settle(m *session.Meta) {
	stem, ok := strings.CutSuffix(d.env.Name(), logEnd)
	if !ok || d.rec.kind == "ToolResults" {
		return
	}
	s := readSidecar(d.env.Near(stem + ".json"))
	if m.ID == "" {
		m.ID = plain.Text(s.id)
	}
	if m.CWD == "" {
		m.CWD = plain.Text(s.cwd)
	}
	if s.title != "" {
		m.Title = plain.Clip(plain.Text(s.title), 512)
	}
	if s.model != "" {
		m.Model = plain.Text(s.model)
	}
	if s.parent != "" {
		m.Kind, m.Parent = "subagent", plain.Text(s.parent)
	}
}

// piece hands out a block.
func (d *logDecoder) piece(p piece) {
	t := turn.Turn{Text: p.text}
	switch {
	case p.kind == "toolUse":
		name := p.name
		if name == "" {
			name = "unknown"
		}
		t.Class, t.Text = turn.ToolUse, strings.TrimSpace("tool_call "+name+" "+p.args)
		t.Tool = call(plain.Text(name), plain.Text(p.id), p.args)
	case p.kind == "toolResult":
		t.Class = turn.ToolUse
		t.Text = plain.FirstOf(t.Text, plain.Empty)
		t.Tool = &turn.Tool{Phase: turn.Result, CallID: plain.Text(p.id), Error: p.failed, Exit: p.exit}
	case p.kind == "thinking":
		t.Class = turn.Thought
	case d.rec.kind == "Prompt":
		t.Class = turn.User
	case d.rec.kind == "AssistantMessage":
		t.Class = turn.Agent
	case d.rec.kind == "Compaction":
		t.Class, t.Mark = turn.Other, "summary"
	default:
		t.Class = turn.Other
	}
	d.emit(t)
}

// call says of a tool's call what command it runs and which file it changes.
func call(name, id, args string) *turn.Tool {
	t := &turn.Tool{Phase: turn.Call, Name: name, CallID: id}
	command, edits := journal.Targets([]byte(args), "path", "file_path")
	switch name {
	case "execute_bash", "execute_cmd", "shell":
		t.Command = command
	case "fs_write", "write":
		t.Edits = edits
	}
	return t
}

// emit hands a turn out. Of a message's turns the first has its id.
func (d *logDecoder) emit(t turn.Turn) {
	if t.Text = plain.Text(t.Text); strings.TrimSpace(t.Text) == "" {
		return
	}
	d.Sign(&t, d.TS, d.rec.id)
	d.Add(t)
}
