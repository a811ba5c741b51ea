package qwen

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
)

// record is one line, read.
type record struct {
	object bool

	uuid, parent, session, ts string
	kind, subtype, provenance string
	cwd, version, branch      string
	model                     string
	agent                     string
	sidechain                 bool
	forkedFrom                string
	hasMessage, hasParts      bool
	parts                     []part
	usage                     usage
	window                    int64
	hasOutcome                bool
	outcome                   outcome
	hasPayload                bool
	payload                   payload
}

// enveloped reports whether the line has the shape of a record.
func (r *record) enveloped() bool {
	switch r.kind {
	case "user", "assistant", "tool_result", "system":
		return r.object && r.uuid != "" && r.session != ""
	}
	return false
}

// part is one part of a message.
type part struct {
	text           string
	thought        bool
	call, answer   bool
	id, name, args string
	command        string
	edits          []string
	failed         bool
}

// usage is what an answer used; the prompt counts what came from the cache.
type usage struct {
	known                          bool
	prompt, cached, output, thinks int64
}

// outcome is what the CLI says of a tool result beside its content.
type outcome struct{ callID, status, display, fault string }

// payload is what a record says beside its message.
type payload struct {
	display, command, phase, title, parent, model string
	hidden                                        bool
	removed                                       int64
	hasRemoved                                    bool
	summary                                       string   // first text of a compressed history
	lines                                         []string // what the CLI showed
	files                                         []string
}

// read reads a line from the start.
func (r *record) read(v *harness.Value) {
	*r = record{object: v.Kind() == '{'}
	v.Fields(func(field string) {
		switch field {
		case "uuid":
			r.uuid = v.Text()
		case "parentUuid":
			r.parent = v.Text()
		case "sessionId":
			r.session = v.Text()
		case "timestamp":
			r.ts = v.Text()
		case "type":
			r.kind = v.Text()
		case "subtype":
			r.subtype = v.Text()
		case "provenance":
			r.provenance = v.Text()
		case "cwd":
			r.cwd = v.Text()
		case "version":
			r.version = v.Text()
		case "gitBranch":
			r.branch = v.Text()
		case "model":
			r.model = v.Text()
		case "agentId":
			r.agent = v.Text()
		case "isSidechain":
			r.sidechain = v.Bool()
		case "contextWindowSize":
			r.window, _ = v.Int()
		case "forkedFrom":
			v.Fields(func(field string) {
				if field == "sessionId" {
					r.forkedFrom = v.Text()
				}
			})
		case "message":
			r.hasMessage = v.Kind() == '{'
			v.Fields(func(field string) {
				if field == "parts" {
					r.hasParts = v.Kind() == '['
					r.parts = readParts(v)
				}
			})
		case "usageMetadata":
			r.usage.read(v)
		case "toolCallResult":
			r.hasOutcome = v.Kind() == '{'
			r.outcome.read(v)
		case "systemPayload":
			r.hasPayload = v.Kind() == '{'
			v.Fields(func(field string) { r.payload.field(v, field) })
		}
	})
}

func readParts(v *harness.Value) (list []part) {
	if v.Kind() == '"' {
		if s := plain.Text(v.Text()); s != "" {
			return []part{{text: s}}
		}
		return nil
	}
	v.Items(func() {
		if v.Kind() == '"' {
			list = append(list, part{text: plain.Text(v.Text())})
			return
		}
		list = append(list, readPart(v))
	})
	return list
}

func readPart(v *harness.Value) (p part) {
	v.Fields(func(field string) {
		switch field {
		case "text":
			p.text = plain.Text(v.Text())
		case "thought":
			p.thought = v.Bool()
		case "inlineData", "fileData":
			p.text = "[file]"
			v.Fields(func(field string) {
				if field == "mimeType" && strings.HasPrefix(v.Text(), "image/") {
					p.text = plain.Image
				}
			})
		case "functionCall":
			p.call = true
			v.Fields(func(field string) { p.function(v, field) })
		case "functionResponse":
			p.answer = true
			v.Fields(func(field string) { p.function(v, field) })
		}
	})
	return p
}

func (p *part) function(v *harness.Value, field string) {
	switch field {
	case "id":
		p.id = plain.Text(v.Text())
	case "name":
		p.name = plain.Text(v.Text())
	case "args":
		raw := v.Raw()
		p.args = plain.Text(plain.Compact(raw))
		p.command, p.edits = journal.Targets(raw, "file_path", "absolute_path", "path")
	case "response":
		p.readResponse(v)
	}
}

// readResponse reads what a tool answered: {"output":…}, {"error":…}, or any
// other value, which is then kept as it stands.
func (p *part) readResponse(v *harness.Value) {
	if v.Kind() != '{' {
		p.text = plain.Text(v.Text())
		return
	}
	raw := v.Raw()
	p.text = plain.Text(plain.Compact(raw))
	var inner harness.Value
	// The response was valid as part of the line, so the error is of no use.
	_, _ = inner.Walk(raw, func(v *harness.Value) {
		v.Fields(func(field string) {
			if (field == "output" || field == "error") && v.Kind() == '"' {
				p.text, p.failed = plain.Text(v.Text()), field == "error"
			}
		})
	})
}

func (u *usage) read(v *harness.Value) {
	u.known = v.Kind() == '{'
	v.Fields(func(field string) {
		n, _ := v.Int()
		switch field {
		case "promptTokenCount":
			u.prompt = n
		case "cachedContentTokenCount":
			u.cached = n
		case "candidatesTokenCount":
			u.output = n
		case "thoughtsTokenCount":
			u.thinks = n
		}
	})
}

func (o *outcome) read(v *harness.Value) {
	v.Fields(func(field string) {
		switch field {
		case "callId":
			o.callID = plain.Text(v.Text())
		case "status":
			o.status = v.Text()
		case "resultDisplay":
			o.display = plain.Text(v.Text())
		case "error":
			if v.Kind() == '{' {
				v.Fields(func(field string) {
					if field == "message" {
						o.fault = plain.Text(v.Text())
					}
				})
			} else {
				o.fault = plain.Text(v.Text())
			}
		}
	})
}

func (p *payload) field(v *harness.Value, field string) {
	switch field {
	case "displayText":
		p.display = plain.Text(v.Text())
	case "rawCommand":
		p.command = plain.Text(v.Text())
	case "phase":
		p.phase = v.Text()
	case "hiddenInvocation":
		p.hidden = v.Bool()
	case "customTitle":
		p.title = plain.Text(v.Text())
	case "parentSessionId":
		p.parent = plain.Text(v.Text())
	case "modelId":
		p.model = plain.Text(v.Text())
	case "truncatedCount":
		p.removed, p.hasRemoved = v.Int()
	case "compressedHistory":
		v.Items(func() {
			v.Fields(func(field string) {
				if field != "parts" || p.summary != "" {
					return
				}
				for _, c := range readParts(v) {
					if p.summary == "" && c.text != "" && !c.answer {
						p.summary = c.text
					}
				}
			})
		})
	case "outputHistoryItems":
		v.Items(func() {
			v.Fields(func(field string) {
				if field == "text" {
					if s := plain.Text(v.Text()); s != "" {
						p.lines = append(p.lines, s)
					}
				}
			})
		})
	case "filesRead":
		v.Items(func() {
			if s := plain.Text(v.Text()); s != "" {
				p.files = append(p.files, s)
			}
		})
	}
}
