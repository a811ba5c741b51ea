package claude

import (
	"strings"

	"handoffd/engine/turn"
)

// said is a piece of a user record's text with its class.
type said struct {
	class turn.Class
	text  string
	mark  string
}

// wrappers are the elements that the harness or an editor puts into a user
// record beside, or instead of, what the user typed.
var wrappers = []string{
	"ide_opened_file", "ide_selection", "ide_diagnostics", "system-reminder", "task-notification",
	"local-command-caveat", "local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr",
	"user-prompt-submit-hook", "teammate-message", "user-memory-input", "new-diagnostics",
}

// notices are the beginnings of texts that the harness writes in the user's
// name.
var notices = []string{
	"Caveat: The messages below", "Stop hook feedback:", "[Request interrupted by user",
	"PreToolUse:", "PostToolUse:",
}

// continued begins the summary that takes the place of a compacted
// conversation, in versions that do not flag it.
const continued = "This session is being continued from a previous conversation"

// classify divides a user text into what the user said and what was added.
func classify(text string) []said {
	var out []said
	rest := trim(text)
	for rest != "" {
		tag, body, after := leading(rest)
		if tag == "" {
			break
		}
		out = append(out, said{turn.Other, body, ""})
		rest = trim(after)
	}
	if rest == "" {
		return out
	}
	var trailing []said
	for {
		i := strings.LastIndex(rest, "<system-reminder>")
		if i <= 0 || !strings.HasSuffix(rest, "</system-reminder>") {
			break
		}
		trailing = append([]said{{turn.Other, rest[i:], ""}}, trailing...)
		rest = trim(rest[:i])
	}
	if len(out) == 0 && len(trailing) == 0 {
		return []said{bare(text)}
	}
	return append(append(out, bare(rest)), trailing...)
}

// trim removes what JSON counts as white space; everything else is content.
func trim(s string) string { return strings.Trim(s, " \t\r\n") }

// bare classifies a text without wrappers, which it keeps to the byte.
func bare(full string) said {
	text := trim(full)
	if strings.HasPrefix(text, continued) {
		return said{turn.Other, full, "summary"}
	}
	for _, n := range notices {
		if strings.HasPrefix(text, n) {
			return said{turn.Other, full, ""}
		}
	}
	if strings.HasPrefix(text, "<command-name>") || strings.HasPrefix(text, "<command-message>") {
		if name := element(text, "command-name"); name != "" {
			return said{turn.User, trim(name + " " + element(text, "command-args")), ""}
		}
	}
	if cmd := element(text, "bash-input"); cmd != "" && strings.HasPrefix(text, "<bash-input>") {
		return said{turn.User, "!" + cmd, ""}
	}
	return said{turn.User, full, ""}
}

// leading returns the wrapper element that text begins with, whole, and what
// follows it. An element that is never closed takes all of the text.
func leading(text string) (tag, body, after string) {
	if text[0] != '<' {
		return "", "", ""
	}
	for _, t := range wrappers {
		rest, ok := strings.CutPrefix(text[1:], t)
		if !ok || rest == "" || rest[0] != '>' && rest[0] != ' ' {
			continue
		}
		end := "</" + t + ">"
		i := strings.Index(text, end)
		if i < 0 {
			return t, text, ""
		}
		return t, text[:i+len(end)], text[i+len(end):]
	}
	return "", "", ""
}

// element returns the trimmed text inside <name>...</name>.
func element(text, name string) string {
	_, rest, ok := strings.Cut(text, "<"+name+">")
	if !ok {
		return ""
	}
	body, _, ok := strings.Cut(rest, "</"+name+">")
	if !ok {
		return ""
	}
	return trim(body)
}
