package kiro

import (
	"strconv"
	"strings"
	"time"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// rowDecoder reads the lines of an export. An entry is written when it is
// complete, so that nothing is held back.
type rowDecoder struct {
	ledger.Tape
	row   row
	entry int
	now   string
}

// Decode implements harness.Decoder.
func (d *rowDecoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.row.read, d.take)
}

// take adds a row to the session and returns its kind if that is unknown.
func (d *rowDecoder) take(kind string, m *session.Meta) (unknown string) {
	switch kind {
	case "session":
		if d.row.unreadable {
			unknown = "conversation without JSON"
		}
		d.session(m)
	case "entry":
		if d.row.unreadable {
			return "entry without JSON"
		}
		d.told(m)
	default:
		return plain.Clip(plain.Text(kind), 64)
	}
	return unknown
}

func (d *rowDecoder) session(m *session.Meta) {
	r := &d.row
	if m.ID == "" {
		m.ID = plain.Text(r.id)
	}
	m.CWD = plain.Text(r.cwd)
	m.Model = plain.Text(r.model)
	if r.model == "" {
		m.Model = plain.Text(r.modelN)
	}
	m.Tokens.Window = r.window
	ledger.Clock(m, ledger.Stamp(r.created))
	if strings.TrimSpace(r.summary) != "" {
		// It stands for what was taken out of the history before it.
		m.Compactions++
		d.emit("summary:"+strconv.FormatUint(plain.Hash(r.summary), 16), turn.Turn{Class: turn.Other, Text: r.summary, Mark: "summary"})
	}
}

// emit adds a turn, if it says anything.
func (d *rowDecoder) emit(id string, t turn.Turn) {
	if t.Text = plain.Text(t.Text); strings.TrimSpace(t.Text) == "" {
		return
	}
	t.TS, t.ID = d.now, plain.Clip(plain.Text(id), 160)
	d.Add(t)
}

// told adds the turns of an entry: what the user said, or the results of tools
// that went to the model in the user's place, and the answer.
func (d *rowDecoder) told(m *session.Meta) {
	r := &d.row
	d.entry++
	if at, err := time.Parse(time.RFC3339Nano, r.at); err == nil {
		d.now = ledger.Stamp(at.UnixMilli())
	} else if asked := ledger.Stamp(r.asked); asked != "" {
		d.now = asked
	}
	ledger.Clock(m, d.now)
	if r.model != "" {
		m.Model = plain.Text(r.model)
	}
	name := r.message
	if name == "" {
		// The history loses its oldest entries, so their number says nothing.
		name = d.now + "/" + strconv.FormatUint(plain.Hash(r.prompt, r.reply), 16)
	}
	for _, result := range r.results {
		text := plain.FirstOf(result.text, plain.Empty)
		d.emit("result:"+result.id, turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{
			Phase: turn.Result, CallID: plain.Text(result.id), Exit: result.exit,
			Error: result.failed || result.exit != nil && *result.exit != 0,
		}})
	}
	prompt := r.prompt
	for range r.pictures {
		prompt = strings.TrimSpace(prompt + "\n" + plain.Image)
	}
	d.emit(name+"#prompt", turn.Turn{Class: turn.User, Text: prompt})
	d.emit(name+"#text", turn.Turn{Class: turn.Agent, Text: r.reply})
	for _, c := range r.calls {
		tool := plain.Text(c.name)
		if tool == "" {
			tool = "unknown"
		}
		call := &turn.Tool{Phase: turn.Call, Name: tool, CallID: plain.Text(c.id)}
		switch tool {
		case "execute_bash", "execute_cmd", "shell":
			call.Command = plain.Text(c.command)
		case "fs_write", "write":
			if c.file != "" {
				call.Edits = []string{plain.Text(c.file)}
			}
		}
		d.emit("call:"+c.id, turn.Turn{Class: turn.ToolUse, Text: strings.TrimSpace("tool_call " + tool + " " + c.args), Tool: call})
	}
}
