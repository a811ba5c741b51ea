package codex

import (
	"strings"

	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// message is the text of a message's parts and the ways an event may say it.
func (f *fields) messageText() (text string, keys []uint64) {
	if f.content != "" {
		return f.content, []uint64{plain.Letters(f.content)}
	}
	var all, texts []string
	for _, p := range f.parts {
		if p.image {
			all = append(all, plain.Image)
			continue
		}
		all = append(all, p.text)
		texts = append(texts, p.text)
	}
	keys = append(keys, plain.Letters(texts...))
	if len(texts) > 1 {
		for _, s := range texts {
			keys = append(keys, plain.Letters(s))
		}
	}
	return strings.Join(all, "\n"), keys
}

// callName is the name of a called tool, with the server's before it.
func (f *fields) callName(kind string) string {
	switch kind {
	case "function_call", "custom_tool_call":
		if f.name == "" {
			return "unknown"
		}
		return f.namespace + f.name
	case "local_shell_call":
		return "local_shell"
	}
	return strings.TrimSuffix(kind, "_call")
}

// callTurn is the TOOL turn of a call.
func callTurn(ts, mark, name, id, args string) turn.Turn {
	command, edits := commandOf(name, args)
	text := "function_call " + name
	if args != "" {
		text += " " + args
	}
	return turn.Turn{TS: ts, Mark: mark, Class: turn.ToolUse, Text: plain.Text(text), Tool: &turn.Tool{
		Phase: turn.Call, Name: plain.Text(name), CallID: plain.Text(id),
		Command: plain.Text(command), Edits: edits,
	}}
}

// resultTurn is the TOOL turn of a result.
func resultTurn(ts, mark, name, id, text string, exit *int, failed bool) turn.Turn {
	if text = plain.Text(text); strings.TrimSpace(text) == "" {
		text = plain.Empty
	}
	return turn.Turn{TS: ts, Mark: mark, Class: turn.ToolUse, Text: text, Tool: &turn.Tool{
		Phase: turn.Result, Name: plain.Text(name), CallID: plain.Text(id), Exit: exit, Error: failed,
	}}
}
