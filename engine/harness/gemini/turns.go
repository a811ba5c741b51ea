package gemini

import (
	"strconv"
	"strings"

	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// injected are the starts of user messages that nobody typed.
var injected = []string{"<session_context>", "<hook_context>"}

// referenced stands between a prompt and the files it names.
const referenced = "--- Content from referenced files ---"

// marks of turns.
const (
	markSummary     = "summary"
	markConflict    = "conflict"
	markApproximate = "approximate-time"
)

// turns are the turns of a message. ts is the time to use where the message
// has none.
func (r *record) turns(ts string) []turn.Turn {
	b := builder{id: plain.Text(r.id), ts: plain.Text(r.ts)}
	if b.ts == "" {
		b.ts, b.mark = ts, markApproximate
	}
	switch r.kind {
	case "user":
		b.user(r)
	case "gemini":
		b.gemini(r)
	default:
		if text := said(r.content, false); text != "" {
			b.add("c", turn.Turn{Class: turn.Other, Text: text})
		}
	}
	return b.list
}

// builder collects the turns of a message.
type builder struct {
	id, ts, mark string
	list         []turn.Turn
}

// add appends a turn; part names it within the message.
func (b *builder) add(part string, t turn.Turn) {
	if b.id != "" {
		t.ID = b.id + "#" + part
	}
	if t.TS == "" {
		t.TS = b.ts
		if t.Mark == "" {
			t.Mark = b.mark
		}
	}
	b.list = append(b.list, t)
}

func (b *builder) user(r *record) {
	text := said(r.content, false)
	head := strings.TrimLeft(text, " \t\r\n")
	class := turn.User
	for _, start := range injected {
		if strings.HasPrefix(head, start) {
			class = turn.Other
		}
	}
	switch {
	case text == "":
	case strings.HasPrefix(head, "<state_snapshot>"):
		b.add("c", turn.Turn{Class: turn.Other, Text: text, Mark: markSummary})
	case class == turn.User && strings.Contains(text, referenced):
		typed, files, _ := strings.Cut(text, referenced)
		if typed = strings.TrimSpace(typed); typed != "" {
			b.add("c", turn.Turn{Class: turn.User, Text: typed})
		}
		b.add("files", turn.Turn{Class: turn.Other, Text: referenced + files})
	default:
		b.add("c", turn.Turn{Class: class, Text: text})
	}
	for _, p := range r.content {
		if p.answer != nil {
			b.result(p.answer)
		}
	}
}

func (b *builder) gemini(r *record) {
	for i, t := range r.thoughts {
		b.add("t"+strconv.Itoa(i), turn.Turn{Class: turn.Thought, Text: t.text, TS: plain.Text(t.ts)})
	}
	if text := said(r.content, true); text != "" {
		b.add("t", turn.Turn{Class: turn.Thought, Text: text})
	}
	if text := said(r.content, false); text != "" {
		b.add("c", turn.Turn{Class: turn.Agent, Text: text})
	}
	known := make(map[string]bool, len(r.calls))
	for i := range r.calls {
		c := &r.calls[i]
		known[c.id] = true
		b.call(c)
		switch c.status {
		case "success", "error", "cancelled":
			b.result(c)
		default:
			if c.hasResult {
				b.result(c)
			}
		}
	}
	for _, p := range r.content {
		switch {
		case p.called != nil && !known[p.called.id]:
			b.call(p.called)
		case p.answer != nil:
			b.result(p.answer)
		}
	}
}

// call adds the TOOL turn of a call. Its time is the message's: the call's own
// changes with its status.
func (b *builder) call(c *toolCall) {
	name := c.title()
	text := "tool_call " + name
	if c.args != "" {
		text += " " + c.args
	}
	t := &turn.Tool{Phase: turn.Call, Name: name, CallID: plain.Text(c.id)}
	switch name {
	case "run_shell_command":
		t.Command = c.command
	case "write_file", "replace", "edit", "edit_file":
		t.Edits = c.edits
	}
	b.add("call:"+t.CallID, turn.Turn{Class: turn.ToolUse, Text: plain.Text(text), Tool: t})
}

// result adds the TOOL turn of a result. Its id is the call's alone: the
// history repeats results in user messages of other ids.
func (b *builder) result(c *toolCall) {
	text := c.result
	if strings.TrimSpace(text) == "" {
		text = c.display
	}
	text = plain.FirstOf(text, plain.Empty)
	t := &turn.Tool{
		Phase: turn.Result, Name: c.title(), CallID: plain.Text(c.id),
		Error: c.failed || c.status == "error" || c.status == "cancelled",
	}
	if t.Name == "run_shell_command" {
		t.Exit = exitIn(c.result)
	}
	b.add("result:"+t.CallID, turn.Turn{Class: turn.ToolUse, Text: text, Tool: t, TS: plain.Text(c.ts)})
}

func (c *toolCall) title() string {
	if c.name == "" {
		return "unknown"
	}
	return plain.Text(c.name)
}

// said joins the text of a message, or of its thoughts.
func said(parts []piece, thoughts bool) string {
	var texts []string
	for _, p := range parts {
		if p.text != "" && p.thought == thoughts {
			texts = append(texts, p.text)
		}
	}
	text := strings.Join(texts, "\n")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// exitIn finds the line that Gemini CLI puts behind what a command wrote.
func exitIn(s string) *int {
	const mark = "\nExit Code: "
	at := strings.LastIndex(s, mark)
	if at < 0 {
		return nil
	}
	digits, _, _ := strings.Cut(s[at+len(mark):], "\n")
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		return nil
	}
	return &n
}

// workspace finds the first directory in a <session_context>.
func workspace(text string) string {
	_, after, ok := strings.Cut(text, "Workspace Directories:")
	if !ok {
		return ""
	}
	for line := range strings.Lines(after) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			return strings.TrimSpace(dir)
		}
	}
	return ""
}
