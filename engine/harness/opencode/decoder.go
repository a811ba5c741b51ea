package opencode

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// marks of turns.
const (
	markSummary = "summary"
	markRewound = "rewound"
)

// decoder reads the lines of an export.
type decoder struct {
	ledger.Tape
	rec    record
	talk   talk
	revert struct{ message, part string }
}

// talk is where the decoder is in the conversation.
type talk struct {
	id, role, ts     string
	open             bool // an answer that is still being written
	summary, rewound bool
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
		d.message(m)
	case kind == "part":
		return d.part(m)
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
	// The project of directories that are in no repository has the work tree
	// "/"; the session's directory is always the real one.
	if r.directory != "" {
		m.CWD = plain.Text(r.directory)
	}
	if r.title != "" {
		m.Title = plain.Text(r.title)
	}
	if r.version != "" {
		m.Version = plain.Text(r.version)
	}
	d.revert.message, d.revert.part = r.revert.message, r.revert.part
	ledger.Clock(m, ledger.Stamp(r.created))
}

func (d *decoder) message(m *session.Meta) {
	r := &d.rec
	rewound := d.talk.rewound || d.revert.message != "" && r.id == d.revert.message && d.revert.part == ""
	d.talk = talk{id: r.id, role: r.role, ts: ledger.Stamp(r.created), summary: r.summary, rewound: rewound}
	if r.role == "assistant" {
		// Whatever an earlier answer left unfinished stays so now.
		d.Close()
		d.talk.open = r.ended == 0 && r.fault == ""
		if r.summary {
			m.Compactions++
		}
	}
	ledger.Clock(m, d.talk.ts)
	ledger.Clock(m, ledger.Stamp(r.ended))
	if m.CWD == "" && r.cwd != "" {
		m.CWD = plain.Text(r.cwd)
	}
	if model := plain.Text(r.model); model != "" {
		m.Model = model
	} else if m.Model == "" {
		m.Model = plain.Text(r.modelIn)
	}
	t := r.tokens
	m.Tokens.Input += t.input
	m.Tokens.Output += t.output + t.reasoning
	m.Tokens.CacheRead += t.read
	m.Tokens.CacheWrite += t.write
	if total := t.input + t.read + t.write; total > 0 {
		m.Tokens.Context = total + t.output
	}
	if r.fault != "" {
		d.emit(turn.Turn{Class: turn.Other, Text: "error: " + plain.Text(r.fault), ID: r.id + "#error"})
	}
}

// emit adds a turn of the message at hand.
func (d *decoder) emit(t turn.Turn) {
	if t.TS == "" {
		t.TS = d.talk.ts
	}
	t.ID = plain.Clip(plain.Text(t.ID), 160)
	if t.Mark == "" && d.talk.rewound {
		t.Mark = markRewound
	}
	d.Add(t)
}

// part adds the turns of a part; unknown is its type if that is not known.
func (d *decoder) part(m *session.Meta) (unknown string) {
	r := &d.rec
	if d.revert.part != "" && r.id == d.revert.part {
		d.talk.rewound = true
	}
	said := turn.Turn{Class: turn.Other, Text: plain.Text(r.text), TS: ledger.Stamp(r.created), ID: r.id}
	ledger.Clock(m, said.TS)
	ledger.Clock(m, ledger.Stamp(r.ended))
	switch r.kind {
	case "text", "reasoning":
		switch {
		case d.talk.summary:
			said.Mark = markSummary
		case r.kind == "reasoning":
			said.Class = turn.Thought
		case r.synthetic || r.ignored:
		case d.talk.role == "user":
			said.Class = turn.User
		case d.talk.role == "assistant":
			said.Class = turn.Agent
		}
		if d.talk.open && r.ended == 0 {
			d.Hold()
		}
	case "tool":
		d.tool()
		return ""
	case "file":
		said.Text = attached(r)
	case "agent":
		said.Text = "@" + said.Text
	case "subtask":
	case "compaction":
		said.Mark, said.Text = markSummary, "(context compacted)"
	case "retry":
		said.Text = "retry: " + plain.Text(r.fault)
	case "step-start", "step-finish", "snapshot", "patch":
		return ""
	default:
		return plain.Clip(plain.Text("part/"+r.kind), 64)
	}
	if strings.TrimSpace(said.Text) != "" {
		d.emit(said)
	}
	return ""
}

// attached is the text that stands for a file of a prompt. Its content is a
// data URL, or follows as a synthetic text.
func attached(r *record) string {
	what := plain.Text(strings.TrimSpace(r.filename + " " + r.mime))
	if strings.HasPrefix(r.mime, "image/") {
		return plain.Image + " " + what
	}
	return "[file] " + what
}

// tool adds the turns of a tool: the call, and the result when there is one.
func (d *decoder) tool() {
	r := &d.rec
	name, text := plain.Call(plain.Text(r.tool), r.input)
	done := r.status == "completed" || r.status == "error"
	if d.talk.open && !done && r.status != "running" {
		d.Hold() // its input is still being written
	}
	call := &turn.Tool{Phase: turn.Call, Name: name, CallID: plain.Text(r.call)}
	switch name {
	case "bash", "shell":
		call.Command = plain.Text(r.command)
	case "write", "edit", "multiedit", "patch":
		if r.file != "" {
			call.Edits = []string{plain.Text(r.file)}
		}
	}
	d.emit(turn.Turn{Class: turn.ToolUse, Text: plain.Text(text), ID: r.id + "#call", TS: ledger.Stamp(r.created), Tool: call})
	if !done {
		if d.talk.open {
			d.Hold() // its result comes before what follows
		}
		return
	}
	result := &turn.Tool{Phase: turn.Result, Name: name, CallID: call.CallID, Exit: r.exit}
	// A call that the model got wrong is a completed one of the tool
	// "invalid", and a command that failed is a completed one as well.
	result.Error = r.status == "error" || name == "invalid" || r.exit != nil && *r.exit != 0
	text = r.output
	if r.status == "error" && r.err != "" {
		text = r.err
	}
	text = plain.FirstOf(plain.Text(text), plain.Empty)
	d.emit(turn.Turn{Class: turn.ToolUse, Text: text, ID: r.id + "#result", TS: ledger.Stamp(r.ended), Tool: result})
}
