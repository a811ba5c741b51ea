package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"handoffd/engine/fault"
	"handoffd/engine/sqlite"
)

// count is how many rows a look at a database sees.
func count(t testing.TB, path string) (n int, err error) {
	t.Helper()
	err = sqlite.View(path, func(d *sqlite.DB) error {
		n = 0
		tab, ok := d.Table("t")
		if !ok {
			return nil
		}
		return tab.Rows([]string{"x"}, func(sqlite.Row) error { n++; return nil })
	})
	return n, err
}

func owned(t *testing.T, rows int) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.db")
	db = open(t, path, "_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	exec(t, db, `CREATE TABLE t (x TEXT)`)
	for i := range rows {
		exec(t, db, `INSERT INTO t VALUES (?)`, fmt.Sprint(i))
	}
	return path, db
}

// copied is the files of a database as a crash, or a copy, leaves them.
func copied(t *testing.T, path string, ends ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	for _, end := range append([]string{""}, ends...) {
		data, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+end, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// The states in which the database of another program is met.
func TestForeignStates(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T) (path string)
		want int
		kind fault.Kind // 0 for none
	}{
		{"everything is in the log (steipete/CodexBar 2544, rajbos/ai-engineering-fluency 1340)", func(t *testing.T) string {
			path, _ := owned(t, 20)
			return path
		}, 20, 0},
		{"the owner has closed it: no log, no shared memory (vshulcz/deja-vu 1642)", func(t *testing.T) string {
			path, db := owned(t, 20)
			_ = db.Close()
			return path
		}, 20, 0},
		{"a log that nobody holds", func(t *testing.T) string {
			path, _ := owned(t, 20)
			return copied(t, path, sqlite.WAL)
		}, 20, 0},
		{"the database without its log", func(t *testing.T) string {
			path, db := owned(t, 20)
			exec(t, db, `PRAGMA wal_checkpoint(FULL)`)
			exec(t, db, `INSERT INTO t VALUES ('lost')`)
			return copied(t, path)
		}, 20, 0},
		{"stale shared memory (Dicklesworthstone/coding_agent_session_search 477)", func(t *testing.T) string {
			path, _ := owned(t, 20)
			to := copied(t, path, sqlite.WAL)
			if err := os.WriteFile(to+"-shm", make([]byte, 32768), 0); err != nil {
				t.Fatal(err)
			}
			return to
		}, 20, 0},
		{"locked by its owner (farion1231/cc-switch 5225)", func(t *testing.T) string {
			path, db := owned(t, 20)
			exec(t, db, `PRAGMA locking_mode=EXCLUSIVE`)
			exec(t, db, `BEGIN EXCLUSIVE`)
			return path
		}, 20, 0},
		{"a log that ends in the middle of a transaction", func(t *testing.T) string {
			path, _ := owned(t, 20)
			to := copied(t, path, sqlite.WAL)
			if err := os.Truncate(to+sqlite.WAL, fileSize(t, to+sqlite.WAL)-100); err != nil {
				t.Fatal(err)
			}
			return to
		}, 19, 0},
		{"an empty log", func(t *testing.T) string {
			path, db := owned(t, 20)
			_ = db.Close()
			if err := os.WriteFile(path+sqlite.WAL, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, 20, 0},
		{"a log of something else", func(t *testing.T) string {
			path, db := owned(t, 20)
			_ = db.Close()
			if err := os.WriteFile(path+sqlite.WAL, make([]byte, 100_000), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, 20, 0},
		{"in a directory that cannot be written", func(t *testing.T) string {
			path, _ := owned(t, 20)
			dir := filepath.Dir(path)
			if err := os.Chmod(dir, 0o500); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			return path
		}, 20, 0},
		{"missing", func(t *testing.T) string { return filepath.Join(t.TempDir(), "x.db") }, 0, fault.SourceMissing},
		{"a directory", func(t *testing.T) string { return t.TempDir() }, 0, fault.SourceMissing},
		{"empty", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "x.db")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, 0, fault.Unsupported},
		{"cut", func(t *testing.T) string {
			path, db := owned(t, 5000)
			_ = db.Close()
			if err := os.Truncate(path, 8192); err != nil {
				t.Fatal(err)
			}
			return path
		}, 0, fault.Unsupported},
		{"encrypted", func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "x.db")
			if err := os.WriteFile(path, []byte(fmt.Sprintf("%08192d", 7)), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, 0, fault.Unsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.make(t)
			var before []string
			if info, err := os.Stat(filepath.Dir(path)); err == nil && info.IsDir() {
				before = names(t, filepath.Dir(path))
			}
			n, err := count(t, path)
			switch {
			case c.kind != 0 && !fault.Is(err, c.kind):
				t.Errorf("%d rows, %v; want %s", n, err, c.kind)
			case c.kind == 0 && (err != nil || n != c.want):
				t.Errorf("%d rows, %v; want %d", n, err, c.want)
			}
			if after := names(t, filepath.Dir(path)); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("reading left %v behind, there was %v", after, before)
			}
		})
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// Every look sees what was committed before it (rjwalters/claude-monitor#105).
func TestEveryLookIsNew(t *testing.T) {
	path, db := owned(t, 0)
	for i := range 30 {
		if i%7 == 3 {
			exec(t, db, `PRAGMA wal_checkpoint(RESTART)`)
		}
		exec(t, db, `INSERT INTO t VALUES ('x')`)
		if n, err := count(t, path); err != nil || n != i+1 {
			t.Fatalf("%d rows after %d commits, %v", n, i+1, err)
		}
	}
}
