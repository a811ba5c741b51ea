package watch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// needEvents skips where the kernel's events are not used.
func needEvents(t *testing.T) {
	t.Helper()
	if !usable {
		t.Skip("no directory events on ", runtime.GOOS)
	}
}

func TestNotifyNewDirectoriesLoseNothing(t *testing.T) {
	needEvents(t)
	root := tempRoot(t)
	c := newCollector()
	run(t, fast(), c, Root{Path: root})
	c.waitRescan(t, root, 1)
	const rounds = 500
	var want []string
	for i := range rounds {
		dir := filepath.Join(root, fmt.Sprint("p", i))
		must(t, os.Mkdir(dir, 0o700))
		want = append(want, write(t, filepath.Join(dir, "first.jsonl"), "{}\n"))
	}
	for i := range 50 {
		dir := mkdir(t, filepath.Join(root, fmt.Sprint("n", i), "a", "b", "c"))
		want = append(want, write(t, filepath.Join(dir, "deep.jsonl"), "{}\n"))
	}
	c.wait(t, "all files", func() bool {
		for len(want) > 0 && c.files[want[0]] > 0 {
			want = want[1:]
		}
		return len(want) == 0
	})
}

func TestNotifyFollowsRenames(t *testing.T) {
	needEvents(t)
	root := tempRoot(t)
	mkdir(t, filepath.Join(root, "a", "b", "c"))
	c := newCollector()
	run(t, fast(), c, Root{Path: root})
	c.waitRescan(t, root, 1)
	for i := range 20 {
		c.forget()
		must(t, os.Rename(filepath.Join(root, "a"), filepath.Join(root, "z")))
		// Under the new name, and then in a new directory under the old one.
		// The periodic check may be the first to notice, and asks for more.
		c.wait(t, "a rescan of a or of the root", func() bool {
			return c.rescans[filepath.Join(root, "a")]+c.rescans[root] > 0
		})
		c.waitFile(t, write(t, filepath.Join(root, "z", "b", "c", fmt.Sprint("f", i)), ""))
		dir := mkdir(t, filepath.Join(root, "a", "b", "c"))
		c.waitFile(t, write(t, filepath.Join(dir, fmt.Sprint("g", i)), ""))
		must(t, os.RemoveAll(filepath.Join(root, "z")))
	}
}

func TestNotifyRootComesAndGoes(t *testing.T) {
	needEvents(t)
	top := tempRoot(t)
	parent := filepath.Join(top, "parent")
	root := filepath.Join(parent, "root")
	c, n := newCollector(), fast()
	run(t, n, c, Root{Path: root})
	c.wait(t, "missing", func() bool { return statusOf(n, root).Mode == ModeMissing })
	tests := []struct {
		name string
		away func()
	}{
		{"removed", func() { must(t, os.RemoveAll(root)) }},
		{"renamed", func() { must(t, os.Rename(root, filepath.Join(top, "old"+fmt.Sprint(os.Getpid())))) }},
		{"ancestor renamed", func() { must(t, os.Rename(parent, filepath.Join(top, "oldparent"))) }},
		{"replaced", func() {
			must(t, os.Rename(root, filepath.Join(top, "older")))
			mkdir(t, root)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mkdir(t, filepath.Join(root, "d"))
			c.waitRescan(t, root, 1)
			c.wait(t, "events", func() bool { return statusOf(n, root).Dirs == 2 })
			c.waitFile(t, write(t, filepath.Join(root, "d", "f-"+tt.name[:3]), ""))
			c.forget()
			tt.away()
			c.waitRescan(t, root, 1)
			if tt.name != "replaced" {
				c.wait(t, "missing", func() bool { return statusOf(n, root).Mode == ModeMissing })
				c.forget()
			}
		})
	}
}

func TestNotifyRootRetargeted(t *testing.T) {
	needEvents(t)
	top := tempRoot(t)
	one, two, root := mkdir(t, filepath.Join(top, "one")), mkdir(t, filepath.Join(top, "two")), filepath.Join(top, "root")
	must(t, os.Symlink(one, root))
	c := newCollector()
	run(t, fast(), c, Root{Path: root})
	c.waitRescan(t, one, 1)
	c.waitFile(t, write(t, filepath.Join(one, "f"), ""))
	must(t, os.Remove(root))
	must(t, os.Symlink(two, root))
	c.waitRescan(t, two, 1)
	c.waitFile(t, write(t, filepath.Join(two, "f"), ""))
}

func TestNotifyLinks(t *testing.T) {
	needEvents(t)
	top := tempRoot(t)
	root, outside, other := mkdir(t, filepath.Join(top, "root")), mkdir(t, filepath.Join(top, "outside")), mkdir(t, filepath.Join(top, "other"))
	must(t, os.Symlink(root, filepath.Join(outside, "cycle")))
	must(t, os.Symlink("self", filepath.Join(root, "self")))
	c, n := newCollector(), fast()
	run(t, n, c, Root{Path: root})
	c.waitRescan(t, root, 1)
	found := write(t, filepath.Join(outside, "before"), "")
	link := filepath.Join(root, "link")
	must(t, os.Symlink(outside, link))
	c.waitFile(t, found)
	c.waitFile(t, write(t, filepath.Join(outside, "after"), ""))
	c.wait(t, "two directories", func() bool { return statusOf(n, root).Dirs == 2 })

	c.forget()
	must(t, os.Remove(link))
	must(t, os.Symlink(other, link))
	c.waitRescan(t, root, 1)
	c.wait(t, "an event in the new target", func() bool {
		// The link may be resolved again in two steps.
		c.mu.Unlock()
		f := write(t, filepath.Join(other, "x"), "y")
		c.mu.Lock()
		return c.files[f] > 0
	})

	c.forget()
	must(t, os.RemoveAll(other)) // seen only by its own watch
	mkdir(t, other)
	c.wait(t, "an event in the recreated target", func() bool {
		c.mu.Unlock()
		f := write(t, filepath.Join(other, "x"), "y")
		c.mu.Lock()
		return c.files[f] > 0
	})
}

func TestNotifyFilters(t *testing.T) {
	needEvents(t)
	root := tempRoot(t)
	store := filepath.Join(root, "store")
	c, n := newCollector(), fast()
	run(t, n, c, Root{Path: root, Depth: 2, Exclude: []string{store},
		Keep: func(rel string, isDir bool) bool { return rel != "skip" && rel != "skip.txt" }})
	c.waitRescan(t, root, 1)
	for _, dir := range []string{store, filepath.Join(root, "skip"), filepath.Join(root, "1", "2", "3")} {
		write(t, filepath.Join(mkdir(t, dir), "f"), "")
	}
	write(t, filepath.Join(root, "skip.txt"), "")
	write(t, filepath.Join(root, "mode"), "")
	c.waitFile(t, filepath.Join(root, "mode"))
	c.wait(t, "three directories", func() bool { return statusOf(n, root).Dirs == 3 })
	if s := statusOf(n, root); !s.Truncated || s.Err == "" {
		t.Errorf("status hides the depth limit: %+v", s)
	}
	c.forget()
	must(t, os.Chmod(filepath.Join(root, "mode"), 0o640)) // bare CHMOD
	last := write(t, filepath.Join(root, "1", "2", "last"), "")
	c.waitFile(t, last)
	c.mu.Lock()
	defer c.mu.Unlock()
	for path := range c.files {
		if path != last {
			t.Errorf("event for %s", path)
		}
	}
}

func TestNotifyHostileNames(t *testing.T) {
	needEvents(t)
	root := tempRoot(t)
	c := newCollector()
	run(t, fast(), c, Root{Path: root})
	c.waitRescan(t, root, 1)
	for _, name := range []string{"\x1b]0;title\a", "new\nline", "\xff\xfe", "-rf", "...", " ", `back\slash`, "%n", "\u202e"} {
		dir := mkdir(t, filepath.Join(root, "d"+name))
		c.waitFile(t, write(t, filepath.Join(dir, name), ""))
		c.waitFile(t, write(t, filepath.Join(root, name), ""))
	}
}

func TestNotifyOverlappingRoots(t *testing.T) {
	needEvents(t)
	outer := tempRoot(t)
	inner := mkdir(t, filepath.Join(outer, "in"))
	mkdir(t, filepath.Join(inner, "a", "b"))
	both := newCollector()
	run(t, fast(), both, Root{Path: outer}, Root{Path: inner})
	both.waitRescan(t, outer, 1)
	both.waitRescan(t, inner, 1)
	f := write(t, filepath.Join(inner, "a", "b", "f"), "")
	both.wait(t, "both roots", func() bool { return both.files[f] >= 2 })
	must(t, os.Rename(filepath.Join(inner, "a"), filepath.Join(inner, "z")))
	both.waitRescan(t, filepath.Join(inner, "a"), 2)
	g := write(t, filepath.Join(inner, "z", "b", "g"), "")
	both.wait(t, "both roots after a rename", func() bool { return both.files[g] >= 2 })
}

// TestNotifyOverflow stalls the reader until the kernel's queue of 16,384
// events is full (promise P12).
func TestNotifyOverflow(t *testing.T) {
	needEvents(t)
	if testing.Short() {
		t.Skip("20,000 files")
	}
	root := tempRoot(t)
	c := newCollector()
	gate := make(chan struct{})
	n := fast()
	ready := make(chan struct{}, 1)
	src := sourceFunc{n, func(e Event) {
		c.emit(e)
		if !e.Rescan {
			select {
			case ready <- struct{}{}:
			default:
			}
			<-gate
		}
	}}
	run(t, src, c, Root{Path: root})
	c.waitRescan(t, root, 1)
	write(t, filepath.Join(root, "first"), "")
	<-ready // the reader stands still from here
	const files = 25_000
	for i := range files {
		f, err := os.Create(filepath.Join(root, fmt.Sprint(i)))
		must(t, err)
		must(t, f.Close())
	}
	late := mkdir(t, filepath.Join(root, "dir", "made", "late")) // its event is lost
	close(gate)
	c.waitRescan(t, root, 2)
	sum, err := Walk(t.Context(), Root{Path: root}, func(string, fs.FileInfo) {})
	must(t, err)
	if sum.Files != files+1 {
		t.Errorf("the rescan finds %d files, want %d", sum.Files, files+1)
	}
	c.waitFile(t, write(t, filepath.Join(late, "f"), ""))
}

// sourceFunc is a source with another emit.
type sourceFunc struct {
	*Notify
	emit func(Event)
}

func (s sourceFunc) Run(ctx context.Context, roots []Root, _ func(Event)) error {
	return s.Notify.Run(ctx, roots, s.emit)
}
