package codex

import (
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// output is what a tool answered.
type output struct {
	has    bool
	text   string
	exit   *int
	failed bool
}

// read reads the output of a call: a string, a list of parts, or an object.
func (o *output) read(v *harness.Value) {
	o.has = true
	switch v.Kind() {
	case '"':
		o.fromString(v.Text())
	case '[':
		var texts []string
		v.Items(func() {
			if p := readPart(v); p.image {
				texts = append(texts, plain.Image)
			} else if p.text != "" {
				texts = append(texts, p.text)
			}
		})
		o.text = strings.Join(texts, "\n")
	case '{':
		raw := v.Raw()
		if !o.fromObject(raw) {
			o.text = string(raw)
		}
	default:
		v.Skip()
	}
}

// fromString takes the string form, in which an exec result of 2025 is itself
// JSON: {"output":"…","metadata":{"exit_code":0,…}}.
func (o *output) fromString(s string) {
	if strings.HasPrefix(s, `{"`) && strings.Contains(s[:min(len(s), 64)], `"output"`) && o.fromObject([]byte(s)) {
		return
	}
	o.text = s
	o.exit = exitIn(s)
	o.failed = strings.HasPrefix(s, "failed in sandbox") || strings.HasPrefix(s, "execution error:") ||
		strings.HasPrefix(s, "apply_patch verification failed")
}

// fromObject takes the object form and reports whether raw is it.
func (o *output) fromObject(raw []byte) bool {
	var got output
	var text, content *string
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		got, text, content = output{has: true}, nil, nil
		v.Fields(func(name string) {
			switch name {
			case "output":
				if v.Kind() == '"' {
					s := v.Text()
					text = &s
				}
			case "content":
				if v.Kind() == '"' {
					s := v.Text()
					content = &s
				}
			case "success":
				got.failed = v.Kind() == 'f'
			case "metadata":
				v.Fields(func(name string) {
					if name == "exit_code" {
						if n, ok := v.Int(); ok {
							exit := int(n)
							got.exit = &exit
						}
					}
				})
			}
		})
	})
	if text == nil {
		text = content
	}
	if err != nil || text == nil {
		return false
	}
	got.text = *text
	*o = got
	return true
}

// exitIn finds the exit code in the head that Codex puts before what a command
// wrote. Nothing further down is trusted: it is the command's own.
func exitIn(s string) *int {
	head := s[:min(len(s), 400)]
	if strings.HasPrefix(head, "failed in sandbox") {
		return numberAfter(head, "exit code: ")
	}
	for range 8 {
		line, rest, _ := strings.Cut(head, "\n")
		switch {
		case strings.HasPrefix(line, "Exit code: "):
			return numberAfter(line, "Exit code: ")
		case strings.HasPrefix(line, "Process exited with code "):
			return numberAfter(line, "Process exited with code ")
		case strings.HasPrefix(line, "Chunk ID: "), strings.HasPrefix(line, "Wall time: "):
		default:
			return nil
		}
		head = rest
	}
	return nil
}

// numberAfter returns the number behind mark in s.
func numberAfter(s, mark string) *int {
	_, after, ok := strings.Cut(s, mark)
	if !ok {
		return nil
	}
	end := 0
	for end < len(after) && (after[end] >= '0' && after[end] <= '9' || end == 0 && after[end] == '-') {
		end++
	}
	n, err := strconv.Atoi(after[:end])
	if err != nil {
		return nil
	}
	return &n
}
