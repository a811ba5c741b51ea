package cline

import (
	"bytes"
	"strings"

	"handoffd/engine/harness"
)

// shape is what an array holds.
type shape int

const (
	nothing shape = iota
	// shown: messages as the editor shows them.
	shown
	// history: messages as the model sees them, with what only these harnesses
	// put in.
	history
	// conversation: messages for a model, which anybody may have written.
	conversation
)

// maker is whose traces are in it.
type maker int

const (
	anyone maker = iota
	byCline
	byRoo
	byKilo
)

// lookAt is how many elements of an array are looked at.
const lookAt = 256

// look judges the head of an array, which may be cut anywhere.
func look(unit []byte) (shape, maker) {
	head := bytes.TrimSpace(bytes.TrimPrefix(unit, []byte("\ufeff")))
	if len(head) == 0 || head[0] != '[' {
		return nothing, anyone
	}
	if rest := bytes.TrimSpace(head[1:]); len(rest) == 0 || rest[0] != '{' {
		return nothing, anyone
	}
	var s shape
	var m maker
	var v harness.Value
	// The error is that of a head that is cut, or damage further on.
	_, _ = v.Walk(head, func(v *harness.Value) {
		s, m = nothing, anyone
		n := 0
		v.Items(func() {
			if n++; n > lookAt {
				return
			}
			var e element
			e.read(v)
			s = better(s, e.shape())
			m = max(m, e.maker())
		})
	})
	return s, m
}

// better is the surer of two shapes.
func better(a, b shape) shape {
	if a == nothing || a == conversation && b != nothing {
		return b
	}
	return a
}

// shape is what one element makes of its array.
func (e *element) shape() shape {
	switch {
	case e.shown():
		return shown
	case !e.spoken():
		return nothing
	case e.blocks && (e.ts != "" || e.wrapped()):
		return history
	}
	return conversation
}

// maker is whose traces an element has.
func (e *element) maker() maker {
	switch {
	case e.kilo:
		return byKilo
	case rooKinds[e.kind]:
		return byRoo
	case clineKinds[e.kind], e.mode && e.provider:
		return byCline
	}
	return anyone
}

// rooKinds are the kinds of message that only Roo Code and its forks write,
// clineKinds those that only Cline writes.
var (
	rooKinds = set("api_req_retry_delayed", "api_req_rate_limit_wait", "api_req_rate_limited", "api_req_deleted", "subtask_result",
		"checkpoint_saved", "rooignore_error", "condense_context", "condense_context_error", "sliding_window_truncation",
		"codebase_search_result", "user_edit_todos", "too_many_tools_warning")
	clineKinds = set("task", "plan_mode_respond", "checkpoint_created", "clineignore_error", "task_progress", "deleted_api_reqs",
		"load_mcp_documentation", "mcp_notification", "hook_status", "conditional_rules_applied")
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// wrapped reports whether a message has the tags in which these harnesses put
// what they tell a model.
func (e *element) wrapped() bool {
	for _, p := range e.parts {
		text := strings.TrimLeft(p.text, " \t\r\n")
		for _, sign := range []string{"<task>", "<user_message>", "<environment_details>", "[TASK RESUMPTION]"} {
			if strings.HasPrefix(text, sign) {
				return true
			}
		}
	}
	return false
}
