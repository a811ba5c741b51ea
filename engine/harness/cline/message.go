package cline

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// talk is what reading messages as they are shown remembers.
type talk struct {
	asked bool   // the task was said
	done  string // the newest result of the task
	cut   string // the newest cut of the model's conversation
}

// The flags that Cline appends to a text, for the editor to read.
const (
	flagChanges  = "HAS_CHANGES"
	flagApproval = "REQ_APP"
)

// quiet are the kinds that say nothing of the work: requests, whose text is the
// whole request again, their retries, and what only moves the editor's display.
var quiet = set("api_req_started", "api_req_finished", "api_req_retried", "api_req_deleted", "api_req_rate_limit_wait",
	"api_req_rate_limited", "deleted_api_reqs", "subagent_usage", "checkpoint_created", "checkpoint_saved", "resume_task",
	"resume_completed_task", "mcp_server_request_started", "browser_session_status", "conditional_rules_applied")

// show takes a message as it is shown.
func (d *document) show(e *element) {
	id := e.ts + "/" + e.kind1 + "/" + e.kind
	if e.model != "" {
		d.meta.Model = plain.Text(e.model)
	}
	d.cutOff(id, e)
	if e.reasoning != "" {
		d.emit(id+"/reasoning", turn.Turn{Class: turn.Thought, Text: e.reasoning})
	}
	if quiet[e.kind] {
		d.request(e)
		return
	}
	if running(e.text) {
		return // told again when it has ended
	}
	text := e.text
	for range e.images {
		text = joined(text, plain.Image)
	}
	for _, file := range e.files {
		text = joined(text, "[file "+file+"]")
	}
	switch e.kind {
	case "task":
		d.user(id, text)
	case "text":
		if !d.asked { // how a task begins where no message is of the kind "task"
			d.user(id, text)
			return
		}
		d.emit(id, turn.Turn{Class: turn.Agent, Text: text})
	case "user_feedback", "user_feedback_diff":
		d.user(id, text)
	case "reasoning":
		d.emit(id, turn.Turn{Class: turn.Thought, Text: text})
	case "completion_result":
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), flagChanges))
		if e.kind1 == "ask" && text == d.done {
			return // what was said is asked about
		}
		d.done = text
		d.emit(id, turn.Turn{Class: turn.Agent, Text: text})
	case "followup", "plan_mode_respond", "act_mode_respond", "image":
		d.emit(id, turn.Turn{Class: turn.Agent, Text: question(text)})
	case "condense_context":
		d.summary(id, e.summary)
	case "condense":
		d.summary(id, text)
	case "sliding_window_truncation":
		d.summary(id, "[context truncated: "+plain.FirstOf(e.removed, "some")+" messages are left out of the model's conversation]")
	default:
		d.work(id, e.kind, text)
	}
}

// work takes what is said or asked of a tool, and everything else.
func (d *document) work(id, kind, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	switch kind {
	case "tool":
		u := readUse(text)
		use := turn.Tool{}
		if editing[u.name] {
			use.Edits = u.paths
		}
		if u.name == "summarizeTask" {
			d.meta.Compactions++
		}
		d.call(id, u.name, text, use)
	case "command":
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), flagApproval))
		d.call(id, commandTool, text, turn.Tool{Command: plain.Text(text)})
	case "command_output":
		d.result(id, text, turn.Tool{Name: commandTool})
	case "use_mcp_server":
		d.call(id, readUse(text).name, text, turn.Tool{})
	case "browser_action_launch", "browser_action", "use_subagents", "new_task", "load_mcp_documentation":
		d.call(id, kind, text, turn.Tool{})
	case "browser_action_result", "mcp_server_response", "codebase_search_result", "subtask_result", "subagent":
		d.result(id, text, turn.Tool{})
	case "error", "diff_error", "clineignore_error", "rooignore_error", "api_req_failed", "mistake_limit_reached",
		"info", "task_progress", "shell_integration_warning":
		d.emit(id, turn.Turn{Class: turn.Other, Text: text})
	default:
		d.emit(id, turn.Turn{Class: turn.Other, Text: "[" + kind + "] " + text})
	}
}

const commandTool = "execute_command"

// editing are the tools that change files, as messages name them.
var editing = set("editedExistingFile", "newFileCreated", "fileDeleted", "appliedDiff", "insertContent", "searchAndReplace", "insertCodeBlock", "searchReplace")

func (d *document) user(id, text string) {
	if !d.asked {
		d.asked = true
		d.begin(text)
	}
	d.emit(id, turn.Turn{Class: turn.User, Text: text})
}

func (d *document) summary(id, text string) {
	d.meta.Compactions++
	d.emit(id, turn.Turn{Class: turn.Other, Text: plain.FirstOf(text, "(context condensed)"), Mark: markSummary})
}

// cutOff says which messages are left out of the model's conversation from here
// on. Each message repeats the range that holds.
func (d *document) cutOff(id string, e *element) {
	if e.cut == "" || e.cut == "null" || e.cut == d.cut {
		return
	}
	d.cut = e.cut
	d.meta.Compactions++
	d.emit(id+"/cut", turn.Turn{Class: turn.Other, Text: "[context truncated: messages " + e.cut + " are left out of the model's conversation]"})
}

// request takes what a request says of itself: its cost, and in what it tells
// the model the working directory and, in Roo Code, the model.
func (d *document) request(e *element) {
	var v harness.Value
	var u usage
	var sent string
	_, err := v.Walk([]byte(e.text), func(v *harness.Value) {
		u, sent = usage{}, ""
		v.Fields(func(name string) {
			switch name {
			case "request":
				sent = v.Text()
			case "tokensIn":
				u.in = count(v)
			case "tokensOut":
				u.out = count(v)
			case "cacheReads":
				u.cacheRead = count(v)
			case "cacheWrites":
				u.cacheWrite = count(v)
			}
		})
	})
	if err != nil {
		return
	}
	d.spend(u)
	d.locate(sent)
	if _, rest, ok := strings.Cut(sent, "\n<model>"); ok && e.model == "" {
		if name, _, ok := strings.Cut(rest, "</model>"); ok && name != "" && !strings.Contains(name, "\n") {
			d.meta.Model = plain.Text(name)
		}
	}
}

// use is what the text of a tool's message says.
type use struct {
	name  string
	paths []string
}

func readUse(text string) (u use) {
	var v harness.Value
	var server, tool, uri string
	_, err := v.Walk([]byte(text), func(v *harness.Value) {
		u, server, tool, uri = use{}, "", "", ""
		v.Fields(func(name string) {
			switch name {
			case "tool":
				u.name = v.Text()
			case "path":
				u.paths = append(u.paths, paths(v)...)
			case "batchDiffs":
				v.Items(func() {
					v.Fields(func(name string) {
						if name == "path" {
							u.paths = append(u.paths, paths(v)...)
						}
					})
				})
			case "serverName":
				server = v.Text()
			case "toolName":
				tool = v.Text()
			case "uri":
				uri = v.Text()
			}
		})
	})
	if err != nil {
		return use{}
	}
	if u.name == "" && server != "" {
		u.name = server + "/" + plain.FirstOf(tool, uri)
	}
	return u
}

func paths(v *harness.Value) []string {
	if s := plain.Text(v.Text()); s != "" {
		return []string{s}
	}
	return nil
}

// question is what the user is asked: a text, or JSON with the answers that are
// offered. Which of them was taken is written into it later and left out.
func question(text string) string {
	var v harness.Value
	var asked string
	var offers []string
	_, err := v.Walk([]byte(text), func(v *harness.Value) {
		asked, offers = "", nil
		v.Fields(func(name string) {
			switch name {
			case "question", "response":
				asked = v.Text()
			case "options", "suggest":
				v.Items(func() {
					if v.Kind() == '"' {
						offers = append(offers, v.Text())
						return
					}
					v.Fields(func(name string) {
						if name == "answer" {
							offers = append(offers, v.Text())
						}
					})
				})
			}
		})
	})
	if err != nil || asked == "" {
		return text
	}
	for _, o := range offers {
		asked = joined(asked, "- "+o)
	}
	return asked
}

// running reports whether a text is the state of something that goes on: it is
// written again in place until that has ended.
func running(text string) bool {
	if !strings.HasPrefix(text, "{") {
		return false
	}
	var v harness.Value
	var status string
	_, err := v.Walk([]byte(text), func(v *harness.Value) {
		status = ""
		v.Fields(func(name string) {
			if name == "status" {
				status = v.Text()
			}
		})
	})
	return err == nil && (status == "running" || status == "generating" || status == "pending")
}

func joined(a, b string) string { return strings.TrimSpace(a + "\n" + b) }
