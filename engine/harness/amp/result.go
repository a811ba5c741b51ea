package amp

import (
	"bytes"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// readRun reads how a tool's work went: its result, else how far it came, else
// why it failed.
func readRun(raw []byte) (r run) {
	var v harness.Value
	var result, progress, failure, reason string
	_, _ = v.Walk(raw, func(v *harness.Value) {
		r = run{}
		result, progress, failure, reason = "", "", "", ""
		v.Fields(func(name string) {
			switch name {
			case "status":
				r.status = plain.Text(v.Text())
			case "result":
				result, r.exit = readResult(v.Raw())
			case "progress":
				progress, _ = readResult(v.Raw())
			case "error":
				failure = readFailure(v.Raw())
			case "reason":
				reason = plain.Text(v.Text())
			}
		})
	})
	if result == "" {
		result = progress
	}
	if reason != "" && r.status != "" {
		reason = r.status + ": " + reason
	} else if failure == "" && reason == "" && (failed[r.status] || result == "" && !settled[r.status]) {
		reason = r.status
	}
	var parts []string
	for _, s := range []string{failure, reason, result} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	r.text = strings.Join(parts, "\n")
	return r
}

// body are the members that hold what a tool said, and beside those that say
// nothing which the call or the turn's exit status does not (measured for Read
// and edit_file). A result with any other member is kept whole.
var (
	body   = map[string]bool{"output": true, "content": true, "diff": true}
	beside = map[string]bool{"exitCode": true, "absolutePath": true, "lineRange": true}
)

// readResult reads what a tool gave: a text, blocks of text and pictures, or
// an object of the tool's own, whose exit status is nil if there is none.
func readResult(raw []byte) (text string, exit *int) {
	if len(raw) == 0 {
		return "", nil
	}
	var v harness.Value
	simple := true
	_, _ = v.Walk(raw, func(v *harness.Value) {
		text, exit, simple = "", nil, true
		switch v.Kind() {
		case '"':
			text = plain.Text(v.Text())
		case '[':
			var parts []string
			v.Items(func() {
				var kind, said string
				v.Fields(func(name string) {
					switch name {
					case "type":
						kind = v.Text()
					case "text":
						said = plain.Text(v.Text())
					}
				})
				switch {
				case kind == "image":
					parts = append(parts, plain.Image)
				case kind != "text":
					simple = false
				case said != "":
					parts = append(parts, said)
				}
			})
			text = strings.Join(parts, "\n")
		case '{':
			bodies := 0
			v.Fields(func(name string) {
				switch {
				case name == "exitCode":
					if v.Kind() == '0' {
						if n, ok := v.Int(); ok {
							code := int(n)
							exit = &code
						}
					}
				case body[name] && v.Kind() == '"':
					bodies++
					text = plain.Text(v.Text())
				case !beside[name]:
					simple = false
				}
			})
			simple = simple && bodies == 1
		default:
			simple = false
		}
	})
	if !simple {
		switch text = plain.Text(slim(raw)); text {
		case "{}", "null":
			text = ""
		}
	}
	return text, exit
}

// readFailure reads an error, which is a text or an object with a message.
func readFailure(raw []byte) (text string) {
	var v harness.Value
	_, _ = v.Walk(raw, func(v *harness.Value) {
		if text = ""; v.Kind() == '"' {
			text = plain.Text(v.Text())
			return
		}
		v.Fields(func(name string) {
			if name == "message" {
				text = plain.Text(v.Text())
			}
		})
	})
	if text == "" && len(raw) > 0 && string(raw) != "null" {
		text = plain.Text(slim(raw))
	}
	return text
}

// minData is the length from which a string of nothing but base64 is taken for
// a file: a hash or a key is shorter.
const minData = 1024

// slim is raw JSON on one line without the files in it, which blocks hold as
// bare base64.
func slim(raw []byte) string {
	s := plain.Compact(raw)
	if len(s) < minData {
		return s
	}
	var out bytes.Buffer
	for len(s) > 0 {
		open := strings.IndexByte(s, '"')
		if open < 0 {
			break
		}
		end := open + 1
		bare := true
		for end < len(s) && s[end] != '"' {
			if s[end] == '\\' {
				bare = false
				end++
			} else if !base64(s[end]) {
				bare = false
			}
			end++
		}
		if end >= len(s) {
			break
		}
		if bare && end-open > minData {
			out.WriteString(s[:open+1] + "[file]")
		} else {
			out.WriteString(s[:end])
		}
		out.WriteByte('"')
		s = s[end+1:]
	}
	out.WriteString(s)
	return out.String()
}

func base64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '='
}
