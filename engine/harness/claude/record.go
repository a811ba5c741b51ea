package claude

import (
	"handoffd/engine/harness"
)

// record is the part of a line that this package reads.
type record struct {
	typ, subtype, uuid, session, ts  string
	cwd, branch, version             string
	agent, promptSource, sessionKind string
	entrypoint, operation            string
	title, leaf                      string
	sidechain, meta, summary, apiErr bool

	content    []block // of message, system or queue-operation
	isMessage  bool
	messageID  string
	requestID  string
	model      string
	usage      usage
	hasUsage   bool
	attachment string // its type
	trigger    string
	preTokens  int64
	postTokens int64
	errText    string
}

// usage is the token counts of one API message.
type usage struct {
	Input, Output, CacheWrite, CacheRead int64
}

// block is one content block, of whatever type.
type block struct {
	typ, text, id, name, input string
	result                     bool // text is a tool result's
	isError                    bool
}

// read walks one record. Fields of the wrong type read as absent.
func (r *record) read(v *harness.Value) {
	*r = record{content: r.content[:0]}
	v.Fields(func(name string) {
		switch name {
		case "type":
			r.typ = v.Text()
		case "subtype":
			r.subtype = v.Text()
		case "uuid":
			r.uuid = v.Text()
		case "sessionId":
			r.session = v.Text()
		case "timestamp":
			r.ts = v.Text()
		case "cwd":
			r.cwd = v.Text()
		case "gitBranch":
			r.branch = v.Text()
		case "version":
			r.version = v.Text()
		case "agentId":
			r.agent = v.Text()
		case "promptSource":
			r.promptSource = v.Text()
		case "sessionKind":
			r.sessionKind = v.Text()
		case "entrypoint":
			r.entrypoint = v.Text()
		case "operation":
			r.operation = v.Text()
		case "requestId":
			r.requestID = v.Text()
		case "summary", "aiTitle", "customTitle":
			r.title = v.Text()
		case "leafUuid":
			r.leaf = v.Text()
		case "isSidechain":
			r.sidechain = v.Bool()
		case "isMeta":
			r.meta = v.Bool()
		case "isCompactSummary":
			r.summary = v.Bool()
		case "isApiErrorMessage":
			r.apiErr = v.Bool()
		case "content":
			r.readContent(v)
		case "message":
			r.isMessage = true
			r.readMessage(v)
		case "attachment":
			r.readAttachment(v)
		case "compactMetadata":
			v.Fields(func(name string) {
				switch name {
				case "trigger":
					r.trigger = v.Text()
				case "preTokens":
					r.preTokens, _ = v.Int()
				case "postTokens":
					r.postTokens, _ = v.Int()
				}
			})
		case "error":
			r.errText = readError(v)
		}
	})
}

func (r *record) readMessage(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "id":
			r.messageID = v.Text()
		case "model":
			r.model = v.Text()
		case "content":
			r.readContent(v)
		case "usage":
			r.hasUsage = v.Kind() == '{'
			v.Fields(func(name string) {
				switch name {
				case "input_tokens":
					r.usage.Input, _ = v.Int()
				case "output_tokens":
					r.usage.Output, _ = v.Int()
				case "cache_creation_input_tokens":
					r.usage.CacheWrite, _ = v.Int()
				case "cache_read_input_tokens":
					r.usage.CacheRead, _ = v.Int()
				}
			})
		}
	})
}

func (r *record) readAttachment(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "type":
			r.attachment = v.Text()
		case "prompt":
			r.readContent(v)
		}
	})
}

// readContent takes a string or an array of blocks.
func (r *record) readContent(v *harness.Value) {
	switch v.Kind() {
	case '"':
		r.content = append(r.content, block{typ: "text", text: v.Text()})
	case '[':
		v.Items(func() {
			switch v.Kind() {
			case '"':
				r.content = append(r.content, block{typ: "text", text: v.Text()})
			case '{':
				r.content = append(r.content, readBlock(v))
			}
		})
	}
}

func readBlock(v *harness.Value) (b block) {
	v.Fields(func(name string) {
		switch name {
		case "type":
			b.typ = v.Text()
		case "text", "thinking":
			b.text = v.Text()
		case "id":
			b.id = v.Text()
		case "tool_use_id":
			b.id = v.Text()
			b.result = true
		case "name":
			b.name = v.Text()
		case "input":
			b.input = string(v.Raw())
		case "is_error":
			b.isError = v.Bool()
		case "content":
			b.text = readResult(v)
		}
	})
	return b
}

// readResult renders the content of a tool result: a string, or blocks of
// text, images and references.
func readResult(v *harness.Value) string {
	switch v.Kind() {
	case '"':
		return v.Text()
	case '[':
		var parts parts
		v.Items(func() {
			if v.Kind() == '"' {
				parts.add(v.Text())
				return
			}
			var typ, text, name string
			v.Fields(func(field string) {
				switch field {
				case "type":
					typ = v.Text()
				case "text":
					text = v.Text()
				case "tool_name", "title", "url":
					if name == "" {
						name = v.Text()
					}
				}
			})
			switch {
			case text != "":
				parts.add(text)
			case typ != "" && typ != "text":
				parts.add(placeholder(typ, name))
			}
		})
		return parts.String()
	case '{':
		var text string
		v.Fields(func(field string) {
			if field == "text" || field == "error_code" || field == "content" {
				text = v.Text()
			}
		})
		return text
	}
	return ""
}

// placeholder stands for content that is not text.
func placeholder(typ, name string) string {
	if name != "" {
		return "[" + typ + ": " + name + "]"
	}
	return "[" + typ + "]"
}

func readError(v *harness.Value) string {
	if v.Kind() != '{' {
		return v.Text()
	}
	var text string
	v.Fields(func(name string) {
		switch name {
		case "message":
			text = v.Text()
		case "error":
			if inner := readError(v); text == "" {
				text = inner
			}
		}
	})
	return text
}

// parts joins texts with newlines.
type parts struct {
	buf []byte
	any bool
}

func (p *parts) add(s string) {
	if p.any {
		p.buf = append(p.buf, '\n')
	}
	p.buf, p.any = append(p.buf, s...), true
}

func (p *parts) String() string { return string(p.buf) }
