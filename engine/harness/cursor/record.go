package cursor

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// record is one line, read.
type record struct {
	object, foreign bool

	role, kind string
	hasMessage bool
	blocks     bool // the content is a list of typed blocks, or a text
	parts      []part
	model      string
}

// message reports whether the line is a message.
func (r *record) message() bool {
	return r.object && r.hasMessage && (r.role == "user" || r.role == "assistant")
}

// part is one block of a message.
type part struct {
	kind, text     string
	id, name, args string
	command        string
	paths          []string
	cwd            string
	failed         bool
}

// read reads a line from the start.
func (r *record) read(v *harness.Value) {
	*r = record{object: v.Kind() == '{'}
	v.Fields(func(field string) {
		switch field {
		case "role":
			r.role = v.Text()
		case "type":
			r.kind = v.Text()
			r.foreign = true
		case "message":
			if v.Kind() == '{' {
				v.Fields(func(field string) { r.messageField(v, field) })
			}
		case "id", "uuid", "parentUuid", "parentId", "sessionId", "payload", "seq", "kind", "text", "content", "parts":
			r.foreign = true
		}
	})
}

func (r *record) messageField(v *harness.Value, field string) {
	switch field {
	case "content":
		r.hasMessage = true
		switch v.Kind() {
		case '"':
			r.blocks = true
			r.parts = []part{{kind: "text", text: plain.Text(v.Text())}}
		case '[':
			r.blocks = true
			v.Items(func() {
				p := readPart(v)
				r.blocks = r.blocks && p.kind != ""
				r.parts = append(r.parts, p)
			})
		}
	case "model":
		r.model = v.Text()
	case "role", "id", "usage", "stop_reason": // an API message, not Cursor's
		r.foreign = true
	}
}

func readPart(v *harness.Value) (p part) {
	if v.Kind() != '{' {
		return part{text: plain.Text(v.Text())}
	}
	v.Fields(func(field string) {
		switch field {
		case "type":
			p.kind = v.Text()
		case "text", "thinking":
			if s := plain.Text(v.Text()); s != "" {
				p.text = s
			}
		case "content": // of a result
			p.text = readResult(v)
		case "is_error":
			p.failed = v.Bool()
		case "id", "tool_use_id":
			p.id = plain.Text(v.Text())
		case "name":
			p.name = plain.Text(v.Text())
		case "input":
			raw := v.Raw()
			p.args = plain.Text(plain.Compact(raw))
			p.readArgs(raw)
		}
	})
	if p.kind == "image" {
		p.text = plain.Image
	}
	return p
}

// readResult reads the content of a result: a text, or blocks of text.
func readResult(v *harness.Value) string {
	if v.Kind() != '[' {
		return plain.Text(v.Text())
	}
	var texts []string
	v.Items(func() {
		if p := readPart(v); p.text != "" {
			texts = append(texts, p.text)
		}
	})
	return strings.Join(texts, "\n")
}

// readArgs finds the command line, the files and the directory in a call's
// arguments.
func (p *part) readArgs(raw []byte) {
	var v harness.Value
	var command, cwd string
	var paths []string
	_, err := v.Walk(raw, func(v *harness.Value) {
		command, cwd, paths = "", "", nil
		v.Fields(func(field string) {
			switch field {
			case "command":
				command = plain.Text(v.Text())
			case "working_directory", "cwd":
				cwd = plain.Text(v.Text())
			case "path", "file_path", "target_file", "target_notebook":
				if s := plain.Text(v.Text()); s != "" {
					paths = append(paths, s)
				}
			}
		})
	})
	if err == nil {
		p.command, p.cwd, p.paths = command, cwd, paths
	}
}
