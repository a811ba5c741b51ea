package capture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"handoffd/configs"
	"handoffd/engine/harness/all"
)

func TestRereadTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rereads{wake: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var looks []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.run(ctx, func(p string) { looks = append(looks, fmt.Sprint(p, time.Since(began))) })
		}()
		r.add("a", time.Now())
		<-time.After(200 * time.Millisecond) // fake time
		r.add("a", time.Now())               // takes the place of the looks still to come
		<-time.After(time.Hour)
		cancel()
		<-done
		if got := strings.Join(looks, " "); got != "a100ms a300ms a700ms a2.2s" {
			t.Errorf("looked at %s", got)
		}
	})
}

func TestTable(t *testing.T) {
	table := newTable()
	one, two := stamp{size: 1}, stamp{size: 2}
	if !table.news("/r/a", one, true) || table.news("/r/a", one, true) || !table.news("/r/b", one, true) {
		t.Error("news")
	}
	if initial, done, todo := table.progress(); !initial || done != 0 || todo != 2 {
		t.Error("progress", initial, done, todo)
	}
	table.settle("/r/a", one, nil)
	if !table.captured("/r/a", one) || table.captured("/r/a", two) || table.captured("/r/b", one) {
		t.Error("captured")
	}
	table.tried("/r/b")
	if initial, done, todo := table.progress(); initial || done != 2 || todo != 2 {
		t.Error("progress", initial, done, todo)
	}
	// A version that came during the build is news again.
	table.news("/r/a", two, false)
	table.settle("/r/a", one, nil)
	if !table.news("/r/a", two, false) {
		t.Error("a version that came during a build is lost")
	}
	// What is not done is found again by another schedule.
	table.settle("/r/c", one, nil)
	table.forgetPending()
	if !table.news("/r/a", two, true) || table.news("/r/c", one, true) {
		t.Error("forgetPending")
	}
	// A walk that did not see a file drops it, unless a build saw it meanwhile.
	table.news("/other/x", one, false)
	table.settle("/r/lost", one, nil)
	table.begin()
	table.news("/r/c", one, false)
	table.settle("/r/new", one, nil)
	table.lose("/r")
	for path, want := range map[string]bool{"/r/c": false, "/r/new": false, "/r/lost": true, "/other/x": false} {
		if got := table.news(path, one, false); got != want {
			t.Errorf("%s is news: %t", path, got)
		}
	}
}

func TestConfiguredSources(t *testing.T) {
	for _, c := range []struct {
		source configs.Source
		keeps  []string // path below the configured root
		not    []string
	}{
		{
			configs.Source{Harness: "claude-code", Root: "/x/projects"},
			[]string{"-p/11111111-2222-4333-8444-555555555555.jsonl"}, []string{"-p/notes.jsonl", "sessions/a.jsonl"},
		},
		{
			configs.Source{Harness: "codex", Root: "/x/codex"},
			[]string{
				"sessions/2026/01/02/rollout-2026-01-02T03-04-05-11111111-2222-4333-8444-555555555555.jsonl",
				"archived_sessions/rollout-2026-01-02T03-04-05-11111111-2222-4333-8444-555555555555.jsonl",
			}, []string{"history.jsonl"},
		},
		{
			configs.Source{Harness: "claude-code", Root: "/x", Exclude: configs.Patterns{"scratch/"}},
			[]string{"-p/11111111-2222-4333-8444-555555555555.jsonl"}, []string{"scratch/11111111-2222-4333-8444-555555555555.jsonl"},
		},
		{
			configs.Source{Harness: "claude-code", Root: "/x", Include: configs.Patterns{"2*"}},
			[]string{"-p/21111111-2222-4333-8444-555555555555.jsonl"}, []string{"-p/11111111-2222-4333-8444-555555555555.jsonl"},
		},
		{
			configs.Source{Harness: "mine", Root: "/x"},
			[]string{"a/b/c.jsonl", "notes.md"}, []string{"image.png", ".git/x.jsonl"},
		},
	} {
		sources := Configured(all.Formats(), c.source)
		for _, rel := range c.keeps {
			if !kept(sources, c.source.Root, rel) {
				t.Errorf("%+v leaves out %s", c.source, rel)
			}
		}
		for _, rel := range c.not {
			if kept(sources, c.source.Root, rel) {
				t.Errorf("%+v keeps %s", c.source, rel)
			}
		}
		for _, s := range sources {
			if s.Label != c.source.Harness {
				t.Errorf("label %q", s.Label)
			}
		}
	}
}

// kept reports whether a walk would get to a file and report it.
func kept(sources []Source, root, rel string) bool {
	for _, s := range sources {
		below, err := filepath.Rel(s.Root.Path, filepath.Join(root, rel))
		if err != nil || strings.HasPrefix(below, "..") {
			continue
		}
		ok, parts := true, strings.Split(filepath.ToSlash(below), "/")
		for i := 1; i < len(parts); i++ {
			ok = ok && s.Root.Keep(strings.Join(parts[:i], "/"), true)
		}
		if ok && s.Root.Keep(below, false) {
			return true
		}
	}
	return false
}

// BenchmarkSweep is a sweep with nothing new over 10,000 files in 500
// directories (target T7).
func BenchmarkSweep(b *testing.B) {
	bench := newBench(b, nil)
	for d := range 500 {
		dir := filepath.Join(bench.dir, "home", ".claude", "projects", fmt.Sprintf("-d%03d", d))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for f := range 20 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%08d-2222-4333-8444-555555555555.jsonl", f)), []byte("{}\n"), 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	bench.capturer = New(bench.conf, nil)
	bench.capturer.sweeper.sweep(b.Context(), request{})
	for b.Loop() {
		bench.capturer.sweeper.sweep(b.Context(), request{})
	}
	if n := bench.capturer.sweeper.report().Files; n != 10000 {
		b.Fatalf("saw %d files", n)
	}
}
