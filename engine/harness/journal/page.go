// Package journal holds what the formats share that are logs of JSON lines, each
// of which is decided when it is read: how a line becomes turns, what a turn
// without a time of its own is told, where a call's arguments name a command or
// a file. It knows no format's records, and never holds a turn back.
package journal

import (
	"encoding/json"
	"fmt"
	"strconv"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// Approximate marks a time that is not the record's own.
const Approximate = "approximate-time"

// maxID bounds the id of a record in bytes.
const maxID = 128

// ID makes a record's id fit to name a turn.
func ID(id string) string { return plain.Clip(plain.Text(id), maxID) }

// Restore reads the state that an earlier decoder saved, if any; name is the
// format's, for the error.
func Restore(name string, saved []byte, state any) error {
	if len(saved) == 0 {
		return nil
	}
	if err := json.Unmarshal(saved, state); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Page is the line at hand, for a decoder that embeds it.
type Page struct {
	// Meta is the session's, while a line is read.
	Meta *session.Meta
	// Mark is that of the line's turns that have no other.
	Mark string
	// Turns are the line's so far.
	Turns []turn.Turn

	value harness.Value
	named int
}

// Read decodes a line: read reads its record, from the start each time it is
// called, and take adds its turns and returns the record's type if that is
// unknown. The error is that of harness.Value.Object.
func (p *Page) Read(unit []byte, out *harness.Out, read func(*harness.Value), take func() (unknown string)) error {
	lenient, err := p.value.Object(unit, read)
	if err != nil {
		return err
	}
	p.Begin(out.Meta)
	out.Unknown = take()
	out.Flagged = out.Flagged || lenient
	p.End(out)
	return nil
}

// Begin turns to another line.
func (p *Page) Begin(m *session.Meta) { p.Turns, p.Meta, p.named = p.Turns[:0], m, 0 }

// End hands out what was added.
func (p *Page) End(out *harness.Out) {
	out.Turns = append(out.Turns, p.Turns...)
	p.Meta = nil
}

// Add adds a turn.
func (p *Page) Add(t turn.Turn) { p.Turns = append(p.Turns, t) }

// Sign gives a turn a time and a name: the first of a record's has its id, the
// second that with "#2".
func (p *Page) Sign(t *turn.Turn, ts, id string) {
	t.TS, t.ID = ts, ID(id)
	if p.named++; p.named > 1 && t.ID != "" {
		t.ID += "#" + strconv.Itoa(p.named)
	}
	if t.Mark == "" {
		t.Mark = p.Mark
	}
}

// Pending implements harness.Decoder.
func (*Page) Pending() bool { return false }

// Flush implements harness.Decoder.
func (*Page) Flush(*harness.Out) {}
