package droid

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
)

// record is one line, read.
type record struct {
	object, foreign bool

	kind, id, ts, parentID string

	// the header
	cwd, title, sessionTitle string
	owner                    bool
	caller, origin           string // the session of the call, the one forked

	summary string // of a compaction
	model   string

	hasMessage bool
	blocks     bool // the content is a list
	message
}

// message is the message of a line.
type message struct {
	role       string
	parts      []part
	reasoning  string
	visibility string
	hook       bool
}

// part is one block of a message.
type part struct {
	kind, text     string
	id, name, args string
	command        string
	edits          []string
	failed         bool
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
		case "timestamp":
			r.ts = plain.Stamp(v.Text())
		case "parentId":
			r.parentID = v.Text()
		case "cwd":
			r.cwd = v.Text()
		case "title":
			r.title = v.Text()
		case "sessionTitle":
			r.sessionTitle = v.Text()
		case "owner":
			r.owner = true
			v.Skip()
		case "callingSessionId":
			r.caller = v.Text()
		case "parent":
			r.origin = v.Text()
		case "summaryText":
			r.summary = plain.Text(v.Text())
		case "summary":
			v.Fields(func(field string) {
				if field == "title" || field == "body" {
					r.summary = strings.TrimSpace(r.summary + "\n" + plain.Text(v.Text()))
				}
			})
		case "model":
			r.model = v.Text()
		case "message":
			if v.Kind() == '{' {
				r.hasMessage = true
				v.Fields(func(field string) { r.messageField(v, field) })
			}
		case "role", "text", "content": // a message without an envelope
			r.hasMessage = true
			r.messageField(v, field)
		case "uuid", "parentUuid", "sessionId", "payload", "data":
			r.foreign = true
		}
	})
}

func (r *record) messageField(v *harness.Value, field string) {
	m := &r.message
	switch field {
	case "role":
		m.role = v.Text()
	case "content", "text":
		r.blocks = v.Kind() == '['
		m.parts = readParts(v)
	case "modelId", "model":
		r.model = v.Text()
	case "visibility":
		m.visibility = v.Text()
	case "hookEventName":
		m.hook = v.Text() != ""
	case "chatCompletionReasoningContent":
		m.reasoning = plain.Text(v.Text())
	case "timestamp", "usage":
		r.foreign = true // Pi's
	}
}

// readParts reads content: a string, or blocks.
func readParts(v *harness.Value) []part {
	if v.Kind() != '[' {
		if s := plain.Text(v.Text()); s != "" {
			return []part{{kind: "text", text: s}}
		}
		return nil
	}
	var list []part
	v.Items(func() {
		if v.Kind() == '{' {
			list = append(list, readPart(v))
		} else if s := plain.Text(v.Text()); s != "" {
			list = append(list, part{kind: "text", text: s})
		}
	})
	return list
}

func readPart(v *harness.Value) (p part) {
	v.Fields(func(field string) {
		switch field {
		case "type":
			p.kind = v.Text()
		case "text", "thinking":
			if s := plain.Text(v.Text()); s != "" {
				p.text = s
			}
		case "content":
			var texts []string
			for _, c := range readParts(v) {
				if c.text != "" {
					texts = append(texts, c.text)
				}
			}
			p.text = strings.Join(texts, "\n")
		case "id", "tool_use_id":
			p.id = plain.Text(v.Text())
		case "name":
			p.name = plain.Text(v.Text())
		case "is_error":
			p.failed = v.Bool()
		case "input":
			raw := v.Raw()
			p.args = plain.Text(plain.Compact(raw))
			p.command, p.edits = journal.Targets(raw, "file_path", "path")
		}
	})
	switch p.kind {
	case "image":
		p.text = plain.Image
	case "document":
		p.text = "[file]"
	}
	return p
}

// settings is what <id>.settings.json says of a session. It is rewritten in
// place, and its tokens are the sum so far.
type settings struct {
	model                          string
	known                          bool
	input, output, cached, written int64
}

func readSettings(raw []byte) (s settings) {
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		s = settings{}
		v.Fields(func(field string) {
			switch field {
			case "model":
				s.model = plain.Text(v.Text())
			case "tokenUsage":
				s.known = v.Kind() == '{'
				v.Fields(func(field string) {
					n, _ := v.Int()
					switch field {
					case "inputTokens":
						s.input = n
					case "outputTokens":
						s.output = n
					case "cacheReadTokens":
						s.cached = n
					case "cacheCreationTokens":
						s.written = n
					}
				})
			}
		})
	})
	if err != nil {
		return settings{} // half written
	}
	return s
}
