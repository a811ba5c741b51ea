package pipeline_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoffd/engine/pipeline"
	"handoffd/engine/store"
)

// TestProjectOfLargeDocument builds a document that is longer than the look at
// its head: what it says of its directory counts all the same.
func TestProjectOfLargeDocument(t *testing.T) {
	dir := t.TempDir()
	item := func(text string) string {
		return `{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}`
	}
	doc := `{"session":{"timestamp":"2025-06-26T10:00:00.000Z","id":"0197ab3c-0000-7000-8000-000000000001","instructions":""},"items":[` +
		item(strings.Repeat("x", 100<<10)) + "," + item(`<environment_context><cwd>/srv/shop</cwd></environment_context>`) + `]}`
	path := filepath.Join(dir, "rollout-2025-06-26-0197ab3c-0000-7000-8000-000000000001.json")
	if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	b := pipeline.New(store.Store{Root: filepath.Join(dir, "store")}, pipeline.Options{})
	r, err := b.Build(context.Background(), pipeline.Request{Source: path})
	if err != nil || r.Project != "shop" {
		t.Errorf("%+v %v", r, err)
	}
}
