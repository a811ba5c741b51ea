package canonical

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/turn"
)

// line is what one object says.
type line struct {
	object             bool
	seq                int64
	hasSeq             bool
	ts, role, kind     string
	typ                string
	session, thread    string
	flat               bool   // text or content at top level
	text               string // first of the accepted bodies
	rank               int    // of the body found; lower wins
	blockTool          bool   // a block is a tool's
	blocks, blockThink int
}

// The accepted places of a body, best first: text, then content and parts,
// then what the reference also looks at.
const (
	rankText = iota + 1
	rankContent
	rankOutput
	rankMessageContent
	rankMessageText
	rankPayload
	rankParts
	rankNone
)

func (l *line) read(v *harness.Value) {
	*l = line{rank: rankNone}
	if v.Kind() != '{' {
		v.Skip()
		return
	}
	l.object = true
	v.Fields(func(name string) {
		switch name {
		case "seq":
			if k := v.Kind(); k == '0' || k == '"' {
				l.seq, l.hasSeq = v.Int()
			}
		case "ts":
			l.ts = v.Text()
		case "timestamp":
			if ts := v.Text(); l.ts == "" {
				l.ts = ts
			}
		case "role":
			l.role = v.Text()
		case "kind":
			l.kind = v.Text()
		case "type":
			l.typ = v.Text()
		case "session":
			l.session = v.Text()
		case "thread":
			l.thread = v.Text()
		case "text":
			l.take(rankText, v)
		case "content":
			l.take(rankContent, v)
		case "output":
			l.take(rankOutput, v)
		case "parts":
			l.take(rankParts, v)
		case "message", "payload", "item":
			l.nested(name, v)
		}
	})
	l.flat = l.rank == rankText || l.rank == rankContent || l.rank == rankParts
}

func (l *line) nested(outer string, v *harness.Value) {
	contentRank, textRank := rankMessageContent, rankMessageText
	if outer != "message" {
		contentRank, textRank = rankPayload, rankPayload
	}
	v.Fields(func(name string) {
		switch name {
		case "role":
			if r := v.Text(); l.role == "" {
				l.role = r
			}
		case "type", "kind":
			if k := v.Text(); outer == "payload" && l.kind == "" {
				l.kind = k
			}
		case "created_at":
			if ts := v.Text(); l.ts == "" {
				l.ts = ts
			}
		case "content", "parts", "items":
			l.take(contentRank, v)
		case "text", "output":
			l.take(textRank, v)
		}
	})
}

// take keeps the value as the body if it is not blank and no better one is
// known.
func (l *line) take(rank int, v *harness.Value) {
	text := l.render(v)
	if rank < l.rank && strings.TrimSpace(text) != "" {
		l.text, l.rank = text, rank
	}
}

// render writes a string, or blocks joined by newlines. A single string is
// kept to the byte; joined blocks are trimmed.
func (l *line) render(v *harness.Value) string {
	switch v.Kind() {
	case '"':
		return v.Text()
	case '[':
		var parts []string
		v.Items(func() {
			var p string
			if v.Kind() == '{' {
				p = l.block(v)
			} else {
				p = l.render(v)
			}
			if p != "" {
				parts = append(parts, p)
			}
		})
		return strings.TrimSpace(strings.Join(parts, "\n"))
	case '{':
		return l.block(v)
	}
	v.Skip()
	return ""
}

func (l *line) block(v *harness.Value) string {
	var typ, text, name, input string
	v.Fields(func(field string) {
		switch field {
		case "type":
			typ = v.Text()
		case "text", "thinking", "content", "output":
			if s := l.render(v); text == "" {
				text = s
			}
		case "name":
			name = v.Text()
		case "input", "arguments":
			if v.Kind() == '"' {
				input = v.Text()
			} else {
				input = string(v.Raw())
			}
		}
	})
	if typ != "" {
		l.blocks++
	}
	if strings.Contains(typ, "reason") || strings.Contains(typ, "think") {
		l.blockThink++
	}
	if strings.Contains(typ, "tool") || strings.Contains(typ, "function_call") {
		l.blockTool = true
	}
	switch {
	case typ == "tool_use" || typ == "function_call":
		return strings.TrimSpace(typ + " " + name + " " + input)
	case typ == "function_call_output":
		return typ + " " + text
	case typ == "image" || typ == "image_url" || typ == "input_image":
		return "[image]"
	}
	return text
}

func (l *line) body() string { return l.text }

// class is that of seed INTEGRATION; only where kind and role say nothing do
// the type and the blocks decide.
func (l *line) class() turn.Class {
	if c := turn.Classify(l.kind, l.role); c != turn.Other && c != turn.Agent && c != turn.User {
		return c
	}
	switch {
	case l.blockTool:
		return turn.ToolUse
	case l.blocks > 0 && l.blockThink == l.blocks:
		return turn.Thought
	case l.kind == "" && l.role == "":
		return turn.Classify(l.typ, "")
	}
	return turn.Classify(l.kind, l.role)
}

type decoder struct {
	v harness.Value
	l line
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, at harness.Position, out *harness.Out) error {
	l := &d.l
	lenient, err := d.v.Object(unit, l.read)
	if err != nil {
		return err
	}
	out.Flagged = lenient
	m := out.Meta
	if at.Line == 0 || m.ID == "" && m.FirstTS == "" {
		if m.ID == "" {
			m.ID = l.session
		}
		if m.Thread == "" {
			m.Thread = l.thread
		}
	}
	if l.ts != "" {
		if m.FirstTS == "" {
			m.FirstTS = l.ts
		}
		m.LastTS = l.ts
	}
	text := strings.ToValidUTF8(l.text, "\ufffd")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	t := turn.Turn{Seq: at.Line, TS: l.ts, Class: l.class(), Text: text}
	if l.hasSeq {
		t.Seq = l.seq
	}
	if l.session != "" && m.ID != "" && l.session != m.ID {
		t.Session = l.session
	}
	out.Turns = append(out.Turns, t)
	return nil
}

// Pending implements harness.Decoder.
func (*decoder) Pending() bool { return false }

// Flush implements harness.Decoder.
func (*decoder) Flush(*harness.Out) {}

// State implements harness.Decoder.
func (*decoder) State() ([]byte, error) { return []byte("null"), nil }
