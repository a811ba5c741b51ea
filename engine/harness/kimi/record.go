package kimi

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
)

// record is one line, read.
type record struct {
	object, foreign             bool
	hasContent, hasID, hasUsage bool

	role   string
	parts  []part
	thinks bool // a part is a thought
	calls  []call
	callID string
	tokens int64
}

// known reports whether the line is one of a context.
func (r *record) known() bool {
	switch r.role {
	case "user", "assistant", "tool", "system", "_system_prompt", "_checkpoint", "_usage":
		return r.object && !r.foreign && (r.hasContent || r.hasID || r.hasUsage || len(r.calls) > 0)
	}
	return false
}

type part struct {
	text    string
	thought bool
}

type call struct {
	id, name, args string
	command        string
	edits          []string
}

// read reads a line from the start.
func (r *record) read(v *harness.Value) {
	*r = record{object: v.Kind() == '{'}
	v.Fields(func(field string) {
		switch field {
		case "role":
			r.role = v.Text()
		case "content":
			r.hasContent = v.Kind() != 'n'
			r.readParts(v)
		case "id":
			r.hasID = v.Kind() != 'n'
		case "token_count":
			r.hasUsage = true
			r.readTokens(v)
		case "tool_calls":
			v.Items(func() {
				if v.Kind() == '{' {
					r.calls = append(r.calls, readCall(v))
				}
			})
		case "tool_call_id":
			r.callID = plain.Text(v.Text())
		case "type", "uuid", "sessionId", "message", "payload", "timestamp", "ts", "seq", "kind", "text":
			r.foreign = true
		}
	})
}

func (r *record) readParts(v *harness.Value) {
	switch v.Kind() {
	case '"':
		if s := plain.Text(v.Text()); s != "" {
			r.parts = []part{{text: s}}
		}
	case '[':
		v.Items(func() {
			p := part{}
			if v.Kind() == '"' {
				p.text = plain.Text(v.Text())
			} else {
				p = readPart(v)
			}
			r.thinks = r.thinks || p.thought
			if p.text != "" {
				r.parts = append(r.parts, p)
			}
		})
	}
}

func readPart(v *harness.Value) (p part) {
	kind := ""
	v.Fields(func(field string) {
		switch field {
		case "type":
			kind = v.Text()
		case "text", "think":
			if s := plain.Text(v.Text()); s != "" {
				p.text = s
			}
		}
	})
	switch kind {
	case "think":
		p.thought = true
	case "image_url":
		p.text = plain.Image
	case "audio_url", "video_url":
		p.text = "[file]"
	}
	return p
}

// readTokens reads how full the context is: a number, or its parts.
func (r *record) readTokens(v *harness.Value) {
	if v.Kind() != '{' {
		r.tokens, _ = v.Int()
		return
	}
	v.Fields(func(field string) {
		switch field {
		case "input_tokens", "output_tokens":
			n, _ := v.Int()
			r.tokens += n
		}
	})
}

func readCall(v *harness.Value) (c call) {
	v.Fields(func(field string) {
		switch field {
		case "id":
			c.id = plain.Text(v.Text())
		case "function":
			v.Fields(func(field string) {
				switch field {
				case "name":
					c.name = plain.Text(v.Text())
				case "arguments":
					c.arguments(v)
				}
			})
		}
	})
	return c
}

// arguments reads those of a call: text, as the model wrote it, or an object.
func (c *call) arguments(v *harness.Value) {
	if v.Kind() == '"' {
		c.args = plain.Text(v.Text())
	} else {
		c.args = plain.Text(plain.Compact(v.Raw()))
	}
	c.command, c.edits = journal.Targets([]byte(c.args), "path", "file_path")
}

// directories finds the path with the given hash in kimi.json, the CLI's list
// of working directories.
func directories(raw []byte, is func(path string) bool) (dir string) {
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		dir = ""
		v.Fields(func(field string) {
			if field != "work_dirs" {
				return
			}
			v.Items(func() {
				v.Fields(func(field string) {
					if field == "path" {
						if s := v.Text(); dir == "" && is(s) {
							dir = plain.Text(s)
						}
					}
				})
			})
		})
	})
	if err != nil {
		return ""
	}
	return dir
}

// titleIn finds the title in state.json, or the older metadata.json.
func titleIn(raw []byte) (title string) {
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		title = ""
		v.Fields(func(field string) {
			if field == "custom_title" || field == "title" {
				if s := strings.TrimSpace(plain.Text(v.Text())); s != "" && s != "Untitled" {
					title = plain.Clip(s, 512)
				}
			}
		})
	})
	if err != nil {
		return "" // half written
	}
	return title
}
