package plain

import "strings"

// Said reports whether a text says anything.
func Said(text string) bool { return strings.TrimSpace(text) != "" }

// FirstOf is the first of the texts that says anything, "" when none does.
func FirstOf(texts ...string) string {
	for _, s := range texts {
		if Said(s) {
			return s
		}
	}
	return ""
}

// nameless is the tool of a call that names none.
const nameless = "unknown"

// Call is what the turn of a call says: which tool, never "", and the text,
// in which the arguments stand as they were written.
func Call(tool, args string) (name, text string) {
	if tool == "" {
		tool = nameless
	}
	text = "tool_call " + tool
	if args != "" {
		text += " " + args
	}
	return tool, text
}
