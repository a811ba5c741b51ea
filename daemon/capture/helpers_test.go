package capture

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"handoffd/daemon/control"
	"handoffd/engine/harness/all"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
	"handoffd/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a home with one Claude Code directory, a store, and a capturer.
type bench struct {
	t        testing.TB
	dir      string
	builder  *pipeline.Builder
	capturer *Capturer
	conf     Config
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex
	events []control.Event
}

func newBench(t testing.TB, change func(*Config)) *bench {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir}
	if err := os.MkdirAll(b.path(""), 0o700); err != nil {
		t.Fatal(err)
	}
	b.builder = pipeline.New(store.Store{Root: filepath.Join(b.dir, "store")}, pipeline.Options{LazyIndex: true})
	b.conf = Config{
		Sources: Known(all.Formats(), filepath.Join(b.dir, "home"), func(string) string { return "" }),
		Builder: b.builder, Watch: &watch.None{}, Workers: 2, Sweep: time.Hour,
		Log: slog.New(slog.DiscardHandler), Emit: b.emit,
	}
	if change != nil {
		change(&b.conf)
	}
	return b
}

func (b *bench) emit(e control.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// seen counts the events of a type.
func (b *bench) seen(typ string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Type == typ {
			n++
		}
	}
	return n
}

func (b *bench) path(name string) string {
	return filepath.Join(b.dir, "home", ".claude", "projects", "-p", name)
}

// session is the path of the n-th transcript.
func (b *bench) session(n int) string {
	return b.path(fmt.Sprintf("%08d-2222-4333-8444-555555555555.jsonl", n))
}

// say appends a prompt to a transcript.
func (b *bench) say(path, text string) {
	b.t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	id := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	info, _ := f.Stat()
	if _, err := fmt.Fprintf(f, `{"type":"user","uuid":"%s-%d","sessionId":%q,"cwd":"/p","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":%q}}`+"\n", id, info.Size(), id, text); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) start() {
	b.capturer = New(b.conf, b.capturer)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.running.Go(func() { b.capturer.Run(ctx) })
}

func (b *bench) end() {
	b.t.Helper()
	b.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.capturer.Drain(ctx); err != nil {
		b.t.Errorf("drain: %v", err)
	}
	b.running.Wait()
}

// turns is how many turns of a transcript are stored; 0 if it is not.
func (b *bench) turns(path string) int {
	id := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	entries, err := b.builder.Index.Entries()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		if e.UUID == id {
			return e.Turns
		}
	}
	return 0
}

// until waits for a condition.
func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			b.t.Fatalf("waited in vain for: %s; %+v", what, b.capturer.Stats())
		case <-tick.C:
		}
	}
}
