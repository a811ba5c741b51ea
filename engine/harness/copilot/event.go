package copilot

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
)

// event is one line, read.
type event struct {
	object, hasData, hasParent, foreign bool

	kind, id, ts string
	data         data
}

// enveloped reports whether the line has the shape of an event.
func (e *event) enveloped() bool {
	return e.object && !e.foreign && e.hasData && e.kind != "" && e.id != ""
}

// data is what the events say, whichever of them says it.
type data struct {
	sessionID, version, title string
	cwd, branch               string
	model                     string
	content                   string
	source                    string
	reasoning                 string
	files                     []string // attachments
	message                   string
	reason                    string
	summary                   string
	name                      string
	requests                  []request
	call                      request
	parent                    string // the call that started the subagent that speaks
	success, hasSuccess       bool
	result, detail, fault     string
	output                    int64 // tokens of one answer
	usage                     usage // of a whole run
	context, window           int64
	removed                   int64
	hasRemoved                bool
	upTo                      string
}

// request is a call of a tool.
type request struct {
	id, name, args string
	command        string
	edits          []string
}

// usage is what one run of the CLI used, all models together.
type usage struct{ input, output, cached, written int64 }

// read reads a line from the start.
func (e *event) read(v *harness.Value) {
	*e = event{object: v.Kind() == '{'}
	v.Fields(func(field string) {
		switch field {
		case "type":
			e.kind = v.Text()
		case "id":
			e.id = v.Text()
		case "timestamp":
			e.ts = v.Text()
		case "parentId":
			e.hasParent = true
		case "data":
			if v.Kind() == '{' {
				e.hasData = true
				v.Fields(func(field string) { e.data.field(v, field) })
			}
		case "uuid", "parentUuid", "sessionId", "payload", "message", "role":
			e.foreign = true
		}
	})
}

func (d *data) field(v *harness.Value, field string) {
	switch field {
	case "sessionId":
		d.sessionID = v.Text()
	case "copilotVersion":
		d.version = v.Text()
	case "title":
		d.title = v.Text()
	case "context":
		v.Fields(func(field string) { d.where(v, field) })
	case "cwd", "branch":
		d.where(v, field)
	case "newModel", "model", "selectedModel", "currentModel":
		if s := v.Text(); s != "" {
			d.model = s
		}
	case "content":
		d.content = plain.Text(v.Text())
	case "source":
		d.source = v.Text()
	case "reasoningText":
		d.reasoning = plain.Text(v.Text())
	case "attachments":
		v.Items(func() { d.files = append(d.files, readAttachment(v)) })
	case "message":
		d.message = plain.Text(v.Text())
	case "reason":
		d.reason = plain.Text(v.Text())
	case "summaryContent", "summary":
		if s := plain.Text(v.Text()); s != "" {
			d.summary = s
		}
	case "name", "agentDisplayName", "agentName":
		if s := plain.Text(v.Text()); s != "" && d.name == "" {
			d.name = s
		}
	case "toolRequests":
		v.Items(func() {
			if v.Kind() == '{' {
				d.requests = append(d.requests, readRequest(v))
			}
		})
	case "toolCallId", "toolName", "arguments":
		d.call.field(v, field)
	case "parentToolCallId":
		d.parent = v.Text()
	case "success":
		d.hasSuccess, d.success = true, v.Bool()
	case "result":
		d.readResult(v)
	case "error":
		d.fault = readFault(v)
	case "outputTokens":
		d.output, _ = v.Int()
	case "modelMetrics":
		v.Fields(func(string) { d.usage.model(v) })
	case "currentTokens":
		d.context, _ = v.Int()
	case "tokenLimit":
		d.window, _ = v.Int()
	case "messagesRemovedDuringTruncation", "eventsRemoved":
		d.removed, d.hasRemoved = v.Int()
	case "upToEventId":
		d.upTo = plain.Text(v.Text())
	}
}

func (d *data) where(v *harness.Value, field string) {
	switch field {
	case "cwd":
		d.cwd = v.Text()
	case "branch":
		d.branch = v.Text()
	}
}

// readAttachment reads what a prompt carries, of which only the name is kept.
func readAttachment(v *harness.Value) string {
	var kind, name, mime string
	v.Fields(func(field string) {
		switch field {
		case "type":
			kind = v.Text()
		case "path", "displayName", "filePath":
			if s := plain.Text(v.Text()); name == "" {
				name = s
			}
		case "mimeType":
			mime = v.Text()
		}
	})
	switch {
	case strings.HasPrefix(mime, "image/"), kind == "image":
		return plain.Image
	case name != "":
		return "[file " + name + "]"
	}
	return "[file]"
}

func readRequest(v *harness.Value) request {
	var r request
	v.Fields(func(field string) { r.field(v, field) })
	return r
}

func (r *request) field(v *harness.Value, field string) {
	switch field {
	case "toolCallId":
		r.id = plain.Text(v.Text())
	case "name", "toolName":
		r.name = plain.Text(v.Text())
	case "arguments":
		var raw []byte
		if v.Kind() == '"' { // as the model wrote them
			r.args = plain.Text(v.Text())
			raw = []byte(r.args)
		} else {
			raw = v.Raw()
			r.args = plain.Text(plain.Compact(raw))
		}
		r.command, r.edits = journal.Targets(raw, "path", "file_path", "filePath")
	}
}

// readResult reads what a tool answered: a string in some builds, else what
// the model saw and, for people, more detail.
func (d *data) readResult(v *harness.Value) {
	if v.Kind() != '{' {
		d.result = plain.Text(v.Text())
		return
	}
	v.Fields(func(field string) {
		switch field {
		case "content":
			d.result = plain.Text(v.Text())
		case "detailedContent":
			d.detail = plain.Text(v.Text())
		}
	})
}

func readFault(v *harness.Value) (text string) {
	if v.Kind() != '{' {
		return plain.Text(v.Text())
	}
	v.Fields(func(field string) {
		if field == "message" {
			text = plain.Text(v.Text())
		}
	})
	return text
}

// model adds what one model used. Its input counts what was read from the
// cache too: measured on 1.0.12, two requests of 19,816 tokens of context are
// reported as 40,503 input and 31,836 cached tokens.
func (u *usage) model(v *harness.Value) {
	v.Fields(func(field string) {
		if field != "usage" {
			return
		}
		var input, cached int64
		v.Fields(func(field string) {
			n, _ := v.Int()
			switch field {
			case "inputTokens":
				input = n
			case "outputTokens":
				u.output += n
			case "cacheReadTokens":
				cached = n
			case "cacheWriteTokens":
				u.written += n
			}
		})
		u.input += max(0, input-cached)
		u.cached += cached
	})
}
