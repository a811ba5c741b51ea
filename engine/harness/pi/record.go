package pi

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
)

// kinds are the types of an entry.
var kinds = map[string]bool{
	"session": true, "message": true, "model_change": true, "thinking_level_change": true,
	"compaction": true, "branch_summary": true, "custom": true, "custom_message": true,
	"label": true, "session_info": true, "title": true,
}

// roles are those of a message.
var roles = map[string]bool{
	"user": true, "assistant": true, "toolResult": true, "bashExecution": true,
	"custom": true, "hookMessage": true, "branchSummary": true, "compactionSummary": true,
}

// record is one line, read.
type record struct {
	object, foreign bool

	kind, id, ts string
	parentID     string
	hasParent    bool
	cwd, origin  string // header; origin is the file that a fork continues
	model, name  string
	summary      string
	content      []part // of a custom_message

	hasMessage bool
	message
}

// message is the message of an entry.
type message struct {
	role     string
	millis   bool // it has a time in milliseconds
	parts    []part
	callID   string
	toolName string
	failed   bool
	command  string
	output   string
	exit     *int
	stop     string
	fault    string
	text     string // a summary in a message
	model    string
	usage    usage
}

// usage is what an answer used.
type usage struct {
	known                                 bool
	input, output, cached, written, total int64
}

// part is one block of a message.
type part struct {
	kind, text     string
	id, name, args string
	command        string
	edits          []string
}

// read reads a line from the start.
func (r *record) read(v *harness.Value) {
	*r = record{object: v.Kind() == '{'}
	v.Fields(func(field string) {
		switch field {
		case "type":
			r.kind = v.Text()
		case "id":
			r.id = v.Text()
		case "parentId":
			r.hasParent = true
			r.parentID = v.Text()
		case "timestamp":
			r.ts = v.Text()
		case "cwd":
			r.cwd = v.Text()
		case "parentSession", "branchedFrom":
			if s := v.Text(); s != "" {
				r.origin = s
			}
		case "modelId":
			r.model = v.Text()
		case "name", "title":
			r.name = v.Text()
		case "summary":
			r.summary = plain.Text(v.Text())
		case "content":
			r.content = readParts(v)
		case "message":
			if v.Kind() == '{' {
				r.hasMessage = true
				r.message.read(v)
			}
		case "uuid", "parentUuid", "sessionId", "payload", "record_type":
			r.foreign = true
		}
	})
}

// read reads a message.
func (m *message) read(v *harness.Value) {
	v.Fields(func(field string) {
		switch field {
		case "role":
			m.role = v.Text()
		case "timestamp":
			m.millis = v.Kind() == '0'
		case "content":
			m.parts = readParts(v)
		case "toolCallId":
			m.callID = v.Text()
		case "toolName":
			m.toolName = v.Text()
		case "isError":
			m.failed = v.Bool()
		case "command":
			m.command = plain.Text(v.Text())
		case "output":
			m.output = plain.Text(v.Text())
		case "exitCode":
			if n, ok := v.Int(); ok {
				exit := int(n)
				m.exit = &exit
			}
		case "stopReason":
			m.stop = v.Text()
		case "errorMessage":
			m.fault = plain.Text(v.Text())
		case "summary":
			m.text = plain.Text(v.Text())
		case "model":
			m.model = v.Text()
		case "usage":
			m.usage.read(v)
		}
	})
}

func (u *usage) read(v *harness.Value) {
	u.known = v.Kind() == '{'
	v.Fields(func(field string) {
		var to *int64
		switch field {
		case "input":
			to = &u.input
		case "output":
			to = &u.output
		case "cacheRead":
			to = &u.cached
		case "cacheWrite":
			to = &u.written
		case "totalTokens":
			to = &u.total
		default:
			return
		}
		*to, _ = v.Int()
	})
}

// readParts reads content: a string, or blocks.
func readParts(v *harness.Value) []part {
	if v.Kind() == '"' {
		return []part{{kind: "text", text: plain.Text(v.Text())}}
	}
	var list []part
	v.Items(func() {
		var p part
		if v.Kind() == '"' {
			list = append(list, part{kind: "text", text: plain.Text(v.Text())})
			return
		}
		v.Fields(func(field string) {
			switch field {
			case "type":
				p.kind = v.Text()
			case "text", "thinking":
				p.text = plain.Text(v.Text())
			case "id":
				p.id = v.Text()
			case "name":
				p.name = v.Text()
			case "arguments":
				raw := v.Raw()
				p.args = plain.Compact(raw)
				p.command, p.edits = journal.Targets(raw, "path", "file_path")
			}
		})
		if p.kind == "image" {
			p.text = plain.Image
		}
		list = append(list, p)
	})
	return list
}

// said joins the text of parts.
func said(parts []part) string {
	var texts []string
	for _, p := range parts {
		if (p.kind == "text" || p.kind == "image") && p.text != "" {
			texts = append(texts, p.text)
		}
	}
	text := strings.Join(texts, "\n")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}
