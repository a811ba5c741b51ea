package capture

import (
	"errors"
	"os"
	"testing"
	"time"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/store"
)

// gone reports whether the manifest of a transcript's session says that it is
// gone.
func (b *bench) gone(path string) bool {
	b.t.Helper()
	entries, err := b.builder.Index.Entries()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		m, _, err := store.ReadManifest(b.builder.Store.SessionDir(e.Project, e.ID))
		if err != nil {
			b.t.Fatal(err)
		}
		if i, ok := m.Source(path); ok {
			return m.Sources[i].Gone
		}
	}
	return false
}

// A session is told when its source vanishes, by whatever it comes out: an
// event, a sweep, or the next start. A source that stays is not touched.
func TestVanishedSourceIsNoted(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Sweep = time.Second })
	for n := range 4 {
		b.say(b.session(n), "one")
	}
	b.start()
	if err := b.capturer.Poke(t.Context(), nil, true); err != nil {
		t.Fatal(err)
	}
	remove := func(n int) {
		t.Helper()
		if err := os.Remove(b.session(n)); err != nil {
			t.Fatal(err)
		}
	}
	remove(0)
	b.capturer.sched.Changed(b.session(0))
	b.until("what an event told", func() bool { return b.gone(b.session(0)) })
	remove(1)
	b.until("what a sweep found", func() bool { return b.gone(b.session(1)) })
	b.end()
	b.capturer = nil // as a new process
	remove(2)
	b.start()
	b.until("what a start found", func() bool { return b.gone(b.session(2)) })
	if b.gone(b.session(3)) {
		t.Error("a source that is there is noted as gone")
	}
	b.end()
}

// A poke of everything that waits covers what the first scan has only queued,
// and what is under way.
func TestPokeOfEverythingWaits(t *testing.T) {
	for range 3 {
		b := newBench(t, func(c *Config) { c.Quiet, c.MinFresh = time.Hour, time.Hour })
		for n := range 10 {
			b.say(b.session(n), "one")
		}
		b.start()
		for round := 1; round <= 3; round++ {
			if err := b.capturer.Poke(t.Context(), nil, true); err != nil {
				t.Fatal(err)
			}
			for n := range 10 {
				if got := b.turns(b.session(n)); got != round {
					t.Errorf("round %d: %d turns of session %d", round, got, n)
				}
				b.say(b.session(n), "more")
			}
		}
		b.end()
	}
}

// It says what it waited for in vain, and waits for the others.
func TestPokeOfEverythingFails(t *testing.T) {
	b := newBench(t, nil)
	b.say(b.session(1), "cannot be captured")
	b.say(b.session(2), "can be")
	lock := b.builder.Store.SessionLock("00000001-2222-4333-8444-555555555555")
	if err := os.MkdirAll(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	b.start()
	defer b.end()
	for range 2 { // the second one finds it failing already
		err := b.capturer.Poke(t.Context(), nil, true)
		var vain *control.Uncaptured
		if !errors.As(err, &vain) || len(vain.Failed) != 1 || vain.Failed[0].Key != b.session(1) || !fault.Is(err, fault.Internal) {
			t.Errorf("%v: %+v", err, vain)
		}
		if b.turns(b.session(2)) != 1 {
			t.Error("the other one is not captured")
		}
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := b.capturer.Poke(t.Context(), nil, true); err != nil || b.turns(b.session(1)) != 1 {
		t.Errorf("after the repair: %v", err)
	}
}
