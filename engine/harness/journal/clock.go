package journal

import (
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
)

// Clock is the part of a decoder's state that tells time.
type Clock struct {
	// TS is the time of the newest record that had one.
	TS string `json:"ts,omitempty"`
}

// Tick notes the time of a record, "" for one without, and returns the mark of
// its turns.
func (c *Clock) Tick(m *session.Meta, ts string) (mark string) {
	if ts = plain.Text(ts); ts == "" {
		if c.TS != "" {
			mark = Approximate
		}
		return mark
	}
	c.TS = ts
	Note(m, ts)
	return ""
}

// Note notes a time of a session: the first that was told, and the latest.
func Note(m *session.Meta, ts string) {
	if m.FirstTS == "" {
		m.FirstTS = ts
	}
	if plain.Later(m.LastTS, ts) {
		m.LastTS = ts
	}
}
