package opencode

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
)

// stocked is the database to measure with: the one that OPENCODE_DB names,
// which is written to, or a small one.
func stocked(b *testing.B) (path string, db *sql.DB) {
	if path = os.Getenv("OPENCODE_DB"); path != "" {
		return path, harnesstest.Owner(b, path, "WAL")
	}
	path = filepath.Join(b.TempDir(), "opencode.db")
	db = harnesstest.Owner(b, path, "WAL")
	script, err := os.ReadFile(filepath.Join("testdata", "opencode.sql"))
	if err != nil {
		b.Fatal(err)
	}
	harnesstest.Do(b, db, string(script))
	harnesstest.Do(b, db, "BEGIN")
	for n := range 50 {
		harnesstest.Do(b, db, `INSERT INTO session SELECT ?, 'global', NULL, '', '/p', 't', '1', NULL, 1781674674000, 1781674674000`, fmt.Sprint("ses_", n))
		for m := range 20 {
			harnesstest.Do(b, db, `INSERT INTO message VALUES (?, ?, 1781674674000, 1781674674000, '{"role":"user"}')`, fmt.Sprint("msg_", n, "_", m), fmt.Sprint("ses_", n))
			harnesstest.Do(b, db, `INSERT INTO part VALUES (?, ?, ?, 1781674674000, 1781674674000, json_object('type', 'text', 'text', hex(zeroblob(1500))))`,
				fmt.Sprint("prt_", n, "_", m), fmt.Sprint("msg_", n, "_", m), fmt.Sprint("ses_", n))
		}
	}
	harnesstest.Do(b, db, "COMMIT")
	return path, db
}

func listed(b *testing.B, path string, before *harness.Listing) *harness.Listing {
	l, err := Database{}.List(path, before)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkList is a look at a database of which nothing is known, one in which
// nothing changed, and one in which a part did.
func BenchmarkList(b *testing.B) {
	path, db := stocked(b)
	harnesstest.Do(b, db, `UPDATE part SET time_updated = time_updated + 1 WHERE rowid = 1`)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			listed(b, path, nil)
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		known := listed(b, path, nil)
		for b.Loop() {
			listed(b, path, known)
		}
	})
	b.Run("glance", func(b *testing.B) {
		for b.Loop() {
			Database{}.Glance(path)
		}
	})
	b.Run("one part", func(b *testing.B) {
		known := listed(b, path, nil)
		for b.Loop() {
			b.StopTimer()
			harnesstest.Do(b, db, `UPDATE part SET time_updated = time_updated + 1 WHERE rowid = 7`)
			b.StartTimer()
			known = listed(b, path, known)
		}
	})
}

// BenchmarkExport is one session of it.
func BenchmarkExport(b *testing.B) {
	path, _ := stocked(b)
	var id string
	for one := range listed(b, path, nil).Members {
		id = max(id, one)
	}
	var s harnesstest.Spool
	for b.Loop() {
		if err := (Database{}).Export(path, id, &s); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(s.Len()))
}
