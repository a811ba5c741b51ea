package cursor

import (
	"encoding/json"
	"fmt"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/turn"
)

// The lines that begin something inside an answer.
const (
	toolCall   = "[Tool call] "
	toolResult = "[Tool result]"
	thinking   = "[Thinking]"
)

// block is the message that further lines may still extend.
type block struct {
	Role  string   `json:"role,omitempty"`
	Lines []string `json:"lines,omitempty"`
	// Fenced says that the lines are inside a code fence, Query that they
	// are inside a prompt: a role there is what somebody quotes.
	Fenced bool `json:"fenced,omitempty"`
	Query  bool `json:"query,omitempty"`
}

// textDecoder reads the format of the .txt files.
type textDecoder struct {
	log
	open block
	// twin says that the session has a JSONL file too, which says the same
	// and more.
	twin, looked bool
}

func newTextDecoder(saved []byte, env harness.Env) (*textDecoder, error) {
	d := &textDecoder{log: log{env: env}}
	if len(saved) > 0 {
		if err := json.Unmarshal(saved, &struct {
			*state
			Open *block `json:"open"`
		}{&d.state, &d.open}); err != nil {
			return nil, fmt.Errorf("cursor: %w", err)
		}
	}
	return d, nil
}

// State implements harness.Decoder.
func (d *textDecoder) State() ([]byte, error) {
	return json.Marshal(struct {
		state
		Open block `json:"open"`
	}{d.state, d.open})
}

// Decode implements harness.Decoder.
func (d *textDecoder) Decode(unit []byte, at harness.Position, out *harness.Out) error {
	if !d.looked {
		d.looked = true
		stem, ok := strings.CutSuffix(d.env.Name(), ".txt")
		d.twin = ok && len(d.env.Near(stem+".jsonl")) > 0
	}
	if d.twin {
		return nil
	}
	line := strings.TrimSuffix(strings.ToValidUTF8(string(unit), "\ufffd"), "\r")
	if at.Offset == 0 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	line = strings.ReplaceAll(line, "\x00", "")
	d.Begin(out.Meta)
	d.ready()
	d.line(line)
	d.End(out)
	return nil
}

func (d *textDecoder) line(line string) {
	b := &d.open
	trimmed := strings.TrimSpace(line)
	role, marked := strings.CutSuffix(trimmed, ":")
	marked = marked && (role == "user" || role == "assistant")
	switch n := len(b.Lines); {
	case marked && !b.Fenced && !b.Query:
		d.close()
		d.open = block{Role: role}
		return
	case trimmed == queryOpen && n > 0 && strings.TrimSpace(b.Lines[n-1]) == "user:" && !b.Query:
		// The fence before it was never closed.
		b.Lines = b.Lines[:n-1]
		d.close()
		d.open = block{Role: "user", Query: true, Lines: []string{line}}
		return
	case b.Role == "":
		return
	}
	switch {
	case b.Role == "user" && strings.Contains(line, queryClose):
		b.Query = false
	case b.Role == "user" && strings.Contains(line, queryOpen):
		b.Query = true
	case strings.HasPrefix(trimmed, "```"):
		b.Fenced = !b.Fenced
	}
	b.Lines = append(b.Lines, line)
}

// Pending implements harness.Decoder.
func (d *textDecoder) Pending() bool {
	return d.open.Role != "" && strings.TrimSpace(strings.Join(d.open.Lines, "")) != ""
}

// Flush implements harness.Decoder.
func (d *textDecoder) Flush(out *harness.Out) {
	d.Begin(out.Meta)
	d.ready()
	d.close()
	d.End(out)
}

// close hands out the message that is open.
func (d *textDecoder) close() {
	b := d.open
	d.open = block{}
	if b.Role == "user" {
		d.said(strings.Join(b.Lines, "\n"))
		return
	}
	var prose []string
	speak := func() {
		d.answered(strings.TrimSpace(strings.Join(prose, "\n")))
		prose = nil
	}
	for i := 0; i < len(b.Lines); {
		line := b.Lines[i]
		head := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(head, thinking):
			speak()
			body, next := d.body(b.Lines, i+1)
			text := strings.TrimSpace(strings.TrimPrefix(head, thinking) + "\n" + body)
			if text != redacted {
				d.emit(turn.Turn{Class: turn.Thought, Text: text})
			}
			i = next
		case strings.HasPrefix(head, toolCall):
			speak()
			body, next := d.body(b.Lines, i+1)
			p := part{name: strings.TrimSpace(strings.TrimPrefix(head, toolCall)), args: body}
			p.readLines(body)
			d.call(p)
			i = next
		case strings.HasPrefix(head, toolResult):
			speak()
			body, next := d.body(b.Lines, i+1)
			if body != "" { // most say only that there was one
				name := strings.TrimSpace(strings.TrimPrefix(head, toolResult))
				d.emit(turn.Turn{Class: turn.ToolUse, Text: body, Tool: &turn.Tool{Phase: turn.Result, Name: name}})
			}
			i = next
		default:
			prose = append(prose, line)
			i++
		}
	}
	speak()
}

// body takes the indented lines from at on, and returns what follows.
func (d *textDecoder) body(lines []string, at int) (text string, next int) {
	for next = at; next < len(lines); next++ {
		s := lines[next]
		if t := strings.TrimSpace(s); t != "" && s[0] != ' ' && s[0] != '\t' ||
			strings.HasPrefix(t, toolCall) || strings.HasPrefix(t, toolResult) || strings.HasPrefix(t, thinking) {
			break
		}
	}
	return strings.TrimSpace(strings.Join(lines[at:next], "\n")), next
}

// readLines finds the command line and the files in arguments that are written
// "name: value", or as JSON.
func (p *part) readLines(body string) {
	if strings.HasPrefix(body, "{") {
		p.readArgs([]byte(body))
		return
	}
	for line := range strings.Lines(body) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			name, value, _ = strings.Cut(strings.TrimSpace(line), "=")
		}
		switch value = strings.TrimSpace(value); strings.TrimSpace(name) {
		case "command":
			p.command = value
		case "working_directory":
			p.cwd = value
		case "path", "file_path", "target_file":
			p.paths = append(p.paths, value)
		}
	}
}
