package ingest

import (
	"fmt"

	"handoffd/engine/harness"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// promoteDeleted decides the turns of an unfinished end whose rows are gone:
// an answer that was taken back while it came in. What changed in place is told
// again under the same id, and is not among them.
func (p *pass) promoteDeleted() error {
	if p.Undecided == nil {
		return nil
	}
	turns, err := p.Undecided()
	if err != nil {
		return fmt.Errorf("read undecided turns: %w", err)
	}
	if len(turns) == 0 {
		return nil
	}
	told := told{}
	r, err := p.File.content(0)
	if err != nil {
		return err
	}
	defer r.Close()
	var meta session.Meta
	f := harness.Follower{Format: p.Format, Env: p.Env, LineBytes: p.LineBytes}
	if err := f.Pass(r, harness.Cursor{}, &meta, told); err != nil {
		return err
	}
	return p.readmit(func(t *turn.Turn) bool { return t.Source == p.index && t.ID != "" && !told[t.ID] })
}

// told are the ids of all turns that a source tells; it implements
// harness.Handler.
type told map[string]bool

// Unit implements harness.Handler.
func (t told) Unit(out *harness.Out, _ harness.Position) error {
	for i := range out.Turns {
		t[out.Turns[i].ID] = true
	}
	return nil
}

// Reject implements harness.Handler.
func (told) Reject(harness.Fragment) error { return nil }

// Settled implements harness.Handler.
func (told) Settled(harness.Cursor, *harness.Out) error { return nil }
