package codex

import (
	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// usage is the token_count event.
type usage struct {
	known                 bool
	input, cached, output int64
	context               int64
}

// sessionField reads one member of the records about a session or a turn.
func (f *fields) sessionField(v *harness.Value, name string) {
	switch name {
	case "session_id":
		f.sessionID = v.Text()
	case "forked_from_id":
		f.forkedFrom = v.Text()
	case "parent_thread_id":
		f.parent = v.Text()
	case "thread_source":
		f.threadSource = v.Text()
	case "source":
		if v.Kind() != '{' {
			return
		}
		v.Fields(func(name string) {
			if name != "subagent" {
				return
			}
			f.subagent = true
			v.Fields(func(string) {
				v.Fields(func(name string) {
					if name == "parent_thread_id" {
						f.parent = v.Text()
					}
				})
			})
		})
	case "cwd":
		f.cwd = v.Text()
	case "model":
		f.model = v.Text()
	case "cli_version":
		f.version = v.Text()
	case "git":
		v.Fields(func(name string) {
			if name == "branch" {
				f.branch = v.Text()
			}
		})
	case "turn_id":
		f.turnID = v.Text()
	case "reason":
		f.reason = v.Text()
	case "error":
		f.readFault(v)
	case "thread_name":
		f.threadName = v.Text()
	case "num_turns":
		f.numTurns, _ = v.Int()
	case "model_context_window":
		f.window, _ = v.Int()
	case "info":
		f.readUsage(v)
	}
}

// readFault reads the error of a turn: a string, or an object with a message.
func (f *fields) readFault(v *harness.Value) {
	switch v.Kind() {
	case '"':
		f.fault = plain.Text(v.Text())
	case '{':
		raw := v.Raw()
		f.fault = plain.Text(string(raw))
		var inner harness.Value
		_, _ = inner.Walk(raw, func(v *harness.Value) {
			v.Fields(func(name string) {
				if name == "message" {
					if s := v.Text(); s != "" {
						f.fault = plain.Text(s)
					}
				}
			})
		})
	}
}

// readUsage reads token_count's info, which is null until the first answer.
func (f *fields) readUsage(v *harness.Value) {
	f.usage.known = v.Kind() == '{'
	v.Fields(func(name string) {
		switch name {
		case "total_token_usage":
			v.Fields(func(name string) {
				switch name {
				case "input_tokens":
					f.usage.input, _ = v.Int()
				case "cached_input_tokens":
					f.usage.cached, _ = v.Int()
				case "output_tokens":
					f.usage.output, _ = v.Int()
				}
			})
		case "last_token_usage":
			v.Fields(func(name string) {
				if name == "total_tokens" {
					f.usage.context, _ = v.Int()
				}
			})
		case "model_context_window":
			f.window, _ = v.Int()
		}
	})
}
