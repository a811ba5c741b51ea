package harnesstest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/turn"
)

// Spool keeps an export in memory; it implements harness.Spool.
type Spool struct{ bytes.Buffer }

// Reset implements harness.Spool.
func (s *Spool) Reset() error {
	s.Buffer.Reset()
	return nil
}

// Exports reads every session of a bundle as a sample, by id. It checks that
// the same state gives the same bytes and the same key.
func Exports(t testing.TB, b harness.Bundle, path string) []Sample {
	t.Helper()
	l, err := b.List(path, nil)
	if err != nil {
		t.Fatalf("list %s: %v", path, err)
	}
	var list []Sample
	for id, m := range l.Members {
		key, ok, err := b.Key(path, id)
		if err != nil || !ok || key != m.Key {
			t.Errorf("session %s has key %q, listed with %q: %v %v", id, key, m.Key, ok, err)
		}
		name := path
		if !b.Single() {
			name = harness.Join(path, id)
		}
		s := Sample{Name: id, Data: Export(t, b, path, id), Path: name}
		if again := Export(t, b, path, id); !bytes.Equal(again, s.Data) {
			t.Errorf("session %s is exported in two ways", id)
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Sample) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return list
}

// Export reads one session of a bundle.
func Export(t testing.TB, b harness.Bundle, path, id string) []byte {
	t.Helper()
	var s Spool
	if err := b.Export(path, id, &s); err != nil {
		t.Fatalf("export %s: %v", id, err)
	}
	return bytes.Clone(s.Bytes())
}

// States is the conformance suite of sessions whose rows change in place: each
// sample is the session at a later time. Whichever of the states are seen, what
// is decided is decided for ever, no turn is captured twice, and what the last
// state says is there.
func States(t *testing.T, f harness.Format, states ...Sample) {
	t.Helper()
	last := Read(f, harness.Env{}, states[len(states)-1])
	Check(t, f, last)
	if len(last.All()) == 0 {
		t.Fatal("the last state has no turns")
	}
	for seen := range 1 << (len(states) - 1) {
		var captured []turn.Turn
		has := map[string]bool{}
		var r Result
		for i, s := range states {
			if i < len(states)-1 && seen>>i&1 == 0 {
				continue
			}
			r = Read(f, harness.Env{}, s)
			Check(t, f, r)
			for _, one := range r.Decided {
				if k := identity(one); !has[k] {
					has[k] = true
					captured = append(captured, one)
				}
			}
		}
		ids := map[string]bool{}
		for _, one := range slices.Concat(captured, r.Provisional) {
			if one.ID != "" && ids[one.ID] {
				t.Errorf("states %b: %s is captured twice", seen, Line(one))
			}
			ids[one.ID] = true
		}
		for _, one := range last.All() {
			if !has[identity(one)] && !slices.ContainsFunc(r.Provisional, func(p turn.Turn) bool { return identity(p) == identity(one) }) {
				t.Errorf("states %b: missing %s", seen, Line(one))
			}
		}
	}
}

// identity is what makes two turns the same when a source is read again.
func identity(one turn.Turn) string {
	at := one.ID
	if at == "" {
		at = "at " + one.TS
	}
	return fmt.Sprint(at, one.Class, one.Text)
}
