package ledger

import (
	"time"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// Tape is where a decoder of rows puts turns. Rows of an answer that is still
// being written change in place; what stands after the first of them is held
// back, so that the end of the session is told as it is now and decided later.
type Tape struct {
	value harness.Value
	ready []turn.Turn
	held  []turn.Turn
	hold  bool
}

// Read decodes a line of an export: read reads its record, from the start each
// time it is called, and take adds it to the session and returns its kind if
// that is unknown. The error is that of harness.Value.Object, or a
// *harness.Rejection when the record is no object.
func (t *Tape) Read(unit []byte, out *harness.Out, read func(*harness.Value), take func(kind string, m *session.Meta) (unknown string)) error {
	kind, object := "", false
	lenient, err := t.value.Object(unit, func(v *harness.Value) {
		kind, object = "", false
		v.Fields(func(name string) {
			kind, object = name, v.Kind() == '{'
			read(v)
		})
	})
	if err != nil {
		return err
	}
	if !object {
		return &harness.Rejection{Reason: harness.ReasonNotObject}
	}
	out.Unknown = take(kind, out.Meta)
	out.Flagged = out.Flagged || lenient
	t.Deliver(out)
	return nil
}

// Add appends a turn.
func (t *Tape) Add(one turn.Turn) {
	if t.hold {
		t.held = append(t.held, one)
	} else {
		t.ready = append(t.ready, one)
	}
}

// Hold holds back what is added from now on.
func (t *Tape) Hold() { t.hold = true }

// Close says that nothing of what was added will change any more.
func (t *Tape) Close() {
	t.ready = append(t.ready, t.held...)
	t.held, t.hold = nil, false
}

// Deliver hands out what is decided.
func (t *Tape) Deliver(out *harness.Out) {
	out.Turns = append(out.Turns, t.ready...)
	t.ready = t.ready[:0]
}

// Pending implements harness.Decoder for a decoder that embeds a Tape.
func (t *Tape) Pending() bool { return len(t.held) > 0 }

// Flush implements harness.Decoder for a decoder that embeds a Tape.
func (t *Tape) Flush(out *harness.Out) {
	out.Turns = append(out.Turns, t.held...)
	t.held = nil
}

// State implements harness.Decoder: rows are always read from their start.
func (t *Tape) State() ([]byte, error) { return []byte("null"), nil }

// Exit reads an exit code into to; it leaves to alone when there is none.
func Exit(v *harness.Value, to **int) {
	if n, ok := v.Int(); ok && int64(int(n)) == n {
		exit := int(n)
		*to = &exit
	}
}

// The years that a time of a session can be in.
var (
	earliest = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	latest   = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
)

// Millis brings a time since 1970 to milliseconds, whatever unit of seconds,
// milliseconds, microseconds or nanoseconds it is in: schemas say one and
// programs write another. It is 0 for what is no time of our age in any.
func Millis(n int64) int64 {
	for _, unit := range [][2]int64{{1000, 1}, {1, 1}, {1, 1000}, {1, 1_000_000}} {
		if unit[0] > 1 && (n > latest || n < 0) {
			continue
		}
		if ms := n * unit[0] / unit[1]; ms >= earliest && ms < latest {
			return ms
		}
	}
	return 0
}

// Stamp is a time since 1970 as text, "" for what is none.
func Stamp(n int64) string {
	ms := Millis(n)
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// Clock notes the time of a record.
func Clock(m *session.Meta, ts string) {
	if ts == "" {
		return
	}
	if m.FirstTS == "" || plain.Later(ts, m.FirstTS) {
		m.FirstTS = ts
	}
	if plain.Later(m.LastTS, ts) {
		m.LastTS = ts
	}
}
