package verb_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/store"
	"handoffd/engine/verb"
)

// TestTogether lets builders and verbs of their own work on the same sessions
// at once, as processes do.
func TestTogether(t *testing.T) {
	m := newMachine(t, t.TempDir())
	clock := 0
	say := func() {
		clock++
		m.say(one, "continue", clock)
	}
	say()
	m.say(two, "done", 1000)
	for _, s := range []string{one, two} {
		if err := m.build(s); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	work := func(do func(m *machine) error) {
		own := &machine{t: t, dir: m.dir, store: m.store}
		own.restart()
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := do(own); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	ctx := context.Background()
	for range 2 {
		work(func(m *machine) error { return m.buildPath(one) })
	}
	work(func(m *machine) error {
		e, _ := m.entry(one)
		_, err := verb.Promote(ctx, m.b, e, false, time.Now())
		return err
	})
	work(func(m *machine) error {
		e, _ := m.entry(one)
		_, _, err := verb.SetContract(ctx, m.b, e, map[string]string{"RISKS": "some"})
		return err
	})
	work(func(m *machine) error {
		a, _ := m.entry(one)
		b, _ := m.entry(two)
		_, err := verb.Merge(ctx, m.b, a, b, true)
		return err
	})
	for range 30 {
		say()
		if err := m.build(one); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	m.restart()
	if err := m.build(one); err != nil {
		t.Fatal(err)
	}
	a, _ := m.entry(one)
	b, _ := m.entry(two)
	if _, err := verb.Merge(ctx, m.b, a, b, true); err != nil {
		t.Fatal(err)
	}
	m.sound("all of it")
	if got := len(m.turns(a)); got != clock {
		t.Errorf("%d turns, want %d", got, clock)
	}
	c, _ := m.entry(one + "+merge+" + two)
	if got := len(m.turns(c)); got != clock+1 {
		t.Errorf("the merge has %d turns, want %d", got, clock+1)
	}
}

// world is an Outside in which a broker answers what a test wants.
type world struct {
	mu     sync.Mutex
	calls  int
	answer func() (verb.Ran, error)
}

func (w *world) Execute(string) error { return nil }

func (w *world) Look(name string) (string, error) { return "/usr/bin/" + name, nil }

func (w *world) Run(context.Context, string, []string) (verb.Ran, error) {
	w.mu.Lock()
	w.calls++
	w.mu.Unlock()
	return w.answer()
}

// TestOnce makes one dispatch from many sides, and lets it end in every way.
func TestOnce(t *testing.T) {
	m := newMachine(t, t.TempDir())
	m.say(one, "go", 1)
	if err := m.build(one); err != nil {
		t.Fatal(err)
	}
	e, _ := m.entry(one)
	if _, _, err := verb.SetContract(context.Background(), m.b, e, map[string]string{
		"RESULT": "PARTIAL", "WHAT_CHANGED": "x", "VALIDATION": "x", "EVIDENCE": "x", "BLOCKERS": "x", "RISKS": "x", "FOLLOW_UP": "x",
	}); err != nil {
		t.Fatal(err)
	}
	broker := t.TempDir()
	script := filepath.Join(broker, "runtime", "request-child-worker.mjs")
	write(t, script, "")
	send := func(w *world, task string) (verb.Sent, error) {
		return verb.Send(context.Background(), m.b, e, verb.Dispatch{Task: task, Broker: broker, Live: true, Once: true}, w, time.Now())
	}
	good := func() (verb.Ran, error) { return verb.Ran{Started: true, Stdout: []byte(`{"id": 7}`)}, nil }

	w := &world{answer: good}
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			// Whoever comes while it is under way is told that it was begun.
			if s, err := send(w, "together"); err != nil && s.Status != verb.Uncertain {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if w.calls != 1 {
		t.Errorf("the broker was asked %d times", w.calls)
	}
	s, err := send(w, "together")
	if err != nil || !s.Before || string(s.Output) != `{"id":7}` {
		t.Errorf("%+v %v", s, err)
	}
	for _, c := range []struct {
		name   string
		answer func() (verb.Ran, error)
		again  bool // asked again by the next request
	}{
		{"never started", func() (verb.Ran, error) { return verb.Ran{}, errors.New("no such program") }, true},
		{"said no", func() (verb.Ran, error) { return verb.Ran{Started: true, Exit: 1, Stderr: []byte("full")}, nil }, false},
		{"too slow", func() (verb.Ran, error) { return verb.Ran{Started: true, Exit: -1, TimedOut: true}, nil }, false},
		{"no JSON", func() (verb.Ran, error) { return verb.Ran{Started: true, Stdout: []byte("queued")}, nil }, false},
		{"two documents", func() (verb.Ran, error) { return verb.Ran{Started: true, Stdout: []byte("{} {}")}, nil }, false},
		{"interrupted", func() (verb.Ran, error) { return verb.Ran{Started: true}, context.Canceled }, false},
		{"nothing", func() (verb.Ran, error) { return verb.Ran{Started: true}, nil }, false},
		{"too much", func() (verb.Ran, error) { return verb.Ran{Started: true, Stdout: []byte("{}"), Cut: true}, nil }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := send(&world{answer: c.answer}, c.name); err == nil {
				t.Fatal("no error")
			}
			next := &world{answer: good}
			s, err := send(next, c.name)
			if c.again && (err != nil || next.calls != 1) {
				t.Errorf("%+v %v", s, err)
			}
			if !c.again && (err == nil || next.calls != 0 || s.Status != verb.Uncertain) {
				t.Errorf("%+v %v, %d calls", s, err, next.calls)
			}
		})
	}
	m.sound("dispatches")
}

// TestOnceKilled dies before every effect of a recorded dispatch: the broker
// is asked at most once, whenever it was.
func TestOnceKilled(t *testing.T) {
	for n := 1; ; n++ {
		m := newMachine(t, t.TempDir())
		m.say(one, "go", 1)
		if err := m.build(one); err != nil {
			t.Fatal(err)
		}
		e, _ := m.entry(one)
		fields := map[string]string{}
		for _, f := range []string{"RESULT", "WHAT_CHANGED", "VALIDATION", "EVIDENCE", "BLOCKERS", "RISKS", "FOLLOW_UP"} {
			fields[f] = "x"
		}
		if _, _, err := verb.SetContract(context.Background(), m.b, e, fields); err != nil {
			t.Fatal(err)
		}
		broker := t.TempDir()
		write(t, filepath.Join(broker, "runtime", "request-child-worker.mjs"), "")
		w := &world{answer: func() (verb.Ran, error) { return verb.Ran{Started: true, Stdout: jsontext.Value("{}")}, nil }}
		send := func() (verb.Sent, error) {
			return verb.Send(context.Background(), m.b, e, verb.Dispatch{Task: "x", Broker: broker, Live: true, Once: true}, w, time.Now())
		}
		died := dieAt(n, func() { _, _ = send() })
		m.restart()
		before := w.calls
		_, err := send()
		if w.calls > 1 {
			t.Fatalf("killed before effect %d: asked %d times", n, w.calls)
		}
		if before == 0 && err == nil && w.calls != 1 {
			t.Fatalf("killed before effect %d: never asked, and it says so to nobody", n)
		}
		if !died {
			if n < 5 {
				t.Fatalf("only %d effects were seen", n)
			}
			return
		}
	}
}

// TestOfItself and others that are refused.
func TestRefusedMerges(t *testing.T) {
	m := newMachine(t, t.TempDir())
	m.say(one, "go", 1)
	m.say(two, "go", 2)
	for _, s := range []string{one, two} {
		if err := m.build(s); err != nil {
			t.Fatal(err)
		}
	}
	a, _ := m.entry(one)
	b, _ := m.entry(two)
	if _, err := verb.Merge(context.Background(), m.b, a, a, true); !fault.Is(err, fault.Usage) {
		t.Errorf("with itself: %v", err)
	}
	// Another session has the name.
	id := fmt.Sprintf("%s+merge+%s", one, two)
	m.say(id, "not a merge", 3)
	if err := m.build(id); err != nil {
		t.Fatal(err)
	}
	if _, err := verb.Merge(context.Background(), m.b, a, b, true); !fault.Is(err, fault.Exists) {
		t.Errorf("over another session: %v", err)
	}
	// A part that is damaged is not merged.
	write(t, filepath.Join(m.store.SessionDir(b.Project, b.ID), store.TimelineName), "{}\n")
	if _, err := verb.Merge(context.Background(), m.b, b, a, true); !fault.Is(err, fault.Integrity) {
		t.Errorf("of a damaged session: %v", err)
	}
}
