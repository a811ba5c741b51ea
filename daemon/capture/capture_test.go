package capture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
	"handoffd/watch"
)

// Without a single event everything is captured by sweeps: events are hints.
func TestSweepsAloneCapture(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Sweep = time.Second })
	b.say(b.session(1), "there before the start")
	b.start()
	defer b.end()
	b.until("the first session", func() bool { return b.turns(b.session(1)) == 1 })
	b.say(b.session(1), "appended later")
	b.say(b.session(2), "another one")
	b.until("what came later", func() bool { return b.turns(b.session(1)) == 2 && b.turns(b.session(2)) == 1 })
}

// A sweep that finds nothing new builds nothing, neither while the daemon runs
// nor after a restart.
func TestNothingNewNothingBuilt(t *testing.T) {
	b := newBench(t, nil)
	b.say(b.session(1), "one")
	b.say(b.session(2), "two")
	if err := os.WriteFile(b.session(3), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	if err := b.capturer.Poke(t.Context(), nil, true); err != nil {
		t.Fatal(err)
	}
	before := b.capturer.Stats()
	if before.Captures.Built != 2 || before.Captures.Passed != 1 || before.Initial {
		t.Errorf("after a first sweep: %+v", before)
	}
	if err := b.capturer.Poke(t.Context(), nil, true); err != nil {
		t.Fatal(err)
	}
	if s := b.capturer.Stats(); s.Captures != before.Captures || s.Queue.Queued != 0 {
		t.Errorf("after a second sweep: %+v", s)
	}
	b.end()

	b.capturer = nil // as a new process
	if err := os.Remove(b.session(3)); err != nil {
		t.Fatal(err)
	}
	b.start()
	if err := b.capturer.Poke(t.Context(), nil, true); err != nil {
		t.Fatal(err)
	}
	if s := b.capturer.Stats(); s.Captures.Built != 0 || s.Captures.Skipped+s.Captures.Passed != 0 || s.Sweep.Files != 2 {
		t.Errorf("after a restart: %+v", s)
	}
	b.end()
}

// What is written in the moment of the end is captured, and the index says so.
func TestDrainCapturesTheLast(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Quiet, c.MinFresh = time.Hour, time.Hour })
	b.say(b.session(1), "one")
	b.start()
	b.until("the first", func() bool { return b.turns(b.session(1)) == 1 })
	b.say(b.session(1), "two")
	b.say(b.session(2), "new")
	b.end()
	if b.turns(b.session(1)) != 2 || b.turns(b.session(2)) != 1 {
		t.Errorf("%d and %d turns", b.turns(b.session(1)), b.turns(b.session(2)))
	}
	if _, err := os.Stat(filepath.Join(b.builder.Store.Root, store.IndexName)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(b.builder.Store.Root, store.DirtyName)); err == nil {
		t.Error("the index was not brought up to date")
	}
}

// A poke answers with what became of the source.
func TestPokeSaysWhy(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Quiet, c.MinFresh = time.Hour, time.Hour })
	b.start()
	defer b.end()
	// The first scan could find the transcript while it is empty.
	b.until("the first scan", func() bool { return !b.capturer.Stats().Sweep.At.IsZero() })
	b.say(b.session(1), "one")
	if err := b.capturer.Poke(t.Context(), []string{b.session(1)}, true); err != nil || b.turns(b.session(1)) != 1 {
		t.Errorf("poke: %v, %d turns", err, b.turns(b.session(1)))
	}
	if err := os.WriteFile(b.session(2), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.capturer.Poke(t.Context(), []string{b.session(2)}, true); !fault.Is(err, fault.NoTurns) {
		t.Errorf("poke of an empty file: %v", err)
	}
	if n := b.seen(control.EventSkipped); n != 1 {
		t.Errorf("%d skipped events", n)
	}
	// It is a session as soon as it says something.
	b.say(b.session(2), "now")
	if err := b.capturer.Poke(t.Context(), []string{b.session(2)}, true); err != nil {
		t.Errorf("poke of a file that began to speak: %v", err)
	}
}

// A hook may poke before the last record is written: it is read again.
func TestRereadAfterPoke(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Quiet, c.MinFresh = time.Hour, time.Hour })
	b.start()
	defer b.end()
	b.say(b.session(1), "one")
	if err := b.capturer.Poke(t.Context(), []string{b.session(1)}, true); err != nil {
		t.Fatal(err)
	}
	b.say(b.session(1), "flushed late")
	b.until("the late record", func() bool { return b.turns(b.session(1)) == 2 })
}

// Another process that holds a session delays it; nothing is lost, and it is
// no reason to complain at once.
func TestHeldSessionIsTriedAgain(t *testing.T) {
	b := newBench(t, nil)
	b.say(b.session(1), "one")
	lock, err := safefile.Acquire(t.Context(), b.builder.Store.SessionLock("00000001-2222-4333-8444-555555555555"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	b.start()
	defer b.end()
	b.until("the failure", func() bool { return b.capturer.Stats().Queue.Failing == 1 })
	if f := b.capturer.Stats().Failures[0]; !fault.Is(f.Err, fault.Locked) || f.Next.IsZero() {
		t.Errorf("failure %+v", f)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	b.until("the capture", func() bool { return b.turns(b.session(1)) == 1 && b.capturer.Stats().Queue.Failing == 0 })
}

// Files that are gone, or are no files, do no harm.
func TestStrangeFiles(t *testing.T) {
	b := newBench(t, nil)
	if err := os.Symlink("/etc/passwd", b.session(1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(b.session(2), 0o700); err != nil {
		t.Fatal(err)
	}
	b.say(b.session(3), "a real one")
	b.start()
	defer b.end()
	b.until("the real one", func() bool { return b.turns(b.session(3)) == 1 })
	if err := os.Remove(b.session(3)); err != nil {
		t.Fatal(err)
	}
	b.capturer.event(watch.Event{Path: b.session(3)})
	b.capturer.event(watch.Event{Path: b.session(1)})
	if err := b.capturer.Poke(t.Context(), nil, true); err != nil {
		t.Fatal(err)
	}
	b.until("rest", func() bool { return b.capturer.Stats().Queue.Queued == 0 })
	if s := b.capturer.Stats(); s.Queue.Failing != 0 || b.turns(b.session(3)) != 1 {
		t.Errorf("%+v; the handoff of a source that is gone has %d turns", s, b.turns(b.session(3)))
	}
}

// One capturer takes over from another: what the first had not done is done.
func TestTakeOver(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Quiet, c.MinFresh = time.Hour, time.Hour })
	b.say(b.session(1), "one")
	b.start()
	b.until("the first", func() bool { return b.turns(b.session(1)) == 1 })
	b.say(b.session(1), "two")
	first, cancelFirst := b.capturer, b.cancel
	b.conf.Watch = &watch.None{}
	b.conf.Quiet, b.conf.MinFresh = 0, 0
	b.start()
	cancelFirst()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := first.Drain(ctx); err != nil {
		t.Error(err)
	}
	b.until("the second", func() bool { return b.turns(b.session(1)) == 2 })
	if err := first.Poke(t.Context(), []string{b.session(1)}, false); err == nil {
		t.Error("a drained capturer takes a poke")
	}
	b.end()
	if err := b.capturer.Poke(t.Context(), []string{b.session(1)}, true); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("poke after the end: %v", err)
	}
}
