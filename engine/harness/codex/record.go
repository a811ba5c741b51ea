package codex

import (
	"slices"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// envelopes are the types of a line with a payload.
var envelopes = map[string]bool{
	"session_meta": true, "turn_context": true, "response_item": true, "event_msg": true,
	"compacted": true, "world_state": true, "inter_agent_communication": true,
	"inter_agent_communication_metadata": true, "token_usage_record": true,
}

// items are the types of a response item.
var items = map[string]bool{
	"message": true, "reasoning": true, "agent_message": true,
	"function_call": true, "function_call_output": true,
	"custom_tool_call": true, "custom_tool_call_output": true,
	"local_shell_call": true, "local_shell_call_output": true, "web_search_call": true, "image_generation_call": true,
	"tool_search_call": true, "tool_search_output": true,
	"ghost_snapshot": true, "additional_tools": true, "compaction_trigger": true,
	"compaction": true, "compaction_summary": true, "context_compaction": true,
}

// record is one line, read.
type record struct {
	object     bool
	ts         string
	kind       string
	recordType string
	enveloped  bool // it has a payload
	// instructions says that the line has that member, as the header of a
	// bare rollout does; foreign that it has one that Codex never writes.
	instructions bool
	foreign      bool
	// fields are those of the payload, or of the line when it has none.
	fields
}

// header reports whether the line is the first of a bare rollout (B14).
func (r *record) header() bool {
	return r.kind == "" && !r.enveloped && r.id != "" && r.ts != "" && r.instructions
}

// read reads a line from the start.
func (r *record) read(v *harness.Value) {
	*r = record{fields: fields{parts: r.parts[:0], summary: r.summary[:0]}}
	if v.Kind() != '{' {
		v.Skip()
		return
	}
	r.object = true
	v.Fields(func(name string) {
		switch name {
		case "timestamp":
			r.ts = v.Text()
		case "type":
			r.kind = v.Text()
		case "record_type":
			r.recordType = v.Text()
		case "payload":
			if v.Kind() != '{' {
				return
			}
			r.enveloped = true
			v.Fields(func(name string) { r.field(v, name) })
		case "instructions":
			r.instructions = true
		case "uuid", "sessionId", "parentId", "parentUuid":
			r.foreign = true
		default:
			if !r.enveloped {
				r.field(v, name)
			}
		}
	})
	if !r.enveloped {
		r.fields.kind = r.kind
	}
}

// part is one element of a message's content.
type part struct {
	text  string
	image bool
}

// fields are the members of any payload. The kinds share names, so that one
// reader serves them all, whatever the order of members.
type fields struct {
	kind string

	// messages and reasoning
	id, role, message, text string
	hasContent              bool
	content                 string // a content that is a string
	parts                   []part
	summary                 []string
	images                  int

	// tools
	name, namespace, callID, status string
	args                            string
	output                          output
	command                         string
	action, query                   string // raw action; what is searched or opened
	prompt                          string
	stdout                          string
	exit                            *int
	failed                          bool
	edits                           []string
	server, tool                    string

	// sessions and turns
	sessionID, forkedFrom, parent, threadSource string
	subagent                                    bool
	cwd, model, version, branch                 string
	turnID, reason, fault, threadName           string
	numTurns                                    int64
	usage                                       usage
	window                                      int64

	item *fields // of item_completed
}

// field reads one member.
func (f *fields) field(v *harness.Value, name string) {
	switch name {
	case "type":
		f.kind = v.Text()
	case "id":
		f.id = v.Text()
	case "role":
		f.role = v.Text()
	case "message":
		f.message = v.Text()
	case "text":
		f.text = v.Text()
	case "content":
		f.readContent(v)
	case "summary", "summary_text", "raw_content":
		f.readSummary(v)
	case "images", "local_images":
		v.Items(func() { f.images++ })
	case "name":
		f.name = v.Text()
	case "namespace":
		f.namespace = v.Text()
	case "call_id":
		f.callID = v.Text()
	case "status":
		f.status = v.Text()
	case "arguments", "input":
		f.args = rawText(v)
	case "output":
		f.output.read(v)
	case "tools":
		// The result of tool_search_output.
		if v.Kind() == '[' {
			f.output = output{has: true, text: string(v.Raw())}
		}
	case "command":
		f.command = readCommand(v)
	case "action":
		f.readAction(v)
	case "query":
		f.query = v.Text()
	case "prompt", "revised_prompt":
		f.prompt = v.Text()
	case "aggregated_output", "stdout":
		if s := v.Text(); f.stdout == "" {
			f.stdout = s
		}
	case "exit_code":
		if n, ok := v.Int(); ok {
			exit := int(n)
			f.exit = &exit
		}
	case "success":
		if v.Kind() == 'f' {
			f.failed = true
		}
	case "changes":
		v.Fields(func(path string) { f.edits = append(f.edits, path) })
		slices.Sort(f.edits)
	case "invocation":
		v.Fields(func(name string) {
			if name == "server" || name == "tool" || name == "arguments" {
				f.field(v, name)
			}
		})
	case "server":
		f.server = v.Text()
	case "tool":
		f.tool = v.Text()
	case "result":
		f.readResult(v)
	case "item":
		if v.Kind() == '{' {
			f.item = &fields{}
			v.Fields(func(name string) { f.item.field(v, name) })
		}
	default:
		f.sessionField(v, name)
	}
}

// readContent reads a message's content: parts, a string, or null.
func (f *fields) readContent(v *harness.Value) {
	f.hasContent = v.Kind() == '[' || v.Kind() == '"'
	if v.Kind() == '"' {
		f.content = plain.Text(v.Text())
		return
	}
	v.Items(func() {
		if p := readPart(v); p.image || p.text != "" {
			f.parts = append(f.parts, p)
		}
	})
}

// readPart reads one element of content. Whatever has a text is text, whether
// "input_text", "output_text", "text" or "Text".
func readPart(v *harness.Value) part {
	if v.Kind() == '"' {
		return part{text: plain.Text(v.Text())}
	}
	var p part
	var kind string
	v.Fields(func(name string) {
		switch name {
		case "type":
			kind = v.Text()
		case "text":
			p.text = plain.Text(v.Text())
		}
	})
	switch strings.ToLower(kind) {
	case "input_image", "image", "local_image", "localimage":
		return part{image: true}
	}
	// Codex wraps a pasted picture in a pair of text parts.
	if p.text == "</image>" || strings.HasPrefix(p.text, "<image name=") && strings.HasSuffix(p.text, ">") {
		return part{}
	}
	return p
}

// readSummary reads the texts of reasoning; a string is not one (turn_context
// has a "summary" too).
func (f *fields) readSummary(v *harness.Value) {
	v.Items(func() {
		if p := readPart(v); p.text != "" {
			f.summary = append(f.summary, p.text)
		}
	})
}

// readAction reads what a local shell or a web search does.
func (f *fields) readAction(v *harness.Value) {
	raw := v.Raw()
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	f.action = plain.Compact(raw)
	var inner harness.Value
	// The action was valid as part of the line, so the error is of no use.
	_, _ = inner.Walk(raw, func(v *harness.Value) {
		v.Fields(func(name string) {
			switch name {
			case "command":
				f.command = readCommand(v)
			case "query", "url", "pattern":
				if s := v.Text(); s != "" {
					f.query = s
				}
			}
		})
	})
}

// readResult reads what an MCP server answered, {"Ok":{…}} or {"Err":"…"}, or
// {…} itself. A string is the bytes of a generated picture.
func (f *fields) readResult(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "Ok", "ok":
			f.readResult(v)
		case "Err", "err":
			f.failed = true
			f.stdout = plain.Text(v.Text())
		case "isError", "is_error":
			if v.Bool() {
				f.failed = true
			}
		case "content":
			var texts []string
			v.Items(func() {
				if p := readPart(v); p.image {
					texts = append(texts, plain.Image)
				} else if p.text != "" {
					texts = append(texts, p.text)
				}
			})
			f.stdout = strings.Join(texts, "\n")
		}
	})
}

// rawText reads a string as its text and anything else as it stands.
func rawText(v *harness.Value) string {
	switch v.Kind() {
	case '"':
		return v.Text()
	case 'n':
		v.Skip()
		return ""
	}
	return plain.Compact(v.Raw())
}
