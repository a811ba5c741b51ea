package ingest

import (
	"fmt"

	"handoffd/engine/harness"
	"handoffd/engine/store"
	"handoffd/engine/turn"
)

// The turns at the end of a timeline that stand for the unfinished end of a
// source are read from that source again each time it grows. Here is what
// becomes of them otherwise: nothing that was captured goes away again.

// promote decides the turns that stood for the unfinished end of the source,
// which holds other content now: nothing will tell them again. A source that is
// read from its start at every change does tell them again.
func (p *pass) promote() error {
	return p.readmit(func(t *turn.Turn) bool { return t.Source == p.index })
}

// keep writes the turns again that stand for the unfinished ends of the other
// sources of the session.
func (p *pass) keep() error {
	if len(p.st.Sources) < 2 {
		return nil
	}
	return p.readmit(func(t *turn.Turn) bool { return t.Source != p.index })
}

func (p *pass) readmit(which func(*turn.Turn) bool) error {
	if p.Undecided == nil {
		return nil
	}
	turns, err := p.Undecided()
	if err != nil {
		return fmt.Errorf("read undecided turns: %w", err)
	}
	for i := range turns {
		t := &turns[i]
		if !which(t) {
			continue
		}
		scope := -1
		if p.Format.Traits().Identity == harness.BySource && t.Source < len(p.st.Sources) {
			scope = p.st.Sources[t.Source].Scope
		}
		k := store.KeyOf(t, p.byID, scope)
		if p.byID && (t.ID != "" || t.TS != "") && p.keys.has(k) {
			continue
		}
		if err := p.admit(t, k); err != nil {
			return err
		}
		// Reading the source again may tell it once more, or otherwise.
		if p.logged != nil {
			p.logged[k]++
		}
		if p.ids != nil && t.ID != "" {
			p.ids[t.ID] = true
		}
	}
	return nil
}

// admit appends a turn.
func (p *pass) admit(t *turn.Turn, k store.Key) error {
	p.st.add(t, p.own)
	p.line = store.AppendTurn(p.line[:0], t)
	if err := p.Journal.Turn(p.line, k); err != nil {
		return err
	}
	if p.byID {
		p.keys.add(k)
	}
	p.fresh++
	if p.settled != nil {
		p.provisional++
	}
	return p.Observer.Turn(t)
}
