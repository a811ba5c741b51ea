package claude

import (
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// call emits a tool call with its input verbatim.
func (d *decoder) call(b *block, out *harness.Out) {
	input := b.input
	if input == "" {
		input = "{}"
	}
	t := d.turn(turn.ToolUse, "tool_use "+b.name+" "+input, out.Meta)
	t.Tool = &turn.Tool{Phase: turn.Call, Name: b.name, CallID: b.id}
	switch b.name {
	case "Bash":
		t.Tool.Command = d.field(input, "command")
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		if f := d.field(input, "file_path", "notebook_path"); f != "" {
			t.Tool.Edits = []string{f}
		}
	}
	out.Turns = append(out.Turns, t)
}

// field returns the first of the named string members of a JSON object.
func (d *decoder) field(obj string, names ...string) (text string) {
	_, err := d.v.Walk([]byte(obj), func(v *harness.Value) {
		text = ""
		v.Fields(func(name string) {
			for _, n := range names {
				if n == name && text == "" {
					text = v.Text()
				}
			}
		})
	})
	if err != nil {
		return ""
	}
	return text
}

// result emits a tool result.
func (d *decoder) result(b *block, out *harness.Out) {
	text := b.text
	if trim(text) == "" {
		text = plain.Empty
	}
	t := d.turn(turn.ToolUse, text, out.Meta)
	t.Tool = &turn.Tool{Phase: turn.Result, CallID: b.id, Error: b.isError}
	if b.isError {
		t.Tool.Exit = exitCode(text)
	}
	out.Turns = append(out.Turns, t)
}

// exitCode reads the status that Bash results begin with when it is not 0.
func exitCode(text string) *int {
	text = strings.TrimPrefix(text, "Error: ")
	rest, ok := strings.CutPrefix(text, "Exit code ")
	if !ok {
		return nil
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.Atoi(rest[:end])
	if err != nil {
		return nil
	}
	return &n
}
