package goose

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
)

// record is a session or a message.
type record struct {
	unreadable              bool
	id, name, dir, kind     string
	parent, model, began    string
	input, output, prompted int64
	role                    string
	created                 int64
	hidden                  bool
	parts                   []part
}

// part is an element of a message's content.
type part struct {
	kind, text     string
	id, tool, args string
	command, file  string
	failed         bool
}

func (r *record) read(v *harness.Value) {
	*r = record{}
	v.Fields(func(name string) {
		switch name {
		case ledger.Unreadable:
			r.unreadable = true
		case "id":
			r.id = v.Text()
		case "name", "description":
			if text := v.Text(); r.name == "" {
				r.name = text
			}
		case "working_dir":
			r.dir = v.Text()
		case "session_type":
			r.kind = v.Text()
		case "parent_session_id":
			r.parent = v.Text()
		case "created_at":
			r.began = v.Text()
		case "accumulated_input_tokens":
			r.input, _ = v.Int()
		case "accumulated_output_tokens":
			r.output, _ = v.Int()
		case "input_tokens":
			r.prompted, _ = v.Int()
		case "model_config":
			v.Fields(func(name string) {
				if name == "model_name" {
					r.model = v.Text()
				}
			})
		case "role":
			r.role = v.Text()
		case "created":
			r.created, _ = v.Int()
		case "metadata":
			v.Fields(func(name string) {
				if name == "userVisible" {
					r.hidden = v.Kind() == 'f'
				}
			})
		case "content":
			v.Items(func() {
				var p part
				p.read(v)
				r.parts = append(r.parts, p)
			})
		}
	})
}

func (p *part) read(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "type":
			p.kind = v.Text()
		case "id":
			p.id = v.Text()
		case "text", "thinking", "msg", "prompt":
			p.text = v.Text()
		case "toolName":
			p.tool = v.Text()
		case "toolCall", "toolResult":
			p.outcome(v)
		}
	})
}

// outcome reads {"status":"success","value":…} or {"status":"error","error":…}.
func (p *part) outcome(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "status":
			p.failed = p.failed || v.Text() == "error"
		case "error":
			p.text = v.Text()
		case "value":
			p.value(v)
		}
	})
}

// value reads the call of a tool, or its result: an array of content, in later
// versions an object that holds it.
func (p *part) value(v *harness.Value) {
	if v.Kind() == '[' {
		p.content(v)
		return
	}
	v.Fields(func(name string) {
		switch name {
		case "name":
			p.tool = v.Text()
		case "arguments":
			raw := v.Raw()
			p.args = plain.Compact(raw)
			p.command, p.file = arguments(raw)
		case "content":
			p.content(v)
		case "isError":
			p.failed = p.failed || v.Bool()
		}
	})
}

func (p *part) content(v *harness.Value) {
	var texts []string
	v.Items(func() {
		kind, text := "", ""
		v.Fields(func(name string) {
			switch name {
			case "type":
				kind = v.Text()
			case "text":
				text = v.Text()
			case "resource":
				v.Fields(func(name string) {
					if name == "text" {
						text = v.Text()
					}
				})
			}
		})
		switch {
		case kind == "image":
			texts = append(texts, plain.Image)
		case text != "":
			texts = append(texts, text)
		}
	})
	p.text = strings.Join(texts, "\n")
}

// arguments finds what a tool runs or changes.
func arguments(raw []byte) (command, file string) {
	var v harness.Value
	verb, path := "", ""
	_, err := v.Walk(raw, func(v *harness.Value) {
		command, verb, path = "", "", ""
		v.Fields(func(name string) {
			switch name {
			case "command":
				command = v.Text()
				verb = command
			case "path", "file_path":
				path = v.Text()
			}
		})
	})
	if err != nil {
		return "", ""
	}
	if path != "" { // the editor's arguments are its verb and a file
		if verb == "view" {
			return "", ""
		}
		return "", path
	}
	return command, ""
}
