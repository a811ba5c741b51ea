package cursoride

import (
	"strings"
	"time"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// record is a conversation or one of its bubbles.
type record struct {
	unreadable           bool
	id, name, model, dir string
	created              string
	used, window         int64
	writing              bool
	kind                 int64
	unlisted, thought    bool
	text, thinking       string
	tool, call, state    string
	args, params         string
	result, fault        string
	called               bool
	input, output        int64
	command, file        string
}

func (r *record) read(v *harness.Value) {
	*r = record{}
	v.Fields(func(name string) {
		switch name {
		case ledger.Unreadable:
			r.unreadable = true
		case "id":
			r.id = v.Text()
		case "unlisted":
			r.unlisted = true
			v.Skip()
		case "name":
			r.name = v.Text()
		case "createdAt":
			r.created = stamp(v)
		case "timingInfo":
			v.Fields(func(name string) {
				if at := stampOf(v, name == "clientStartTime"); at != "" && r.created == "" {
					r.created = at
				}
			})
		case "status":
			r.writing = v.Text() == "generating"
		case "modelConfig", "modelInfo":
			v.Fields(func(name string) {
				if name == "modelName" {
					r.model = v.Text()
				}
			})
		case "contextTokensUsed":
			r.used, _ = v.Int()
		case "contextTokenLimit":
			r.window, _ = v.Int()
		case "workspaceIdentifier":
			v.Fields(func(name string) {
				if name == "uri" {
					v.Fields(func(name string) {
						if name == "fsPath" || name == "path" && r.dir == "" {
							r.dir = v.Text()
						}
					})
				}
			})
		case "type":
			r.kind, _ = v.Int()
		case "isThought":
			r.thought = v.Bool()
		case "text":
			r.text = v.Text()
		case "thinking":
			if v.Kind() != '{' {
				r.thinking = v.Text()
				return
			}
			v.Fields(func(name string) {
				if name == "text" {
					r.thinking = v.Text()
				}
			})
		case "toolFormerData":
			r.former(v)
		case "tokenCount":
			v.Fields(func(name string) {
				switch name {
				case "inputTokens":
					r.input, _ = v.Int()
				case "outputTokens":
					r.output, _ = v.Int()
				}
			})
		}
	})
}

// former reads what became of a tool. Its arguments and result are JSON in
// texts, in some versions as they are.
func (r *record) former(v *harness.Value) {
	r.called = v.Kind() == '{'
	numbered := ""
	v.Fields(func(name string) {
		switch name {
		case "name":
			r.tool = v.Text()
		case "tool":
			numbered = v.Text()
		case "toolCallId":
			r.call = v.Text()
		case "status":
			r.state = v.Text()
		case "rawArgs":
			r.args = inner(v)
		case "params":
			r.params = inner(v)
		case "result":
			r.result = inner(v)
		case "error":
			r.fault = inner(v)
		}
	})
	if r.tool == "" {
		r.tool = numbered
	}
	if r.args == "" || r.args == "{}" {
		r.args = r.params
	}
	for _, text := range []string{r.args, r.params} {
		var in harness.Value
		_, _ = in.Walk([]byte(text), func(v *harness.Value) {
			v.Fields(func(name string) {
				switch name {
				case "command":
					r.command = v.Text()
				case "target_file", "file_path", "relativeWorkspacePath":
					r.file = v.Text()
				}
			})
		})
	}
}

// inner is a text, or any other value as JSON; "" for null.
func inner(v *harness.Value) string {
	switch v.Kind() {
	case '"':
		return v.Text()
	case 'n':
		v.Skip()
		return ""
	}
	return plain.Compact(v.Raw())
}

// stamp is a time in milliseconds or in words.
func stamp(v *harness.Value) string { return stampOf(v, true) }

func stampOf(v *harness.Value, wanted bool) string {
	if !wanted {
		v.Skip()
		return ""
	}
	if v.Kind() != '"' {
		n, _ := v.Int()
		return ledger.Stamp(n)
	}
	text := v.Text()
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return ledger.Stamp(at.UnixMilli())
	}
	return ""
}

// decoder reads the lines of an export.
type decoder struct {
	ledger.Tape
	rec     record
	writing bool
	now     string
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
	case kind == "bubble":
		d.bubble(m)
	default:
		return plain.Clip(plain.Text(kind), 64)
	}
	return ""
}

func (d *decoder) session(m *session.Meta) {
	r := &d.rec
	d.writing = r.writing
	if r.name != "" {
		m.Title = plain.Text(r.name)
	}
	if r.dir != "" {
		m.CWD = plain.Text(r.dir)
	}
	if r.model != "" {
		m.Model = plain.Text(r.model)
	}
	ledger.Clock(m, r.created)
	m.Tokens.Context, m.Tokens.Window = r.used, r.window
}

func (d *decoder) bubble(m *session.Meta) {
	r := &d.rec
	ledger.Clock(m, r.created)
	d.now = r.created
	m.Tokens.Input += r.input
	m.Tokens.Output += r.output
	if r.model != "" {
		m.Model = plain.Text(r.model)
	}
	if r.kind == 1 {
		d.Close() // whatever came before is over when the user speaks
		d.emit("text", turn.Turn{Class: turn.User, Text: r.text})
		return
	}
	if d.writing && !r.unlisted {
		// Nothing says which bubble of an answer is still written, only that
		// one is: each holds until the next one is there.
		d.Close()
		d.Hold()
	}
	if r.thought && r.thinking == "" {
		r.thinking, r.text = r.text, ""
	}
	d.emit("thinking", turn.Turn{Class: turn.Thought, Text: r.thinking})
	d.emit("text", turn.Turn{Class: turn.Agent, Text: r.text})
	if r.called {
		d.tool()
	}
}

// emit adds a turn of the bubble at hand, if it says anything.
func (d *decoder) emit(part string, t turn.Turn) {
	t.Text = plain.Text(t.Text)
	if strings.TrimSpace(t.Text) == "" {
		return
	}
	t.TS, t.ID = d.now, plain.Clip(plain.Text(d.rec.id+"#"+part), 160)
	if d.rec.unlisted {
		t.Mark = "rewound"
	}
	d.Add(t)
}

func (d *decoder) tool() {
	r := &d.rec
	name, text := plain.Call(plain.Text(r.tool), r.args)
	call := &turn.Tool{Phase: turn.Call, Name: name, CallID: plain.Text(r.call)}
	switch {
	case strings.HasPrefix(name, "run_terminal"):
		call.Command = plain.Text(r.command)
	case strings.HasPrefix(name, "edit_file"), strings.HasPrefix(name, "search_replace"), name == "write", name == "delete_file":
		if r.file != "" {
			call.Edits = []string{plain.Text(r.file)}
		}
	}
	d.emit("call", turn.Turn{Class: turn.ToolUse, Text: text, Tool: call})
	switch r.state {
	case "loading", "running", "pending", "streaming":
		d.Hold()
		return
	}
	failed := r.state == "error" || r.state == "cancelled" || r.fault != ""
	text = r.result
	if r.fault != "" {
		text = r.fault
	}
	text = plain.FirstOf(text, plain.Empty)
	d.emit("result", turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{
		Phase: turn.Result, Name: name, CallID: call.CallID, Error: failed,
	}})
}
