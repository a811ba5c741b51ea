package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// bubble runs a Notify with slow clocks over a fake backend in fake time.
func bubble(t *testing.T, b *fakeBackend, f func(t *testing.T, n *Notify, c *collector, root string)) {
	t.Helper()
	root := tempRoot(t)
	mkdir(t, filepath.Join(root, "a", "b"))
	synctest.Test(t, func(t *testing.T) {
		b.events, b.errs = make(chan fsnotify.Event), make(chan error)
		c := newCollector()
		n := withBackend(NewNotify(NotifyConfig{}), b)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx, []Root{{Path: root}}, c.emit) }()
		synctest.Wait()
		f(t, n, c, root)
		cancel()
		<-done
	})
}

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestOverflowRescansOnceAndFindsNewDirectories(t *testing.T) {
	b := newFake()
	bubble(t, b, func(t *testing.T, n *Notify, c *collector, root string) {
		c.forget()
		late := mkdir(t, filepath.Join(root, "late"))
		for range 100 {
			b.errs <- fsnotify.ErrEventOverflow
		}
		wait(resyncMax)
		if c.rescans[root] == 0 || c.rescans[root] > 3 {
			t.Errorf("%d rescans for a burst of overflows", c.rescans[root])
		}
		b.set(func() {
			if !b.watches[late] || len(b.watches) != 4 {
				t.Errorf("watches %v", b.watches)
			}
		})
	})
}

func TestErrorFloodIsBounded(t *testing.T) {
	b := newFake()
	bubble(t, b, func(t *testing.T, n *Notify, c *collector, root string) {
		c.forget()
		for range 600 { // one minute
			b.errs <- errors.New("read failed")
			wait(100 * time.Millisecond)
		}
		if got := c.rescans[root]; got < 15 || got > 120 {
			t.Errorf("%d rescans in a minute of errors", got)
		}
	})
}

func TestOutOfWatchesPollsAndRecovers(t *testing.T) {
	b := newFake()
	b.limit, b.fail = 2, syscall.ENOSPC
	var mu sync.Mutex
	var reports []RootStatus
	root := tempRoot(t)
	dir := mkdir(t, filepath.Join(root, "a", "b"))
	synctest.Test(t, func(t *testing.T) {
		b.events, b.errs = make(chan fsnotify.Event), make(chan error)
		c := newCollector()
		n := withBackend(NewNotify(NotifyConfig{Report: func(s RootStatus) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, s)
		}}), b)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx, []Root{{Path: root}}, c.emit) }()
		synctest.Wait()
		if s := statusOf(n, root); s.Mode != ModePolling || s.Err == "" || s.Dirs != 3 {
			t.Fatalf("status %+v", s)
		}
		if c.rescans[root] != 1 {
			t.Fatalf("%d rescans", c.rescans[root])
		}
		b.set(func() {
			if len(b.watches) != 0 {
				t.Errorf("a polled root keeps watches: %v", b.watches)
			}
		})
		f := write(t, filepath.Join(dir, "f"), "")
		wait(DefaultPoll)
		if c.files[f] != 1 {
			t.Errorf("polling does not report %s", f)
		}
		wait(3 * time.Minute) // retries fail and are not reported again
		mu.Lock()
		if len(reports) != 1 || reports[0].Mode != ModePolling {
			t.Errorf("reports %+v, want one", reports)
		}
		mu.Unlock()
		if c.rescans[root] != 1 {
			t.Errorf("retries made %d rescans", c.rescans[root]-1)
		}
		b.set(func() { b.limit = 0 })
		wait(11 * time.Minute)
		if s := statusOf(n, root); s.Mode != ModeEvents || s.Err != "" || s.Dirs != 3 {
			t.Errorf("status after recovery %+v", s)
		}
		if c.rescans[root] != 2 {
			t.Errorf("no rescan after recovery")
		}
		cancel()
		<-done
	})
}

func TestNoInstancesPolls(t *testing.T) {
	root := tempRoot(t)
	synctest.Test(t, func(t *testing.T) {
		n := NewNotify(NotifyConfig{})
		n.open = func() (backend, error) { return nil, fmt.Errorf("open: %w", syscall.EMFILE) }
		c := newCollector()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx, []Root{{Path: root}}, c.emit) }()
		synctest.Wait()
		f := write(t, filepath.Join(root, "f"), "")
		wait(DefaultPoll)
		if s := statusOf(n, root); s.Mode != ModePolling || c.files[f] != 1 {
			t.Errorf("status %+v, files %v", s, c.files)
		}
		must(t, os.RemoveAll(root))
		wait(DefaultPoll)
		if s := statusOf(n, root); s.Mode != ModeMissing {
			t.Errorf("status of a removed root: %+v", s)
		}
		cancel()
		<-done
	})
}

func TestBackendEndsByItself(t *testing.T) {
	b := newFake()
	bubble(t, b, func(t *testing.T, n *Notify, c *collector, root string) {
		old := b.events
		b.events = make(chan fsnotify.Event)
		close(old)
		synctest.Wait()
		if s := statusOf(n, root); s.Mode != ModePolling {
			t.Errorf("status %+v", s)
		}
		wait(16 * time.Second)
		if s := statusOf(n, root); s.Mode != ModeEvents {
			t.Errorf("status after a retry %+v", s)
		}
	})
}

func TestLostWatchIsNoticed(t *testing.T) {
	b := newFake()
	bubble(t, b, func(t *testing.T, n *Notify, c *collector, root string) {
		c.forget()
		b.set(func() { // as after an unmount, or a rename fsnotify misread
			delete(b.watches, filepath.Join(root, "a"))
			b.watches[filepath.Join(root, "stale")] = true
		})
		wait(6 * time.Second)
		if c.rescans[root] != 1 {
			t.Errorf("%d rescans, want 1", c.rescans[root])
		}
		b.set(func() {
			if len(b.watches) != 3 || !b.watches[filepath.Join(root, "a")] {
				t.Errorf("watches %v", b.watches)
			}
		})
		wait(time.Minute)
		if c.rescans[root] != 1 {
			t.Errorf("rescans go on: %d", c.rescans[root])
		}
	})
}

func TestDeniedDirectoryIsTriedAgain(t *testing.T) {
	b := newFake()
	bubble(t, b, func(t *testing.T, n *Notify, c *collector, root string) {
		dir := mkdir(t, filepath.Join(root, "closed"))
		b.set(func() { b.only = map[string]error{dir: fs.ErrPermission} })
		f := write(t, filepath.Join(dir, "f"), "")
		b.events <- fsnotify.Event{Name: dir, Op: fsnotify.Create}
		wait(6 * time.Second)
		if s := statusOf(n, root); s.Mode != ModeEvents || c.files[f] != 0 {
			t.Errorf("status %+v, files %v", s, c.files)
		}
		b.set(func() { b.only = nil })
		wait(6 * time.Second)
		if c.files[f] == 0 {
			t.Errorf("a directory that became readable is not read")
		}
	})
}

func TestEventsForUnknownPathsAreIgnored(t *testing.T) {
	b := newFake()
	bubble(t, b, func(t *testing.T, n *Notify, c *collector, root string) {
		c.forget()
		for _, name := range []string{"", "/", "/elsewhere/f", root + "-not", filepath.Join(root, "x", "y")} {
			b.events <- fsnotify.Event{Name: name, Op: fsnotify.Write}
		}
		b.events <- fsnotify.Event{Name: filepath.Join(root, "f"), Op: fsnotify.Chmod}
		synctest.Wait()
		if len(c.files)+len(c.rescans) != 0 {
			t.Errorf("files %v rescans %v", c.files, c.rescans)
		}
		b.events <- fsnotify.Event{Name: filepath.Join(root, "f"), Op: fsnotify.Chmod | fsnotify.Write}
		synctest.Wait()
		if len(c.files) != 1 {
			t.Errorf("files %v", c.files)
		}
	})
}
