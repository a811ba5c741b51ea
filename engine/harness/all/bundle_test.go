package all_test

import (
	"path/filepath"
	"testing"

	"handoffd/engine/fault"
	"handoffd/engine/harness/all"
	"handoffd/engine/harness/harnesstest"
)

// A database is known by its tables, whatever it is called, also when it is
// called like that of another harness.
func TestBundle(t *testing.T) {
	for script, key := range map[string]string{
		"opencode/testdata/opencode.sql": "opencode-db", "goose/testdata/goose.sql": "goose-db", "crush/testdata/crush.sql": "crush-db",
		"cursoride/testdata/cursor.sql": "cursor-ide", "kiro/testdata/kiro.sql": "kiro-db",
	} {
		for _, name := range []string{"copy.db", "opencode.db", "sessions.db", "crush.db", "state.vscdb", "data.sqlite3", "no extension"} {
			path := harnesstest.Scripted(t, filepath.Join("..", "..", filepath.FromSlash(script)), name)
			b, found, err := all.Bundle(path, true)
			if err != nil || !found || b.Traits().Key != key {
				t.Errorf("%s called %s: %v %v %v", script, name, b, found, err)
			}
		}
	}
}

// Other files are nobody's bundle; a database of nobody is refused.
func TestNoBundle(t *testing.T) {
	for _, path := range []string{"/x/a.jsonl", "/x/ses_1.json", "/x/session/p/ses_1.json", "/x/opencode.db", ""} {
		if b, found, err := all.Bundle(path, false); found || err != nil {
			t.Errorf("%q: %v %v", path, b, err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.db")
	harnesstest.Do(t, harnesstest.Owner(t, path, "DELETE"), `CREATE TABLE sessions (id TEXT); CREATE TABLE messages (session_id TEXT)`)
	if _, found, err := all.Bundle(path, true); !found || !fault.Is(err, fault.Unsupported) {
		t.Errorf("a foreign database: %v %v", found, err)
	}
	for path, want := range map[string]string{
		"/x/opencode.db-wal": "/x/opencode.db", "/x/opencode.db": "/x/opencode.db", "/x/opencode.db-shm": "",
		"/x/crush.db-wal": "/x/crush.db", "/x/a.jsonl": "", "/x/state.vscdb-journal": "", "/x/other.db-wal": "",
	} {
		if got, ok := all.Owner(path); ok != (want != "") || ok && got != want {
			t.Errorf("%s is a part of %q, want %q", path, got, want)
		}
	}
}
