package kiro

import (
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// message is one line of a log, read.
type message struct {
	version, kind, id string
	ts                string
	hasData, blocks   bool
	parts             []piece
}

// piece is one block of a message.
type piece struct {
	kind, text string
	id, name   string
	args       string
	failed     bool
	exit       *int
}

// read reads a line from the start.
func (m *message) read(v *harness.Value) {
	*m = message{}
	v.Fields(func(name string) {
		switch name {
		case "version":
			m.version = v.Text()
		case "kind":
			m.kind = v.Text()
		case "data":
			m.hasData = v.Kind() == '{'
			v.Fields(func(name string) {
				switch name {
				case "message_id":
					m.id = v.Text()
				case "content":
					m.blocks = v.Kind() == '['
					m.parts = readPieces(v)
				case "summary":
					if v.Kind() == '"' {
						m.parts = append(m.parts, piece{kind: "text", text: v.Text()})
					}
				case "meta":
					v.Fields(func(name string) {
						if name == "timestamp" { // seconds, with a fraction or without
							m.ts = plain.Stamp(v.Text())
						}
					})
				}
			})
		}
	})
}

// readPieces reads content: blocks, or a text.
func readPieces(v *harness.Value) []piece {
	if v.Kind() != '[' {
		if s := v.Text(); s != "" {
			return []piece{{kind: "text", text: s}}
		}
		return nil
	}
	var list []piece
	v.Items(func() {
		var kind string
		var raw []byte
		v.Fields(func(name string) {
			switch name {
			case "kind":
				kind = v.Text()
			case "data":
				raw = append([]byte(nil), v.Raw()...)
			}
		})
		list = append(list, readPiece(kind, raw))
	})
	return list
}

// readPiece reads the data of a block, whose kind may stand behind it.
func readPiece(kind string, raw []byte) piece {
	p := piece{kind: kind}
	if kind == "image" || len(raw) == 0 {
		p.text = map[bool]string{true: plain.Image}[kind == "image"]
		return p
	}
	if raw[0] == '"' {
		p.text = harness.Unquote(raw)
		return p
	}
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		p = piece{kind: kind}
		v.Fields(func(name string) {
			switch name {
			case "text": // of a thought
				p.text = v.Text()
			case "toolUseId":
				p.id = v.Text()
			case "name":
				p.name = v.Text()
			case "input":
				p.args = plain.Compact(v.Raw())
			case "status":
				p.failed = strings.EqualFold(v.Text(), "error")
			case "content":
				p.readOutput(v)
			}
		})
	})
	if err != nil {
		return piece{kind: kind}
	}
	if kind != "toolUse" && kind != "toolResult" && kind != "thinking" && p.text == "" {
		p.text = plain.Compact(raw)
	}
	return p
}

// readOutput reads what a tool gave: texts, and objects, of which that of a shell
// is put together.
func (p *piece) readOutput(v *harness.Value) {
	if v.Kind() != '[' {
		p.text = v.Text()
		return
	}
	var texts []string
	v.Items(func() {
		v.Fields(func(name string) {
			if name != "data" {
				return
			}
			if v.Kind() == '"' {
				texts = append(texts, v.Text())
				return
			}
			raw := append([]byte(nil), v.Raw()...)
			text, exit := shell(raw)
			if exit == nil {
				text = plain.Compact(raw)
			} else {
				p.exit = exit
			}
			texts = append(texts, text)
		})
	})
	p.text = strings.Join(texts, "\n")
}

// shell reads {"exit_status":"exit status: 0","stdout":…,"stderr":…}; exit is nil
// for anything else.
func shell(raw []byte) (text string, exit *int) {
	var v harness.Value
	var status, out, errs string
	_, err := v.Walk(raw, func(v *harness.Value) {
		status, out, errs = "", "", ""
		v.Fields(func(name string) {
			switch name {
			case "exit_status":
				status = v.Text()
			case "stdout":
				out = v.Text()
			case "stderr":
				errs = v.Text()
			}
		})
	})
	if err != nil {
		return "", nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(status, "exit status:")))
	if err != nil || status == "" {
		return "", nil
	}
	return strings.Trim(out+"\n"+errs, "\n"), &n
}

// sidecar is what <id>.json says of a session.
type sidecar struct{ id, cwd, title, model, parent string }

func readSidecar(raw []byte) (s sidecar) {
	if len(raw) == 0 {
		return s
	}
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		s = sidecar{}
		v.Fields(func(name string) {
			switch name {
			case "session_id":
				s.id = v.Text()
			case "cwd":
				s.cwd = v.Text()
			case "title":
				s.title = v.Text()
			case "parent_session_id":
				s.parent = v.Text()
			case "session_state":
				descend(v, []string{"rts_model_state", "model_info", "model_id"}, func() { s.model = v.Text() })
			}
		})
	})
	if err != nil {
		return sidecar{} // half written
	}
	return s
}

// descend calls found before the value at the path of members.
func descend(v *harness.Value, path []string, found func()) {
	v.Fields(func(name string) {
		switch {
		case name != path[0]:
		case len(path) == 1:
			found()
		default:
			descend(v, path[1:], found)
		}
	})
}
