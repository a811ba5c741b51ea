package amp

import (
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// decoder implements harness.Decoder.
type decoder struct {
	name string // of the file, without its ending
	held []step
}

// step is one block's turns, or the usage of a message, which has none.
type step struct {
	turns   []turn.Turn
	usage   usage
	summary bool
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	var v harness.Value
	var t thread
	flagged, err := v.Object(trim(unit), func(v *harness.Value) { t = readThread(v) })
	if err != nil {
		return err
	}
	if !t.hasMessages {
		return &harness.Rejection{Reason: "a document without messages is no thread"}
	}
	if t.id == "" {
		t.id = plain.Clip(plain.Text(d.name), maxID)
	}
	out.Flagged = flagged
	m := out.Meta
	if m.ID == "" {
		m.ID = t.id
	}
	if m.CWD == "" {
		m.CWD = t.cwd
	}
	set(&m.Title, t.title)
	set(&m.Branch, t.branch)
	set(&m.Version, t.version)
	set(&m.ForkedFrom, t.forkedFrom)
	set(&m.Kind, t.kind)
	d.held = nil
	steps, decided := t.steps()
	for i := range steps[:decided] {
		steps[i].give(out)
	}
	d.held = steps[decided:]
	if !t.counted() {
		t.ledger.add(m)
	}
	return nil
}

// Pending implements harness.Decoder.
func (d *decoder) Pending() bool { return len(d.held) > 0 }

// Flush implements harness.Decoder.
func (d *decoder) Flush(out *harness.Out) {
	for i := range d.held {
		d.held[i].give(out)
	}
	d.held = nil
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return []byte("{}"), nil }

// set sets a field of which the newest counts.
func set(field *string, s string) {
	if s != "" {
		*field = s
	}
}

func (s *step) give(out *harness.Out) {
	m := out.Meta
	for _, t := range s.turns {
		if m.FirstTS == "" {
			m.FirstTS = t.TS
		}
		if m.LastTS == "" || plain.Later(m.LastTS, t.TS) {
			m.LastTS = t.TS
		}
	}
	out.Turns = append(out.Turns, s.turns...)
	s.usage.add(m)
	if s.summary {
		m.Compactions++
	}
}

// add adds what was used to what the session used.
func (u *usage) add(m *session.Meta) {
	set(&m.Model, u.model)
	if !u.some {
		return
	}
	m.Tokens.Input += u.Input
	m.Tokens.Output += u.Output
	m.Tokens.CacheRead += u.CacheRead
	m.Tokens.CacheWrite += u.CacheWrite
	if u.Context > 0 {
		m.Tokens.Context = u.Context
	}
	if u.Window > 0 {
		m.Tokens.Window = u.Window
	}
}

// counted reports whether messages tell their usage, so that the ledger, which
// tells the same, must not be counted too.
func (t *thread) counted() bool {
	for i := range t.messages {
		if t.messages[i].usage.some {
			return true
		}
	}
	return false
}

// steps are what the thread amounts to, of which the first decided no longer
// change.
//
// What may still change stands at the end: a message that comes in, and
// results of the tools that the last one called. When somebody speaks after
// them they are over, whatever they say, for so Amp shows them (a result that
// is missing then is a cancelled one). A subagent and a command of the user's
// own speak while a tool runs, and say nothing of it.
func (t *thread) steps() (steps []step, decided int) {
	last := 0
	for i := range t.messages {
		if t.messages[i].speaks() {
			last = i
		}
	}
	w := walk{thread: t.id, now: t.created, seen: map[string]int{}}
	open := false
	for i := range t.messages {
		m := &t.messages[i]
		if m.id == "" {
			m.id = "i" + strconv.Itoa(i)
		}
		w.begin(m)
		open = open || i >= last && m.open
		for n := range m.blocks {
			open = open || i >= last && m.blocks[n].open()
			steps = append(steps, w.block(m, n))
			if !open {
				decided = len(steps)
			}
		}
		steps = append(steps, step{usage: m.usage})
		if !open {
			decided = len(steps)
		}
	}
	for i := range t.queued {
		m := &t.queued[i]
		m.id = "queued" + strconv.Itoa(i)
		w.begin(m)
		for n := range m.blocks {
			s := w.block(m, n)
			for k := range s.turns {
				s.turns[k].Mark = "queued"
			}
			steps = append(steps, s)
		}
	}
	return steps, decided
}

// speaks reports whether the message is the next one of the conversation and
// not what a tool does for the one before.
func (m *message) speaks() bool {
	if m.parent != "" {
		return false
	}
	switch m.role {
	case "assistant":
		return true
	case "user":
		for i := range m.blocks {
			if m.blocks[i].kind != "tool_result" {
				return true
			}
		}
	}
	return false
}

// walk goes through the messages of a thread.
type walk struct {
	thread string
	now    string // the last time that was told
	exact  bool   // by the message at hand
	id     string // of the message at hand
	seen   map[string]int
	names  map[string]string // tools by their calls
}

func (w *walk) begin(m *message) {
	if w.exact = m.at != ""; w.exact {
		w.now = m.at
	}
	// Messages are numbered from 0 in every thread, and a turn's id must not
	// be another thread's.
	w.id = w.thread + "/" + m.id
	w.seen[w.id]++
	if n := w.seen[w.id]; n > 1 {
		w.id += "~" + strconv.Itoa(n)
	}
}

// block makes the turns of the n-th block of m.
func (w *walk) block(m *message, n int) (s step) {
	b := &m.blocks[n]
	t := turn.Turn{TS: w.now, ID: w.id, Agent: m.parent, Class: turn.Other, Text: b.text}
	if n > 0 {
		t.ID += "#" + strconv.Itoa(n+1)
	}
	if !w.exact && t.TS != "" {
		t.Mark = "approximate-time"
	}
	switch b.kind {
	case "text":
		switch {
		case b.hidden:
		case m.role == "user":
			t.Class = turn.User
		case m.role == "assistant":
			t.Class = turn.Agent
		}
	case "thinking", "redacted_thinking":
		t.Class = turn.Thought
	case "image":
		t.Text = plain.Image
		if m.role == "assistant" {
			t.Class = turn.Agent
		}
	case "summary":
		t.Mark = "summary"
		s.summary = true
	case "tool_use", "server_tool_use":
		w.call(&t, b)
	case "tool_result":
		w.result(&t, b)
	case "manual_bash_invocation": // call and outcome are one
		w.result(&t, b)
		t.Text = strings.TrimSuffix("$ "+b.tool.Command+"\n"+b.run.text, "\n")
		t.Tool.Name, t.Tool.Command = "bash", b.tool.Command
	}
	if strings.TrimSpace(t.Text) != "" {
		s.turns = []turn.Turn{t}
	}
	return s
}

func (w *walk) call(t *turn.Turn, b *block) {
	t.Class = turn.ToolUse
	t.Text = b.text
	t.Tool = &turn.Tool{
		Phase: turn.Call, Name: b.name, CallID: b.callID,
		Command: b.tool.Command, Edits: b.tool.Edits,
	}
	if w.names == nil {
		w.names = map[string]string{}
	}
	w.names[b.callID] = b.name
}

func (w *walk) result(t *turn.Turn, b *block) {
	t.Class = turn.ToolUse
	if t.Text = b.run.text; strings.TrimSpace(t.Text) == "" {
		t.Text = plain.Empty
	}
	t.Tool = &turn.Tool{
		Phase: turn.Result, Name: w.names[b.callID], CallID: b.callID,
		Exit: b.run.exit, Error: failed[b.run.status],
	}
}
