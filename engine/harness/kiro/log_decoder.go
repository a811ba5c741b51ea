package kiro

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// logState is what a decoder keeps between passes. Every line is decided when it
// is read.
type logState struct {
	// TS is the time of the newest prompt: what follows it has none.
	TS string `json:"ts,omitempty"`
}

// logDecoder reads one log.
type logDecoder struct {
	logState
	env   harness.Env
	value harness.Value
	rec   message
	turns []turn.Turn
	part  int
	mark  string
}

func newLogDecoder(saved []byte, env harness.Env) (*logDecoder, error) {
	d := &logDecoder{env: env}
	if len(saved) > 0 {
		if err := json.Unmarshal(saved, &d.logState); err != nil {
			return nil, fmt.Errorf("kiro: %w", err)
		}
	}
	return d, nil
}

// Decode implements harness.Decoder.
func (d *logDecoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	lenient, err := d.value.Object(unit, d.rec.read)
	if err != nil {
		return err
	}
	d.turns, d.part = d.turns[:0], 0
	out.Unknown = d.take(out.Meta)
	out.Turns = append(out.Turns, d.turns...)
	out.Flagged = out.Flagged || lenient
	return nil
}

// Pending implements harness.Decoder.
func (d *logDecoder) Pending() bool { return false }

// Flush implements harness.Decoder.
func (d *logDecoder) Flush(*harness.Out) {}

// State implements harness.Decoder.
func (d *logDecoder) State() ([]byte, error) { return json.Marshal(&d.logState) }

// take reads a record and returns its kind if that is unknown.
func (d *logDecoder) take(m *session.Meta) (unknown string) {
	r := &d.rec
	switch {
	case r.kind == "":
		return "(none)"
	case !kinds[r.kind]:
		return plain.Clip(plain.Text(r.kind), 64)
	}
	d.mark = ""
	if r.ts != "" {
		d.TS = r.ts
		ledger.Clock(m, r.ts)
	} else if d.TS != "" {
		d.mark = "approximate-time"
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
		if strings.TrimSpace(t.Text) == "" {
			t.Text = plain.Empty
		}
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
	var command, file string
	var v harness.Value
	_, err := v.Walk([]byte(args), func(v *harness.Value) {
		command, file = "", ""
		v.Fields(func(name string) {
			switch name {
			case "command":
				command = plain.Text(v.Text())
			case "path", "file_path":
				file = plain.Text(v.Text())
			}
		})
	})
	if err != nil {
		return t
	}
	switch name {
	case "execute_bash", "execute_cmd", "shell":
		t.Command = command
	case "fs_write", "write":
		if file != "" {
			t.Edits = []string{file}
		}
	}
	return t
}

// emit hands a turn out. Of a message's turns the first has its id.
func (d *logDecoder) emit(t turn.Turn) {
	if t.Text = plain.Text(t.Text); strings.TrimSpace(t.Text) == "" {
		return
	}
	t.TS, t.ID = d.TS, plain.Clip(plain.Text(d.rec.id), 128)
	if d.part++; d.part > 1 && t.ID != "" {
		t.ID += "#" + strconv.Itoa(d.part)
	}
	if t.Mark == "" {
		t.Mark = d.mark
	}
	d.turns = append(d.turns, t)
}
