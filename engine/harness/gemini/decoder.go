package gemini

import (
	"encoding/json"
	"fmt"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// state is what a decoder keeps between passes.
type state struct {
	// TS is the time of the record before, for records without one.
	TS string `json:"ts,omitempty"`
	// Held is the newest message: until another follows, it may be written
	// again with more.
	Held *held  `json:"held,omitempty"`
	Seen memory `json:"seen"`
	// Live are the messages that a rewind can take back, oldest first.
	Live []live `json:"live,omitempty"`
	// Looked says that the working directory was looked for beside the file.
	Looked bool `json:"looked,omitempty"`
}

// live is a message of the conversation: the hash of its id, and how many turns
// it came to.
type live struct {
	ID    uint64 `json:"id,string"`
	Turns int    `json:"n"`
}

// maxLive bounds the messages that a rewind is told to take back; of older ones
// it says no number.
const maxLive = 1024

// held is a message that may still grow.
type held struct {
	ID     string      `json:"id"`
	Turns  []turn.Turn `json:"turns,omitempty"`
	Tokens *tokens     `json:"tokens,omitempty"`
}

// maxHeld bounds the text of a message that is held back. A larger one is
// decided as it comes; what is added to it later is added then.
const maxHeld = 1 << 20

// decoder reads one log.
type decoder struct {
	state
	journal.Page
	env harness.Env
	rec record
}

func newDecoder(saved []byte, env harness.Env) (*decoder, error) {
	d := &decoder{env: env}
	return d, journal.Restore("gemini", saved, &d.state)
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.rec.read, d.take)
}

// Pending implements harness.Decoder.
func (d *decoder) Pending() bool { return d.Held != nil }

// Flush implements harness.Decoder.
func (d *decoder) Flush(out *harness.Out) {
	d.Begin(out.Meta)
	d.decide()
	d.End(out)
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// take reads a record and returns its type if that is unknown.
func (d *decoder) take() (unknown string) {
	r := &d.rec
	d.clock(r)
	d.locate(r)
	switch {
	case r.hasRewind:
		d.decide()
		d.rewound(plain.Text(r.rewindTo))
	case r.hasPatch:
		d.decide()
		d.removed(r.removed)
	case r.hasSet:
		d.about(r)
		if len(r.checkpoint) > 0 {
			d.decide()
			d.checkpoint(r.checkpoint)
		}
	case r.message():
		d.message(r)
	case r.sessionID != "":
		d.about(r)
		d.checkpoint(r.checkpoint)
	case r.kind != "":
		return plain.Clip(plain.Text(r.kind), 64)
	case r.control != "":
		return plain.Clip(plain.Text(r.control), 64)
	case r.id == "":
		return "(none)"
	}
	return ""
}

func approximate(ts string) string {
	if ts == "" {
		return ""
	}
	return markApproximate
}

// rewound says what a rewind takes back. Nothing is taken out of the archive.
func (d *decoder) rewound(to string) {
	to = plain.Clip(to, 256)
	text := "[rewound to before message " + to
	turns, found := 0, -1
	for i := len(d.Live) - 1; i >= 0; i-- {
		turns += d.Live[i].Turns
		if d.Live[i].ID == plain.Hash(to) {
			found = i
			break
		}
	}
	switch {
	case found >= 0:
		text += fmt.Sprintf(": the %d turns from %s#... on are taken back]", turns, to)
		d.Live = d.Live[:found]
	case d.Seen.holds(plain.Hash(to)):
		text += ": the turns from it on are taken back]"
		d.Live = nil
	default:
		// Gemini CLI forgets everything then.
		text += fmt.Sprintf(", which is not here: all %d turns before are taken back]", turns)
		d.Live = nil
	}
	d.note(text)
}

// removed says what a patch takes out of the conversation.
func (d *decoder) removed(ids []string) {
	if len(ids) == 0 {
		return
	}
	turns := 0
	for _, id := range ids {
		for i := range d.Live {
			if d.Live[i].ID == plain.Hash(plain.Clip(plain.Text(id), 256)) {
				turns += d.Live[i].Turns
				d.Live = append(d.Live[:i], d.Live[i+1:]...)
				break
			}
		}
	}
	d.note(fmt.Sprintf("[removed from the conversation: %d messages, %d turns: %s]", len(ids), turns, plain.Clip(plain.Text(strings.Join(ids, ", ")), 2048)))
}

func (d *decoder) note(text string) {
	d.Add(turn.Turn{TS: d.TS, Mark: approximate(d.TS), Class: turn.Other, Text: text})
}

// clock notes the times of a record.
func (d *decoder) clock(r *record) {
	for _, ts := range []string{r.started, r.ts, r.updated} {
		if ts == "" {
			continue
		}
		ts = plain.Text(ts)
		d.TS = ts
		journal.Note(d.Meta, ts)
	}
}

// about takes what a record says of the session.
func (d *decoder) about(r *record) {
	m := d.Meta
	if m.ID == "" {
		m.ID = plain.Text(r.sessionID)
	}
	if r.summary != "" {
		m.Title = plain.Text(r.summary)
	}
	if r.sessionKind == "subagent" {
		m.Kind = "subagent"
	}
	if m.CWD == "" {
		m.CWD = plain.Text(r.directory)
	}
}

// message takes a message, which may be the one held, written again.
func (d *decoder) message(r *record) {
	if r.model != "" {
		d.Meta.Model = plain.Text(r.model)
	}
	if d.Meta.CWD == "" && r.kind == "user" {
		if text := said(r.content, false); strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "<session_context>") {
			d.Meta.CWD = workspace(text)
		}
	}
	now := &held{ID: plain.Clip(plain.Text(r.id), 256), Turns: r.turns(d.TS), Tokens: r.tokens}
	if d.Held != nil && d.Held.ID == now.ID {
		if now.Tokens == nil {
			now.Tokens = d.Held.Tokens // a copy without must not erase them
		}
		d.Held = nil
	}
	d.decide()
	d.Held = now
	size := 0
	for _, t := range now.Turns {
		size += len(t.Text)
	}
	if size > maxHeld {
		d.decide()
	}
}

// decide emits the held message: it will not be written again, or if it is,
// the parts that differ are turns of their own.
func (d *decoder) decide() {
	h := d.Held
	if h == nil {
		return
	}
	d.Held = nil
	if h.Tokens != nil {
		d.usage(h)
	}
	d.Seen.add(plain.Hash(h.ID), 0)
	before := len(d.Turns)
	for _, t := range h.Turns {
		d.emit(t)
	}
	d.lives(plain.Hash(h.ID), len(d.Turns)-before)
}

// lives notes the turns of a message. One that is written again stays where it
// first was.
func (d *decoder) lives(id uint64, turns int) {
	for i := len(d.Live) - 1; i >= 0; i-- {
		if d.Live[i].ID == id {
			d.Live[i].Turns += turns
			return
		}
	}
	if len(d.Live) >= maxLive {
		d.Live = append(d.Live[:0], d.Live[1:]...)
	}
	d.Live = append(d.Live, live{id, turns})
}

// usage counts what a message used, once.
func (d *decoder) usage(h *held) {
	id := plain.Hash(h.ID, "tokens")
	if d.Seen.holds(id) {
		return
	}
	d.Seen.add(id, 0)
	t := &d.Meta.Tokens
	t.Input += max(0, h.Tokens.Input-h.Tokens.Cached)
	t.CacheRead += h.Tokens.Cached
	t.Output += h.Tokens.Output
	t.Context = h.Tokens.Input
}

// checkpoint takes the messages of a $set, which replaces the conversation for
// the harness: those known are the same again, though perhaps masked (C3).
func (d *decoder) checkpoint(list []record) {
	for i := range list {
		r := &list[i]
		if !r.message() && (r.id != "" || r.kind == "") || r.id != "" && d.Seen.holds(plain.Hash(plain.Clip(plain.Text(r.id), 256))) {
			continue
		}
		d.clock(r)
		d.message(r)
		d.decide()
	}
}

// emit hands a turn out unless it was before.
func (d *decoder) emit(t turn.Turn) {
	name := t.ID
	if name == "" {
		name = t.TS
	}
	id, text := plain.Hash(name), plain.Hash(string(t.Class), t.Text)
	if d.Seen.has(id, text) {
		return
	}
	var result uint64
	if t.Tool != nil && t.Tool.Phase == turn.Result && t.Tool.CallID != "" {
		result = plain.Hash("result:", t.Tool.CallID)
	}
	switch {
	case t.ID != "" && d.Seen.holds(id):
		t.Mark = markConflict
	case result != 0 && d.Seen.holds(result):
		return // the history repeats results in messages of their own
	}
	d.Seen.add(id, text)
	if result != 0 {
		d.Seen.add(result, 0)
	}
	if t.Mark == markSummary {
		d.Meta.Compactions++
	}
	d.Add(t)
}
