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

// injected are the starts of user messages that nobody typed.
var injected = []string{
	"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>",
	"<permissions instructions>", "<collaboration_mode>", "<skills_instructions>", "<skill>",
	"<turn_aborted>", "<subagent_notification>", "<recommended_plugins>", "<apps_instructions>",
	"<plugins_instructions>", "<app-context>", "<model_switch>", "<personality_spec>",
	"<user_action>", "<goal", "<hook_prompt", "<user_shell_command>",
}

// request is what the IDE extension puts between the editor's state and what
// the user typed.
const request = "## My request for Codex:"

// classify says who speaks in a message and returns what of the text is said.
func classify(role, text string) (turn.Class, string) {
	switch role {
	case "assistant":
		return turn.Agent, text
	case "user":
	default:
		return turn.Other, text
	}
	head := strings.TrimLeft(text, " \t\r\n")
	for _, start := range injected {
		if strings.HasPrefix(head, start) {
			return turn.Other, text
		}
	}
	if strings.HasPrefix(head, "# Context from my IDE setup:") || strings.HasPrefix(head, request) {
		if _, typed, ok := strings.Cut(head, request); ok {
			if typed = strings.TrimSpace(typed); typed != "" {
				return turn.User, typed
			}
			return turn.Other, text
		}
	}
	return turn.User, text
}

// environmentCWD finds the working directory in an <environment_context>,
// where a bare rollout has nothing else (B14).
func environmentCWD(text string) string {
	head := strings.TrimLeft(text, " \t\r\n")
	if !strings.HasPrefix(head, "<environment_context>") {
		return ""
	}
	if _, after, ok := strings.Cut(head, "<cwd>"); ok {
		cwd, _, _ := strings.Cut(after, "</cwd>")
		return strings.TrimSpace(cwd)
	}
	if _, after, ok := strings.Cut(head, "Current working directory: "); ok {
		cwd, _, _ := strings.Cut(after, "\n")
		return strings.TrimSpace(cwd)
	}
	return ""
}

// withoutPlan splits the text of a plan-mode answer into what the agent says
// around the plan and the plan, which are separate events.
func withoutPlan(text string) (around, plan string, ok bool) {
	before, after, ok := strings.Cut(text, "<proposed_plan>")
	if !ok {
		return "", "", false
	}
	plan, rest, ok := strings.Cut(after, "</proposed_plan>")
	return before + rest, plan, ok
}
