package watch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestPollReportsWhatDiffers(t *testing.T) {
	top := tempRoot(t)
	synctest.Test(t, func(t *testing.T) {
		root := filepath.Join(top, "root")
		c := newCollector()
		ctx, cancel := context.WithCancel(t.Context())
		p := &Poll{Interval: time.Second}
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, []Root{{Path: root}}, c.emit) }()
		// In a bubble a pass takes no time, so passes come each second.
		next := func() {
			<-time.After(time.Second)
			synctest.Wait()
		}
		check := func(what string, files, rescans map[string]int) {
			t.Helper()
			if !sameMap(c.files, files) || !sameMap(c.rescans, rescans) {
				t.Fatalf("%s: files %v rescans %v; want %v %v", what, c.files, c.rescans, files, rescans)
			}
			c.forget()
		}
		synctest.Wait()
		check("missing", nil, nil)
		if s := statusOf(p, root); s.Mode != ModeMissing || s.Err != "" {
			t.Fatalf("status of a missing root: %+v", s)
		}
		a := write(t, filepath.Join(mkdir(t, root), "a"), "1")
		next()
		check("appeared", nil, map[string]int{root: 1})
		next()
		check("nothing", nil, nil)
		b := write(t, filepath.Join(mkdir(t, filepath.Join(root, "d")), "b"), "")
		write(t, a, "12")
		next()
		check("changed and new", map[string]int{a: 1, b: 1}, nil)
		must(t, os.RemoveAll(filepath.Join(root, "d")))
		next()
		check("gone", map[string]int{b: 1}, nil)
		if s := statusOf(p, root); s.Mode != ModePolling || s.Dirs != 1 || s.Err != "" {
			t.Fatalf("status: %+v", s)
		}
		must(t, os.RemoveAll(root))
		next()
		check("root gone", nil, map[string]int{root: 1})
		write(t, filepath.Join(mkdir(t, root), "a"), "123")
		next()
		check("root back", nil, map[string]int{root: 1})
		cancel()
		<-done
	})
}

func sameMap(a, b map[string]int) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

func TestRestBoundsTheCost(t *testing.T) {
	if got := rest(0, 0); got != DefaultPoll {
		t.Errorf("rest = %v, want %v", got, DefaultPoll)
	}
	if got := rest(time.Second, 100*time.Millisecond); got != 5*time.Second {
		t.Errorf("rest after a slow pass = %v, want 5s", got)
	}
}

func TestNoneReportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := new(None)
		if n.Status() != nil {
			t.Error("status before Run")
		}
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx, []Root{{Path: "/x"}}, func(e Event) { t.Errorf("event %v", e) }) }()
		synctest.Wait()
		if s := statusOf(n, "/x"); s.Mode != ModeNone {
			t.Errorf("status %+v", s)
		}
		cancel()
		if err := <-done; err != context.Canceled {
			t.Error(err)
		}
	})
}
