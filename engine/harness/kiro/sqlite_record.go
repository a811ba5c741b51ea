package kiro

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
)

// row is the line of a conversation, or of an entry of its history.
type row struct {
	unreadable             bool
	id, cwd, model, modelN string
	summary                string
	created, window        int64
	prompt, at             string
	pictures               int
	results                []rowResult
	message, reply         string
	calls                  []rowCall
	asked                  int64 // milliseconds
}

type rowCall struct{ id, name, args, command, file string }

type rowResult struct {
	id, text string
	failed   bool
	exit     *int
}

func (r *row) read(v *harness.Value) {
	*r = row{}
	v.Fields(func(name string) {
		switch name {
		case ledger.Unreadable:
			r.unreadable = true
		case "id":
			r.id = v.Text()
		case "cwd":
			r.cwd = v.Text()
		case "created_at":
			r.created, _ = v.Int()
		case "model_info":
			r.readModel(v)
		case "latest_summary":
			r.readSummary(v)
		case "data":
			r.entry(v)
		}
	})
}

func (r *row) readModel(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "model_id":
			r.model = v.Text()
		case "model_name":
			r.modelN = v.Text()
		case "context_window_tokens":
			r.window, _ = v.Int()
		}
	})
}

// readSummary reads a text, or a list that begins with one.
func (r *row) readSummary(v *harness.Value) {
	if v.Kind() == '"' {
		r.summary = v.Text()
		return
	}
	v.Items(func() {
		if v.Kind() == '"' && r.summary == "" {
			r.summary = v.Text()
		}
	})
}

// entry reads {user,assistant,request_metadata}, in older versions the pair
// [user,assistant].
func (r *row) entry(v *harness.Value) {
	if v.Kind() == '[' {
		n := 0
		v.Items(func() {
			if n++; n == 1 {
				r.user(v)
			} else if n == 2 {
				r.assistant(v)
			}
		})
		return
	}
	v.Fields(func(name string) {
		switch name {
		case "user":
			r.user(v)
		case "assistant":
			r.assistant(v)
		case "request_metadata":
			v.Fields(func(name string) {
				switch name {
				case "request_start_timestamp_ms":
					r.asked, _ = v.Int()
				case "model_id":
					r.model = v.Text()
				}
			})
		}
	})
}

func (r *row) user(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "timestamp":
			r.at = v.Text()
		case "images":
			v.Items(func() { r.pictures++ })
		case "content":
			v.Fields(func(string) {
				v.Fields(func(name string) {
					switch name {
					case "prompt":
						r.prompt = v.Text()
					case "tool_use_results":
						v.Items(func() { r.results = append(r.results, readResult(v)) })
					}
				})
			})
		}
	})
}

func readResult(v *harness.Value) (out rowResult) {
	var texts []string
	v.Fields(func(name string) {
		switch name {
		case "tool_use_id":
			out.id = v.Text()
		case "status":
			out.failed = v.Text() == "Error"
		case "content":
			v.Items(func() {
				v.Fields(func(name string) {
					if name == "Text" {
						texts = append(texts, v.Text())
					} else {
						raw := v.Raw()
						out.exit = exitIn(raw)
						texts = append(texts, plain.Compact(raw))
					}
				})
			})
		}
	})
	out.text = strings.Join(texts, "\n")
	return out
}

// exitIn finds the exit status in what a command gave.
func exitIn(raw []byte) (exit *int) {
	var in harness.Value
	_, err := in.Walk(raw, func(v *harness.Value) {
		exit = nil
		v.Fields(func(name string) {
			if name == "exit_status" {
				ledger.Exit(v, &exit)
			}
		})
	})
	if err != nil {
		return nil
	}
	return exit
}

func (r *row) assistant(v *harness.Value) {
	v.Fields(func(string) { // Response or ToolUse
		v.Fields(func(name string) {
			switch name {
			case "message_id":
				r.message = v.Text()
			case "content":
				r.reply = v.Text()
			case "tool_uses":
				v.Items(func() { r.calls = append(r.calls, readCall(v)) })
			}
		})
	})
}

func readCall(v *harness.Value) (out rowCall) {
	v.Fields(func(name string) {
		switch name {
		case "id":
			out.id = v.Text()
		case "name":
			out.name = v.Text()
		case "args":
			raw := v.Raw()
			out.args = plain.Compact(raw)
			var in harness.Value
			_, _ = in.Walk(raw, func(v *harness.Value) {
				v.Fields(func(name string) {
					switch name {
					case "command":
						out.command = v.Text()
					case "path":
						out.file = v.Text()
					}
				})
			})
		}
	})
	return out
}
