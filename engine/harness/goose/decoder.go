package goose

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

// decoder reads the lines of an export. Goose stores a message when it is
// complete, so that nothing is held back.
type decoder struct {
	ledger.Tape
	rec record
	// second and seen give a message without an id one.
	second int64
	seen   map[string]int
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
	m.CWD, m.Title = plain.Text(r.dir), plain.Text(r.name)
	if r.kind == "sub_agent" {
		m.Kind = "subagent"
	}
	if r.parent != "" {
		m.Parent = plain.Text(r.parent)
	}
	if r.model != "" {
		m.Model = plain.Text(r.model)
	}
	if at, err := time.Parse(time.DateTime, r.began); err == nil {
		ledger.Clock(m, ledger.Stamp(at.UnixMilli()))
	}
	m.Tokens.Input += r.input
	m.Tokens.Output += r.output
	if r.prompted > 0 {
		m.Tokens.Context = r.prompted
	}
}

// name is the id of a message; see the package comment.
func (d *decoder) name() string {
	r := &d.rec
	if r.id != "" {
		return r.id
	}
	if d.seen == nil || r.created != d.second {
		d.second, d.seen = r.created, map[string]int{}
	}
	d.seen[r.role]++
	return strconv.FormatInt(r.created, 10) + "/" + r.role + "/" + strconv.Itoa(d.seen[r.role])
}

// message adds the turns of a message; unknown is the type of a part that is
// not known.
func (d *decoder) message(m *session.Meta) (unknown string) {
	r := &d.rec
	id, ts := d.name(), ledger.Stamp(r.created)
	ledger.Clock(m, ts)
	count := map[string]int{}
	for i := range r.parts {
		p := &r.parts[i]
		count[p.kind]++
		t := turn.Turn{Class: turn.Other, TS: ts, Text: plain.Text(p.text), ID: id + "#" + p.kind}
		if n := count[p.kind]; n > 1 {
			t.ID += strconv.Itoa(n)
		}
		switch p.kind {
		case "text":
			switch {
			case r.hidden:
				t.Mark = "summary"
			case r.role == "user":
				t.Class = turn.User
			case r.role == "assistant":
				t.Class = turn.Agent
			}
		case "thinking", "reasoning":
			t.Class = turn.Thought
		case "toolRequest", "frontendToolRequest":
			d.call(p, &t)
		case "toolResponse":
			t.Text = plain.FirstOf(t.Text, plain.Empty)
			t.Class, t.ID = turn.ToolUse, id+"#result:"+p.id
			t.Tool = &turn.Tool{Phase: turn.Result, CallID: plain.Text(p.id), Error: p.failed}
		case "image":
			t.Text = plain.Image
		case "conversationCompacted", "summarizationRequested", "contextLengthExceeded":
			m.Compactions++
			t.Mark = "summary"
		case "toolConfirmationRequest", "actionRequired", "redactedThinking":
			continue // the call itself is told; what is redacted says nothing
		case "systemNotification":
		default:
			unknown = plain.Clip(plain.Text("content/"+p.kind), 64)
			continue
		}
		if strings.TrimSpace(t.Text) == "" {
			continue
		}
		t.ID = plain.Clip(plain.Text(t.ID), 160)
		d.Add(t)
	}
	return unknown
}

func (d *decoder) call(p *part, t *turn.Turn) {
	name, text := plain.Call(plain.Text(p.tool), plain.Text(p.args))
	t.Class, t.Text = turn.ToolUse, text
	t.Tool = &turn.Tool{Phase: turn.Call, Name: name, CallID: plain.Text(p.id), Command: plain.Text(p.command)}
	if p.file != "" {
		t.Tool.Edits = []string{plain.Text(p.file)}
	}
	if p.failed { // the model's call was none
		t.Text += " " + plain.Text(p.text)
		t.Tool.Error = true
	}
}
