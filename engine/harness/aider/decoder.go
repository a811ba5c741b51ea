package aider

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// kind is what a run of lines is.
type kind string

const (
	none   kind = ""
	asked  kind = "asked"  // what the user typed
	told   kind = "told"   // what Aider says of itself
	worked kind = "worked" // what Aider says of its work
	spoken kind = "spoken" // what the model answered
)

// block is the message that further lines may still extend.
type block struct {
	Kind  kind     `json:"kind,omitempty"`
	Lines []string `json:"lines,omitempty"`
	// Runs says that a message of Aider's has no end yet: what follows is still
	// the same, empty lines too. Behind its end only an empty line ends it, for
	// lines inside may be padded.
	Runs bool `json:"runs,omitempty"`
	// Fenced says that a code block is open at the end of an answer.
	Fenced bool `json:"fenced,omitempty"`
}

// state is what a decoder keeps between passes.
type state struct {
	// TS is when the run started.
	TS   string `json:"ts,omitempty"`
	Open block  `json:"open"`
	// Blank says that the line before was empty, or there was none.
	Blank bool `json:"blank,omitempty"`
	// Some says that a line was read.
	Some bool `json:"some,omitempty"`
	// Spaced says that marked lines end with two spaces, as Aider writes them.
	// Editors that trim lines take them away.
	Spaced bool `json:"spaced,omitempty"`
	// Proposed are the files that the newest answer changes by blocks.
	Proposed []string `json:"proposed,omitempty"`
}

// decoder reads one history.
type decoder struct {
	state
	env harness.Env
	out *harness.Out
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, at harness.Position, out *harness.Out) error {
	d.out = out
	line := strings.TrimSuffix(plain.Text(string(unit)), "\r")
	if at.Offset == 0 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	line = strings.ReplaceAll(line, "\x00", "")
	if !d.Some {
		d.Some, d.Blank = true, true
		if d.env.Name() == file && out.Meta.CWD == "" {
			out.Meta.CWD = plain.Text(filepath.Dir(d.env.Path))
		}
	}
	d.line(line)
	d.Blank = strings.TrimSpace(line) == ""
	d.out = nil
	return nil
}

// Pending implements harness.Decoder.
func (d *decoder) Pending() bool {
	return d.Open.Kind != none && strings.TrimSpace(strings.Join(d.Open.Lines, "")) != ""
}

// Flush implements harness.Decoder.
func (d *decoder) Flush(out *harness.Out) {
	d.out = out
	d.close()
	d.out = nil
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// line takes one line.
func (d *decoder) line(line string) {
	if m := start().FindStringSubmatch(line); m != nil && d.Blank {
		d.close()
		d.TS = m[1] + "T" + m[2] + ".000Z"
		d.clock()
		d.emit(turn.Turn{Class: turn.Other, Text: "[aider chat started at " + m[1] + " " + m[2] + "]"})
		return
	}
	ended := strings.HasSuffix(line, "  ")
	user, isUser := mark(line, "####")
	tool, isTool := mark(line, ">")
	b := &d.Open
	switch {
	case (isUser || isTool) && d.marked(ended):
		d.Spaced = d.Spaced || ended
		if isUser {
			d.extend(asked, user)
		} else {
			d.aider(tool, ended)
		}
	case b.Kind == told || b.Kind == worked:
		if empty := strings.TrimSpace(line) == ""; !b.Runs && (empty || d.Blank) {
			if !empty {
				d.extend(spoken, line)
			}
			return
		}
		b.Lines = append(b.Lines, strings.TrimRight(line, " "))
		b.Runs = d.Spaced && !ended
	case b.Kind == spoken, strings.TrimSpace(line) != "":
		d.extend(spoken, line)
	}
}

// mark cuts the mark of a line, behind which stands a space or nothing; ok is
// false when it has none.
func mark(line, sign string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(line, sign)
	if !ok || rest != "" && rest[0] != ' ' {
		return "", false
	}
	return strings.TrimRight(strings.TrimPrefix(rest, " "), " "), true
}

// marked reports whether the mark of a line is Aider's: it opens a message,
// behind an empty line or another marked one, and the line ends as Aider ends
// them. The first line of a message of several ends otherwise; it is told from a
// quotation or a heading that begins an answer by the empty line before that.
func (d *decoder) marked(ended bool) bool {
	b := &d.Open
	switch {
	case !d.Blank:
		return b.Kind == asked || b.Kind == told || b.Kind == worked
	case ended:
		return true
	}
	return !d.Spaced && !b.Fenced
}

const fence = "```"

// extend adds a line to the message that is open, or opens another.
func (d *decoder) extend(k kind, line string) {
	// Between two prompts is an empty line.
	if d.Open.Kind != k || k == asked && d.Blank {
		d.close()
		d.Open.Kind = k
		if k == asked {
			d.Proposed = nil
		}
	}
	if k == spoken && strings.HasPrefix(strings.TrimSpace(line), fence) {
		d.Open.Fenced = !d.Open.Fenced
	}
	d.Open.Lines = append(d.Open.Lines, line)
}

// aider takes a marked line of Aider's own.
func (d *decoder) aider(text string, ended bool) {
	d.learn(text)
	k := told
	if work(text) {
		k = worked
		d.close() // each is a turn of its own
	}
	d.extend(k, text)
	d.Open.Runs = !ended && d.Spaced
}

// close hands out the message that is open.
func (d *decoder) close() {
	b := d.Open
	d.Open = block{}
	text := strings.Trim(strings.Join(b.Lines, "\n"), "\n")
	switch b.Kind {
	case asked:
		d.emit(turn.Turn{Class: turn.User, Text: text})
		if d.out.Meta.Title == "" && !strings.HasPrefix(strings.TrimSpace(text), "/") {
			line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
			d.out.Meta.Title = plain.Clip(strings.TrimSpace(line), 512)
		}
	case told:
		d.emit(turn.Turn{Class: turn.Other, Text: text})
	case worked:
		d.work(text)
	case spoken:
		d.answer(b.Lines)
	}
}

const markApproximate = "approximate-time"

func (d *decoder) emit(t turn.Turn) {
	if strings.TrimSpace(t.Text) == "" {
		return
	}
	if t.TS = d.TS; t.TS != "" {
		t.Mark = markApproximate
	}
	d.out.Turns = append(d.out.Turns, t)
}

func (d *decoder) clock() {
	m := d.out.Meta
	if m.FirstTS == "" {
		m.FirstTS = d.TS
	}
	if plain.Later(m.LastTS, d.TS) {
		m.LastTS = d.TS
	}
}
