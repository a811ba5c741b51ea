package crush

import (
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// decoder reads the lines of an export.
type decoder struct {
	ledger.Tape
	rec     record
	project string
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.rec.read, d.take)
}

// take adds a record to the session and returns its kind if that is unknown.
func (d *decoder) take(kind string, m *session.Meta) (unknown string) {
	switch {
	case d.rec.unreadable:
		return kind + " without JSON"
	case kind == "session":
		d.session(m)
	case kind == "message":
		return d.message(m)
	default:
		return plain.Clip(plain.Text(kind), 64)
	}
	return ""
}

func (d *decoder) session(m *session.Meta) {
	r := &d.rec
	if m.ID == "" {
		m.ID = plain.Text(r.id)
	}
	if r.parent != "" {
		m.Parent, m.Kind = plain.Text(r.parent), "subagent"
	}
	m.Title = plain.Text(r.title)
	if d.project != "" {
		m.CWD = plain.Text(d.project)
	}
	ledger.Clock(m, ledger.Stamp(r.created))
	m.Tokens.Input += r.prompted
	m.Tokens.Output += r.answered
	if r.prompted+r.answered > 0 {
		m.Tokens.Context = r.prompted + r.answered
	}
}

// message adds the turns of a message; unknown is the type of a part that is
// not known.
func (d *decoder) message(m *session.Meta) (unknown string) {
	r := &d.rec
	ts := ledger.Stamp(r.created)
	ledger.Clock(m, ts)
	ledger.Clock(m, ledger.Stamp(r.finished))
	if r.model != "" {
		m.Model = plain.Text(r.model)
	}
	if r.role == "assistant" {
		d.Close() // an earlier answer stays as it was left
		if r.summary {
			m.Compactions++
		}
		if !r.complete() {
			d.Hold()
		}
	}
	count := map[string]int{}
	for i := range r.parts {
		p := &r.parts[i]
		count[p.kind]++
		t := turn.Turn{Class: turn.Other, TS: ts, Text: plain.Text(p.text), ID: r.id + "#" + p.kind}
		if n := count[p.kind]; n > 1 {
			t.ID += strconv.Itoa(n)
		}
		switch p.kind {
		case "text":
			switch {
			case r.summary:
				t.Mark = "summary"
			case p.hidden:
			case r.role == "user":
				t.Class = turn.User
			case r.role == "assistant":
				t.Class = turn.Agent
			}
		case "reasoning":
			t.Class = turn.Thought
			if started := ledger.Stamp(p.started); started != "" {
				t.TS = started
			}
		case "tool_call":
			d.call(p, &t)
		case "tool_result":
			t.Text = plain.FirstOf(t.Text, plain.Empty)
			t.Class, t.ID = turn.ToolUse, "result:"+p.id
			t.Tool = &turn.Tool{Phase: turn.Result, Name: plain.Text(p.name), CallID: plain.Text(p.id), Exit: p.exit}
			t.Tool.Error = p.failed || p.exit != nil && *p.exit != 0
		case "shell_command": // the user ran it; call and outcome are one
			t.Class, t.Text = turn.ToolUse, "$ "+plain.Text(p.command)+"\n"+plain.Text(p.text)
			t.Tool = &turn.Tool{Phase: turn.Result, Name: "bash", Command: plain.Text(p.command), Exit: p.exit}
			t.Tool.Error = p.exit != nil && *p.exit != 0
		case "image_url":
			t.Text = plain.Image
		case "binary":
			t.Text = plain.Text("[file] " + p.path)
			if strings.HasPrefix(p.mime, "image/") {
				t.Text = plain.Text(plain.Image + " " + p.path)
			}
		case "finish":
			ledger.Clock(m, ledger.Stamp(p.ended))
			t.Text = ending(p)
		default:
			unknown = plain.Clip(plain.Text("part/"+p.kind), 64)
			continue
		}
		if strings.TrimSpace(t.Text) != "" {
			t.ID = plain.Clip(plain.Text(t.ID), 160)
			d.Add(t)
		}
	}
	return unknown
}

// complete reports whether an answer will not change any more.
func (r *record) complete() bool {
	for _, p := range r.parts {
		if p.kind == "finish" {
			return true
		}
	}
	return r.finished != 0
}

// ending is how an answer ended, "" when nothing is wrong with that.
func ending(p *part) string {
	switch p.reason {
	case "error", "canceled", "content_filter":
		return strings.TrimSpace(plain.Text(p.reason + ": " + p.note + " " + p.details))
	}
	return ""
}

func (d *decoder) call(p *part, t *turn.Turn) {
	name, text := plain.Call(plain.Text(p.name), plain.Text(p.input))
	t.Class, t.ID, t.Text = turn.ToolUse, "call:"+p.id, text
	t.Tool = &turn.Tool{Phase: turn.Call, Name: name, CallID: plain.Text(p.id)}
	switch name {
	case "bash":
		t.Tool.Command = plain.Text(p.command)
	case "edit", "write", "multiedit":
		if p.file != "" {
			t.Tool.Edits = []string{plain.Text(p.file)}
		}
	}
}
