package index_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
)

func newStore(t testing.TB) (store.Store, string) {
	t.Helper()
	root := t.TempDir()
	return store.Store{Root: filepath.Join(root, "store")}, root
}

func build(t testing.TB, b *pipeline.Builder, root, id, text string) {
	t.Helper()
	path := filepath.Join(root, id+".jsonl")
	if err := os.WriteFile(path, []byte(`{"role":"user","text":"`+text+`"}`+"\n"), 0o600); err != nil {
		t.Error(err)
		return
	}
	if _, err := b.Build(context.Background(), pipeline.Request{Source: path, Project: "p"}); err != nil {
		t.Error(err)
	}
}

// TestFoldWhileBuilding folds as fast as it can beside many first builds:
// every session must be listed in the end.
func TestFoldWhileBuilding(t *testing.T) {
	s, root := newStore(t)
	b := pipeline.New(s, pipeline.Options{LazyIndex: true})
	stop := make(chan struct{})
	var folder, builders sync.WaitGroup
	folder.Add(1)
	go func() {
		defer folder.Done()
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := b.FoldIndex(context.Background(), false); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	for w := range 4 {
		builders.Add(1)
		go func() {
			defer builders.Done()
			for i := range 15 {
				build(t, b, root, fmt.Sprintf("s%d-%d", w, i), "hello")
			}
		}()
	}
	builders.Wait()
	close(stop)
	folder.Wait()
	if _, err := b.FoldIndex(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	fresh, err := index.Open(s).Entries()
	if err != nil || len(fresh) != 60 {
		t.Fatalf("%d of 60 listed: %v", len(fresh), err)
	}
}

// TestForgottenSession builds again a session that the index has lost.
func TestForgottenSession(t *testing.T) {
	s, root := newStore(t)
	b := pipeline.New(s, pipeline.Options{})
	build(t, b, root, "one", "hello")
	if err := os.WriteFile(filepath.Join(s.Root, store.IndexName), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	b = pipeline.New(s, pipeline.Options{})
	build(t, b, root, "one", "hello")
	if list, err := index.Open(s).Entries(); err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
}

func TestFind(t *testing.T) {
	list := []index.Entry{
		{ID: "s1", UUID: "s1", Project: "a"}, {ID: "s10", UUID: "s10", Project: "a"},
		{ID: "main", UUID: "main", Project: "a"}, {ID: "main", UUID: "main", Project: "b"},
		{ID: "titled", UUID: "4f1c0a52", Project: "b"}, {ID: "left", UUID: "left", Project: "c"},
		{ID: "left+merge+right", UUID: "left+merge+right", Project: "c"},
	}
	for id, want := range map[string]string{
		"s1": "a/s1", "s10": "a/s10", "s": "ambiguous", "main": "ambiguous", "b/main": "b/main", "a/ma": "a/main",
		"4f1c": "b/titled", "titled": "b/titled", "left": "c/left", "left+": "c/left+merge+right", "nope": "not-found", "": "usage",
	} {
		e, err := index.Find(list, id)
		got := e.Project + "/" + e.ID
		if err != nil {
			got = fault.KindOf(err).String()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", id, got, want)
		}
	}
	if _, err := index.Find(list, "main"); !strings.Contains(err.Error(), "a/main") || !strings.Contains(err.Error(), "b/main") {
		t.Errorf("does not say which: %v", err)
	}
}

// TestDamagedIndex removes, empties and garbles what the index keeps.
func TestDamagedIndex(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"empty":   func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"garbage": func(p string) error { return os.WriteFile(p, []byte(`[{"id":"../..","project":"p"}]`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			s, root := newStore(t)
			b := pipeline.New(s, pipeline.Options{})
			build(t, b, root, "one", "hello")
			build(t, b, root, "two", "hello")
			if err := harm(filepath.Join(s.Root, store.IndexName)); err != nil {
				t.Fatal(err)
			}
			list, err := index.Open(s).Entries()
			if err != nil || len(list) != 2 {
				t.Fatalf("%v %v", list, err)
			}
		})
	}
}

// BenchmarkEntries lists a store of 10,000 sessions in a process that has not
// read it yet.
func BenchmarkEntries(b *testing.B) {
	s, _ := newStore(b)
	var list strings.Builder
	list.WriteString("[")
	for i := range 10000 {
		if i > 0 {
			list.WriteString(",")
		}
		fmt.Fprintf(&list, `{"id":"s%d","uuid":"s%d","project":"p%d","harness":"claude-code","turns":%d,"revisions":3,"updated":"2026-09-01T10:00:00.000Z","manifest_sha256":"%064d"}`, i, i, i%50, i, i)
	}
	list.WriteString("]")
	if err := os.MkdirAll(s.Root, 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Root, store.IndexName), []byte(list.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, err := index.Open(s).Entries(); err != nil || len(got) != 10000 {
			b.Fatal(len(got), err)
		}
	}
}
