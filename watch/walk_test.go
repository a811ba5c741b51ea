package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func walked(t *testing.T, root Root) ([]string, Summary) {
	t.Helper()
	var files []string
	sum, err := Walk(t.Context(), root, func(path string, info fs.FileInfo) {
		if !info.Mode().IsRegular() {
			t.Errorf("%s is visited with mode %v", path, info.Mode())
		}
		files = append(files, path)
	})
	must(t, err)
	slices.Sort(files)
	if len(files) != sum.Files {
		t.Errorf("%d files visited, summary says %d", len(files), sum.Files)
	}
	return files, sum
}

func TestWalkVisitsEachFileOnceUnderItsOwnName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege")
	}
	top := tempRoot(t)
	root, outside := mkdir(t, filepath.Join(top, "root")), mkdir(t, filepath.Join(top, "outside"))
	real := mkdir(t, filepath.Join(root, "z"))
	want := []string{write(t, filepath.Join(outside, "o"), ""), write(t, filepath.Join(root, "f"), ""), write(t, filepath.Join(real, "g"), "")}
	must(t, os.Symlink(real, filepath.Join(root, "a")))     // inside, sorts before its target
	must(t, os.Symlink(root, filepath.Join(real, "cycle"))) // up
	must(t, os.Symlink(outside, filepath.Join(root, "out")))
	must(t, os.Symlink(root, filepath.Join(outside, "back")))
	must(t, os.Symlink(want[0], filepath.Join(root, "link-to-file")))
	must(t, os.Symlink("loop", filepath.Join(root, "loop")))
	must(t, os.Symlink("nowhere", filepath.Join(root, "dangling")))
	alias := filepath.Join(top, "alias")
	must(t, os.Symlink(root, alias))
	makeFIFO(t, filepath.Join(root, "fifo"))

	for _, path := range []string{root, alias, root + "/"} {
		files, sum := walked(t, Root{Path: path})
		if !slices.Equal(files, want) {
			t.Errorf("Walk(%s) = %q, want %q", path, files, want)
		}
		if sum.Real != root || sum.Dirs != 3 || sum.Truncated || sum.Unreadable != 0 {
			t.Errorf("Walk(%s): %+v", path, sum)
		}
	}
}

func TestWalkKeepsAndExcludes(t *testing.T) {
	root := tempRoot(t)
	keep := write(t, filepath.Join(mkdir(t, filepath.Join(root, "a", "b")), "x.jsonl"), "")
	write(t, filepath.Join(root, "a", "b", "x.txt"), "")
	write(t, filepath.Join(mkdir(t, filepath.Join(root, "skip")), "y.jsonl"), "")
	store := mkdir(t, filepath.Join(root, "store"))
	write(t, filepath.Join(store, "z.jsonl"), "")
	write(t, filepath.Join(mkdir(t, filepath.Join(root, "store2")), "w.jsonl"), "")
	var rels []string
	files, _ := walked(t, Root{Path: root, Exclude: []string{store}, Keep: func(rel string, isDir bool) bool {
		rels = append(rels, rel)
		if isDir {
			return rel != "skip"
		}
		return strings.HasSuffix(rel, ".jsonl")
	}})
	want := []string{keep, filepath.Join(root, "store2", "w.jsonl")}
	if !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
	slices.Sort(rels)
	wantRels := []string{"a", "a/b", "a/b/x.jsonl", "a/b/x.txt", "skip", "store", "store2", "store2/w.jsonl"}
	if !slices.Equal(rels, wantRels) {
		t.Errorf("Keep saw %q, want %q", rels, wantRels)
	}
	if _, err := Walk(t.Context(), Root{Path: store, Exclude: []string{root}}, nil); !errors.Is(err, errExcluded) {
		t.Errorf("walk of an excluded root: %v, want %v", err, errExcluded)
	}
}

func TestWalkExcludesThroughALink(t *testing.T) {
	top := tempRoot(t)
	root := mkdir(t, filepath.Join(top, "root"))
	write(t, filepath.Join(mkdir(t, filepath.Join(root, "store")), "f"), "")
	alias := filepath.Join(top, "alias")
	must(t, os.Symlink(root, alias))
	files, _ := walked(t, Root{Path: root, Exclude: []string{filepath.Join(alias, "store")}})
	if len(files) != 0 {
		t.Errorf("visited %q below an excluded directory", files)
	}
}

func TestWalkLimits(t *testing.T) {
	root := tempRoot(t)
	deep := root
	for i := range 6 {
		deep = mkdir(t, filepath.Join(deep, "d"))
		write(t, filepath.Join(deep, fmt.Sprint("f", i)), "")
	}
	tests := []struct {
		name           string
		depth, entries int
		files          int
		truncated      bool
	}{
		{"none", 0, 0, 6, false},
		{"deep enough", 6, 0, 6, false},
		{"too deep", 3, 0, 3, true},
		{"few entries", 0, 4, -1, true},
		{"exact entries", 0, 12, 6, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files, sum := walked(t, Root{Path: root, Depth: tt.depth, Entries: tt.entries})
			if tt.files >= 0 && len(files) != tt.files || sum.Truncated != tt.truncated {
				t.Errorf("%d files, %+v", len(files), sum)
			}
			if tt.entries > 0 && sum.Entries > tt.entries {
				t.Errorf("looked at %d entries, limit %d", sum.Entries, tt.entries)
			}
		})
	}
}

func TestWalkGoesOnPastWhatCannotBeRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	root := tempRoot(t)
	closed := mkdir(t, filepath.Join(root, "closed"))
	want := write(t, filepath.Join(mkdir(t, filepath.Join(root, "open")), "f"), "")
	must(t, os.Chmod(closed, 0))
	t.Cleanup(func() { os.Chmod(closed, 0o700) })
	files, sum := walked(t, Root{Path: root})
	if !slices.Equal(files, []string{want}) || sum.Unreadable != 1 {
		t.Errorf("files %q, %+v", files, sum)
	}
}

func TestWalkErrors(t *testing.T) {
	root := tempRoot(t)
	file := write(t, filepath.Join(root, "f"), "")
	if _, err := Walk(t.Context(), Root{Path: filepath.Join(root, "none")}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing root: %v", err)
	}
	if _, err := Walk(t.Context(), Root{Path: file}, nil); !errors.Is(err, errNotDir) {
		t.Errorf("file as root: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Walk(ctx, Root{Path: root}, func(string, fs.FileInfo) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

func TestWithin(t *testing.T) {
	tests := []struct {
		path, dir string
		want      bool
	}{
		{"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/a", "/", true},
	}
	for _, tt := range tests {
		if got := within(filepath.FromSlash(tt.path), filepath.FromSlash(tt.dir)); got != tt.want {
			t.Errorf("within(%s, %s) = %v", tt.path, tt.dir, got)
		}
	}
}

// BenchmarkWalk is the sweep of promise P17: 10,000 files in 500 directories.
func BenchmarkWalk(b *testing.B) {
	root := b.TempDir()
	for d := range 500 {
		dir := filepath.Join(root, fmt.Sprint("project-", d))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for f := range 20 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("session-", f, ".jsonl")), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	keep := func(rel string, isDir bool) bool { return isDir || strings.HasSuffix(rel, ".jsonl") }
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if _, err := Walk(b.Context(), Root{Path: root, Keep: keep}, func(string, fs.FileInfo) { n++ }); err != nil || n != 10_000 {
			b.Fatal(n, err)
		}
	}
}
