package harnesstest

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the owner of every database in tests

	"handoffd/engine/harness"
)

// Owner opens a database as the program that owns it does: with SQLite itself,
// in the journal mode that is asked for ("WAL", "DELETE").
func Owner(t testing.TB, path, mode string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode("+mode+")&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Do runs a statement, or several.
func Do(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%.200s: %v", statement, err)
	}
}

// Scripted makes a database called name from a script in testdata, and returns
// its path. Its owner is gone.
func Scripted(t testing.TB, script, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", script))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	db := Owner(t, path, "WAL")
	Do(t, db, string(text))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// ScriptedSamples reads the sessions of such a database. Golden keeps what they
// give beside the script.
func ScriptedSamples(t testing.TB, b harness.Bundle, script, name string) []Sample {
	t.Helper()
	list := Exports(t, b, Scripted(t, script, name))
	for i := range list {
		list[i].Path = filepath.Join("testdata", harness.Join(script, list[i].Name))
	}
	return list
}

// NeverReads checks that listing and exporting do not touch a page of the
// tables with the given names: they are overwritten, which whoever read one
// would fail at.
func NeverReads(t *testing.T, b harness.Bundle, script, name string, tables ...string) {
	t.Helper()
	path := Scripted(t, script, name)
	want := Exports(t, b, path)
	db := Owner(t, path, "DELETE")
	var size int64
	if err := db.QueryRow(`PRAGMA page_size`).Scan(&size); err != nil {
		t.Fatal(err)
	}
	roots := map[string]int64{}
	rows, err := db.Query(`SELECT tbl_name || '/' || name, rootpage FROM sqlite_schema WHERE rootpage > 0`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var of string
		var root int64
		if err := rows.Scan(&of, &root); err != nil {
			t.Fatal(err)
		}
		roots[of] = root
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, table := range tables {
		found := false
		for of, root := range roots {
			if strings.HasPrefix(of, table+"/") {
				found = true
				if _, err := f.WriteAt(bytes.Repeat([]byte{0xee}, int(size)), (root-1)*size); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !found {
			t.Errorf("the script has no table %s", table)
		}
	}
	got := Exports(t, b, path)
	if len(got) != len(want) {
		t.Fatalf("%d sessions, want %d", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i].Data, want[i].Data) {
			t.Errorf("session %s is exported otherwise", want[i].Name)
		}
	}
}
