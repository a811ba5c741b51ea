package pipeline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"handoffd/engine/pipeline"
	"handoffd/engine/store"
)

// TestLongListIsFolded builds more sessions than a small index holds, without
// a daemon: the list of changes, which every lookup reads, stays short.
func TestLongListIsFolded(t *testing.T) {
	dir := t.TempDir()
	s := store.Store{Root: filepath.Join(dir, "store")}
	b := pipeline.New(s, pipeline.Options{})
	source := filepath.Join(dir, "x.jsonl")
	// An index that is large already: what builds find after years.
	if _, err := b.FoldIndex(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	worst := int64(0)
	for i := range 1500 {
		text := fmt.Sprintf(`{"role":"user","text":"number %d","thread":"--a-project-with-a-name-of-some-length--"}`+"\n", i)
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("session-with-a-name-of-some-length-%04d", i)
		if _, err := b.Build(context.Background(), pipeline.Request{Source: source, Session: id}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(s.Root, store.DirtyName)); err == nil {
			worst = max(worst, info.Size())
		}
	}
	if worst > 40<<10 {
		t.Errorf("the list of changes grew to %d bytes", worst)
	}
	if list, err := b.Index.Entries(); err != nil || len(list) != 1500 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
}
