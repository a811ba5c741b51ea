package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for the real kernel before it gives up.
const patience = 20 * time.Second

// collector keeps the events of a source.
type collector struct {
	mu      sync.Mutex
	files   map[string]int
	rescans map[string]int
	news    chan struct{}
}

func newCollector() *collector {
	return &collector{files: map[string]int{}, rescans: map[string]int{}, news: make(chan struct{}, 1)}
}

func (c *collector) emit(e Event) {
	c.mu.Lock()
	if e.Rescan {
		c.rescans[e.Path]++
	} else {
		c.files[e.Path]++
	}
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// wait returns when cond, called with c locked, is true.
func (c *collector) wait(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c.mu.Lock()
		ok := cond()
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-c.news:
		case <-tick.C:
		case <-limit.C:
			c.mu.Lock()
			defer c.mu.Unlock()
			t.Fatalf("timeout: %s\nfiles %v\nrescans %v", what, c.files, c.rescans)
		}
	}
}

func (c *collector) waitFile(t *testing.T, path string) {
	t.Helper()
	c.wait(t, "an event for "+path, func() bool { return c.files[path] > 0 })
}

func (c *collector) waitRescan(t *testing.T, path string, count int) {
	t.Helper()
	c.wait(t, "a rescan of "+path, func() bool { return c.rescans[path] >= count })
}

func (c *collector) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.files)
	clear(c.rescans)
}

// run starts a source and stops it at the end of the test.
func run(t *testing.T, s Source, c *collector, roots ...Root) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, roots, c.emit) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want %v", err, context.Canceled)
		}
	})
}

// fast is a Notify with short clocks.
func fast() *Notify {
	return NewNotify(NotifyConfig{Check: 50 * time.Millisecond, Poll: 20 * time.Millisecond,
		RetryMin: 50 * time.Millisecond, RetryMax: 100 * time.Millisecond})
}

func tempRoot(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fakeBackend is a backend whose events the test makes.
type fakeBackend struct {
	mu      sync.Mutex
	watches map[string]bool
	limit   int   // of watches; 0 is none
	fail    error // of Add beyond the limit
	only    map[string]error
	events  chan fsnotify.Event
	errs    chan error
}

func newFake() *fakeBackend {
	return &fakeBackend{watches: map[string]bool{}, events: make(chan fsnotify.Event), errs: make(chan error)}
}

func (b *fakeBackend) Add(dir string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.only[dir]; err != nil {
		return err
	}
	if b.limit > 0 && len(b.watches) >= b.limit && !b.watches[dir] {
		return b.fail
	}
	b.watches[dir] = true
	return nil
}

func (b *fakeBackend) Remove(dir string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watches, dir)
}

func (b *fakeBackend) WatchList() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for dir := range b.watches {
		list = append(list, dir)
	}
	return list
}

func (b *fakeBackend) Events() <-chan fsnotify.Event { return b.events }
func (b *fakeBackend) Errors() <-chan error          { return b.errs }
func (b *fakeBackend) Close() error                  { return nil }

func (b *fakeBackend) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func withBackend(n *Notify, b backend) *Notify {
	n.open = func() (backend, error) { return b, nil }
	return n
}

func statusOf(s Source, root string) RootStatus {
	for _, r := range s.Status() {
		if r.Root == root {
			return r
		}
	}
	return RootStatus{}
}
