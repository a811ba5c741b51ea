package kimi

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// state is what a decoder keeps between passes. It holds no turns: every line
// is decided when it is read.
type state struct {
	// Chain names everything read so far.
	Chain uint64 `json:"chain,string,omitempty"`
	// Matching says that the context is read again and all of it so far was
	// captured before, up to the turn Matched.
	Matching bool   `json:"matching,omitempty"`
	Matched  string `json:"matched,omitempty"`
	// Kept counts the messages that a compaction, just read, took over from
	// the context before.
	Kept int `json:"kept,omitempty"`
}

// preserved is how many messages, tool results aside, a compaction takes over
// (SimpleCompaction.max_preserved_messages).
const preserved = 2

// The marks that this format gives.
const (
	markSummary = "summary"
	markRewound = "rewound"
)

// compacted begins the message that stands for what was said before.
const compacted = "<system>Previous context has been compacted"

// decoder reads one context.
type decoder struct {
	state
	journal.Page
	env   harness.Env
	rec   record
	past  *past
	moved bool
}

// past is what is captured of the session already.
type past struct {
	order map[string]int // by id
	said  map[uint64]bool
	turns int
}

func newDecoder(saved []byte, env harness.Env) (*decoder, error) {
	d := &decoder{env: env, moved: moved(env.Name())}
	return d, journal.Restore("kimi", saved, &d.state)
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	err := d.Read(unit, out, d.rec.read, d.take)
	if err == nil && !d.Matching && d.Kept == 0 && !d.moved {
		d.past = nil // a daemon keeps decoders for long
	}
	return err
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// open readies the decoder at the start of a context.
func (d *decoder) open() {
	if d.Chain != 0 {
		return
	}
	id := d.Meta.ID
	if id == "" {
		id = d.env.Name()
	}
	d.Chain = plain.Hash("kimi", id)
	d.Matching = !d.moved && d.captured().turns > 0
	if d.Meta.CWD == "" {
		d.Meta.CWD = d.workDir()
	}
	d.retitle()
}

// captured is what is captured of the session; it is asked for once.
func (d *decoder) captured() *past {
	if d.past != nil {
		return d.past
	}
	d.past = &past{order: map[string]int{}, said: map[uint64]bool{}}
	turns, ok := d.env.Lookup(d.Meta.ID)
	if !ok {
		return d.past
	}
	for t := range turns {
		d.past.order[t.ID] = d.past.turns
		d.past.said[sameness(t)] = true
		d.past.turns++
	}
	return d.past
}

func sameness(t turn.Turn) uint64 {
	call := ""
	if t.Tool != nil {
		call = string(t.Tool.Phase) + t.Tool.CallID
	}
	return plain.Hash(string(t.Class), t.Text, call)
}

// workDir finds the working directory, whose hash names the directory of the
// session and protects nothing, in the CLI's own list. For another machine's a name stands before
// the hash.
func (d *decoder) workDir() string {
	parts := strings.Split(filepath.ToSlash(d.env.Path), "/")
	up := 3
	if len(parts) >= 6 && parts[len(parts)-3] == "subagents" {
		up = 5
	}
	if len(parts) <= up {
		return ""
	}
	dir := parts[len(parts)-up]
	if at := strings.LastIndexByte(dir, '_'); at >= 0 {
		dir = dir[at+1:]
	}
	return directories(d.env.Near(strings.Repeat("../", up)+"kimi.json"), func(path string) bool {
		sum := md5.Sum([]byte(path))
		return hex.EncodeToString(sum[:]) == dir
	})
}

// retitle takes the title, which is given after the first answers.
func (d *decoder) retitle() {
	for _, file := range []string{"state.json", "metadata.json"} {
		if title := titleIn(d.env.Near(file)); title != "" {
			d.Meta.Title = title
			return
		}
	}
}

// take reads a record and returns its role if that is unknown.
func (d *decoder) take() (unknown string) {
	d.open()
	r := &d.rec
	switch r.role {
	case "_system_prompt", "_checkpoint":
	case "_usage":
		if r.tokens > 0 {
			d.Meta.Tokens.Context = r.tokens
		}
		d.retitle()
	case "user":
		d.user(r)
	case "assistant":
		d.answer(r)
	case "tool":
		d.result(r)
	case "system":
		d.emit(turn.Turn{Class: turn.Other, Text: said(r.parts, false)})
	case "":
		return "(none)"
	default:
		return plain.Clip(plain.Text(r.role), 64)
	}
	return ""
}

// aside reports whether a part of a prompt is the CLI's.
func aside(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return strings.HasPrefix(text, "<system>") || strings.HasPrefix(text, "<system-reminder>") || strings.HasPrefix(text, "<notification")
}

func (d *decoder) user(r *record) {
	text := said(r.parts, false)
	if strings.HasPrefix(text, compacted) {
		d.Meta.Compactions++
		d.emit(turn.Turn{Class: turn.Other, Text: text, Mark: markSummary})
		d.Kept = preserved
		return
	}
	d.kept()
	var typed []string
	speak := func() {
		d.emit(turn.Turn{Class: turn.User, Text: strings.Join(typed, "\n")})
		typed = nil
	}
	for _, p := range r.parts {
		switch {
		case strings.HasPrefix(p.text, "<system>CHECKPOINT "): // a note to the model
		case aside(p.text):
			speak()
			d.emit(turn.Turn{Class: turn.Other, Text: p.text})
		default:
			typed = append(typed, p.text)
		}
	}
	speak()
}

func (d *decoder) answer(r *record) {
	d.kept()
	d.emit(turn.Turn{Class: turn.Thought, Text: said(r.parts, true)})
	d.emit(turn.Turn{Class: turn.Agent, Text: said(r.parts, false)})
	for _, c := range r.calls {
		name, text := plain.Call(c.name, c.args)
		t := &turn.Tool{Phase: turn.Call, Name: name, CallID: c.id}
		switch name {
		case "Shell", "Bash", "CMD":
			t.Command = c.command
		case "WriteFile", "StrReplaceFile", "Write", "Edit":
			t.Edits = c.edits
		}
		d.emit(turn.Turn{Class: turn.ToolUse, Text: text, Tool: t})
	}
}

// result takes the outcome of a call. What went wrong stands in front, in the
// CLI's own words.
func (d *decoder) result(r *record) {
	text := plain.FirstOf(said(r.parts, false), plain.Empty)
	t := &turn.Tool{Phase: turn.Result, CallID: r.callID}
	if note, ok := strings.CutPrefix(text, "<system>ERROR"); ok {
		t.Error = true
		note, _, _ = strings.Cut(note, "</system>")
		t.Exit = exitIn(note)
	}
	d.emit(turn.Turn{Class: turn.ToolUse, Text: text, Tool: t})
}

// exitIn finds the status in "Command failed with exit code: 1."
func exitIn(note string) *int {
	const mark = "exit code: "
	at := strings.LastIndex(note, mark)
	if at < 0 {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(note[at+len(mark):]), "."))
	if err != nil {
		return nil
	}
	return &n
}

// kept counts a message behind a compaction. The last of those taken over is
// followed by its tool results, so the count ends at the message after it.
func (d *decoder) kept() {
	if d.Kept > 0 {
		d.Kept--
		if d.Kept == 0 {
			d.Kept = -1
		}
	} else if d.Kept < 0 {
		d.Kept = 0
	}
}

// emit hands a turn out, named after all before it and itself.
func (d *decoder) emit(t turn.Turn) {
	if strings.TrimSpace(t.Text) == "" {
		return
	}
	same := sameness(t)
	d.Chain = plain.Hash(fmt.Sprintf("%016x%016x", d.Chain, same))
	t.ID = fmt.Sprintf("%016x", d.Chain)
	if d.Kept != 0 && t.Mark != markSummary && d.captured().said[same] {
		return // taken over from the context before
	}
	d.match(t)
	if d.moved && t.Mark == "" && d.captured().turns > 0 {
		t.Mark = markRewound
	}
	d.Add(t)
}

// match follows a context that is read again as far as it was captured, and
// says where it parts from that: a revert takes turns out of it, which stay
// here.
func (d *decoder) match(t turn.Turn) {
	if !d.Matching {
		return
	}
	p := d.captured()
	if _, ok := p.order[t.ID]; ok {
		d.Matched = t.ID
		return
	}
	d.Matching = false
	after := p.turns
	text := "[context cleared: the %d turns captured before are no part of it any more]"
	if d.Matched != "" {
		after = p.turns - p.order[d.Matched] - 1
		text = "[context rewound to after turn " + d.Matched + ": the %d turns captured after it are no part of it any more]"
	}
	if after == 0 || t.Mark == markSummary {
		return
	}
	d.Add(turn.Turn{Class: turn.Other, ID: "rewound:" + t.ID, Text: fmt.Sprintf(text, after)})
}

// said joins the text of parts, or of the thoughts among them.
func said(parts []part, thoughts bool) string {
	var texts []string
	for _, p := range parts {
		if p.thought == thoughts {
			texts = append(texts, p.text)
		}
	}
	return strings.Join(texts, "\n")
}
