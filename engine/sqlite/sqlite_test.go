package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"
	"pgregory.net/rapid"

	"handoffd/engine/fault"
	"handoffd/engine/sqlite"
)

// open opens a database with SQLite itself, as its owner.
func open(t testing.TB, path, pragmas string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?"+pragmas)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// dump reads columns of a table with our reader.
func dump(t testing.TB, path, table string, read func(*sqlite.Table, func(sqlite.Row) error) error) []string {
	t.Helper()
	var list []string
	before := names(t, filepath.Dir(path))
	defer func() {
		if after := names(t, filepath.Dir(path)); strings.Join(before, " ") != strings.Join(after, " ") {
			t.Errorf("reading left files behind: %v, before %v", after, before)
		}
	}()
	err := sqlite.View(path, func(d *sqlite.DB) error {
		list = nil
		tab, ok := d.Table(table)
		if !ok {
			return errors.New("no table")
		}
		return read(tab, func(r sqlite.Row) error {
			list = append(list, line(r))
			return nil
		})
	})
	if err != nil {
		t.Fatalf("read %s: %v", table, err)
	}
	return list
}

func line(r sqlite.Row) string {
	var b strings.Builder
	for _, v := range r {
		fmt.Fprintf(&b, "%d:%q ", v.Kind, v.String())
	}
	return b.String()
}

// want is what SQLite answers, in the form of dump.
func want(t testing.TB, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	var list []string
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, v := range values {
			switch v := v.(type) {
			case nil:
				b.WriteString(`0:"" `)
			case int64:
				fmt.Fprintf(&b, "1:\"%d\" ", v)
			case float64:
				fmt.Fprintf(&b, "2:\"%v\" ", v)
			case string:
				fmt.Fprintf(&b, "3:%q ", v)
			case []byte:
				fmt.Fprintf(&b, "4:%q ", v)
			default:
				t.Fatalf("a %T", v)
			}
		}
		list = append(list, b.String())
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func same(t testing.TB, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%d rows, want %d; missing %.200s", len(got), len(want), want[i])
		case i >= len(want):
			t.Fatalf("%d rows, want %d; extra %.200s", len(got), len(want), got[i])
		case got[i] != want[i]:
			t.Fatalf("row %d\n got %.300s\nwant %.300s", i, got[i], want[i])
		}
	}
}

const schema = `
CREATE TABLE "rows" (
	id text PRIMARY KEY, -- a comment, with a comma
	owner text NOT NULL DEFAULT 'nobody, (yet)',
	n INTEGER, f REAL, b BLOB,
	CONSTRAINT c CHECK (n IS NULL OR n < 1e18));
CREATE INDEX by_owner ON rows(owner);
CREATE INDEX partial ON rows(n) WHERE n > 3;
CREATE TABLE numbered (k INTEGER PRIMARY KEY, "the text" TEXT, half AS (k/2), UNIQUE("the text"));
CREATE VIEW secret AS SELECT * FROM rows;
CREATE TABLE bare (x PRIMARY KEY, y) WITHOUT ROWID;
`

// Whatever SQLite writes, in whatever state the files are, is read as SQLite
// reads it.
func TestReadsWhatSQLiteReads(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "x.db")
		mode := rapid.SampledFrom([]string{"WAL", "DELETE", "PERSIST", "TRUNCATE"}).Draw(rt, "journal")
		size := rapid.SampledFrom([]int{512, 1024, 4096, 65536}).Draw(rt, "page size")
		vacuum := rapid.SampledFrom([]string{"none", "incremental"}).Draw(rt, "vacuum")
		encoding := rapid.SampledFrom([]string{"UTF-8", "UTF-8", "UTF-16le", "UTF-16be"}).Draw(rt, "encoding")
		db := open(t, path, fmt.Sprintf("_pragma=page_size(%d)&_pragma=auto_vacuum(%s)&_pragma=encoding('%s')&_pragma=journal_mode(%s)", size, vacuum, encoding, mode))
		defer db.Close()
		exec(t, db, schema)
		owners := []string{"", "a", "ab", "b", "ж", "x:y"}
		draw := rapid.IntRange(0, 1<<30)
		for range rapid.IntRange(0, 60).Draw(rt, "statements") {
			id := fmt.Sprintf("%03d", draw.Draw(rt, "id")%90)
			owner := rapid.SampledFrom(owners).Draw(rt, "owner")
			switch draw.Draw(rt, "do") % 10 {
			case 0:
				exec(t, db, `DELETE FROM "rows" WHERE id = ?`, id)
			case 1:
				exec(t, db, `UPDATE "rows" SET owner = ?, f = n / 3.0 WHERE id >= ?`, owner, id)
			case 2:
				exec(t, db, `PRAGMA wal_checkpoint(PASSIVE)`)
			case 3:
				exec(t, db, `INSERT OR REPLACE INTO numbered(k, "the text") VALUES (?, ?)`, draw.Draw(rt, "k")-1<<29, id)
			default:
				long := draw.Draw(rt, "length") % (3 * size) >> (draw.Draw(rt, "shift") % 12)
				exec(t, db, `INSERT OR REPLACE INTO "rows"(id, owner, n, f, b) VALUES (?, ?, ?, ?, ?)`,
					id, owner, rapid.Int64Range(-1<<50, 1<<50).Draw(rt, "n")>>(draw.Draw(rt, "bits")%50),
					rapid.Float64Range(-1e9, 1e9).Draw(rt, "f"), []byte(strings.Repeat("z", long)))
			}
		}
		if rapid.Bool().Draw(rt, "add a column") {
			exec(t, db, `ALTER TABLE "rows" ADD COLUMN later TEXT DEFAULT 'since'`)
			exec(t, db, `ALTER TABLE "rows" ADD COLUMN count INTEGER NOT NULL DEFAULT -7`)
			exec(t, db, `INSERT OR REPLACE INTO "rows"(id, owner) VALUES ('new', 'a')`)
			same(t, dump(t, path, "rows", func(tab *sqlite.Table, visit func(sqlite.Row) error) error {
				return tab.Rows([]string{"later", "count"}, visit)
			}), want(t, db, `SELECT later, count FROM "rows" ORDER BY rowid`))
		}
		if rapid.Bool().Draw(rt, "close") {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = open(t, path, "mode=rw")
			defer db.Close()
		}
		same(t, dump(t, path, "rows", func(tab *sqlite.Table, visit func(sqlite.Row) error) error {
			return tab.Rows([]string{"id", "owner", "n", "f", "b", "none"}, visit)
		}), want(t, db, `SELECT id, owner, n, f, b, NULL FROM "rows" ORDER BY rowid`))
		same(t, dump(t, path, "numbered", func(tab *sqlite.Table, visit func(sqlite.Row) error) error {
			return tab.Rows([]string{"the text", "k"}, visit)
		}), want(t, db, `SELECT "the text", k FROM numbered ORDER BY k`))
		order := ` ORDER BY rowid`
		for _, owner := range owners {
			same(t, dump(t, path, "rows", func(tab *sqlite.Table, visit func(sqlite.Row) error) error {
				return tab.Where("owner", owner, []string{"id", "n"}, visit)
			}), want(t, db, `SELECT id, n FROM "rows" WHERE owner = ?`+order, owner))
		}
		if encoding == "UTF-8" {
			order = ` ORDER BY id`
		}
		for _, prefix := range []string{"", "0", "04", "9", "zz"} {
			same(t, dump(t, path, "rows", func(tab *sqlite.Table, visit func(sqlite.Row) error) error {
				return tab.Prefix("id", prefix, []string{"id", "owner"}, visit)
			}), want(t, db, `SELECT id, owner FROM "rows" WHERE substr(id, 1, ?) = ?`+order, len(prefix), prefix))
		}
	})
}

func names(t testing.TB, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// What is no ordinary table is not read, whatever it is called.
func TestOnlyTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	exec(t, open(t, path, ""), schema)
	err := sqlite.View(path, func(d *sqlite.DB) error {
		for _, name := range []string{"secret", "bare", "by_owner", "nothing", "", "sqlite_schema"} {
			if _, ok := d.Table(name); ok {
				t.Errorf("%q is read", name)
			}
		}
		if tab, ok := d.Table("ROWS"); !ok || !tab.Has("Owner") || tab.Has("half") {
			t.Error("the table is not found by its name in other letters")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The rows that a log's newer frames hold are found without reading the others.
func TestSince(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db := open(t, path, "_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	exec(t, db, schema)
	for i := range 500 {
		exec(t, db, `INSERT INTO "rows"(id, owner, b) VALUES (?, ?, ?)`, fmt.Sprintf("%04d", i), fmt.Sprint("o", i/10), make([]byte, i*7))
		exec(t, db, `INSERT INTO numbered("the text") VALUES (?)`, fmt.Sprint(i))
	}
	rapid.Check(t, func(rt *rapid.T) {
		var from sqlite.Position
		if err := sqlite.View(path, func(d *sqlite.DB) error { from, _ = d.Position(); return nil }); err != nil {
			t.Fatal(err)
		}
		changed := map[string]bool{}
		for range rapid.IntRange(0, 4).Draw(rt, "changes") {
			id := fmt.Sprintf("%04d", rapid.IntRange(0, 600).Draw(rt, "id"))
			exec(t, db, `INSERT OR REPLACE INTO "rows"(id, owner, b) VALUES (?, 'x', ?)`, id, make([]byte, rapid.IntRange(0, 9000).Draw(rt, "b")))
			exec(t, db, `UPDATE numbered SET "the text" = "the text" || 'x' WHERE k = ?`, rapid.IntRange(1, 500).Draw(rt, "k"))
			changed[id] = true
		}
		seen := map[string]bool{}
		err := sqlite.View(path, func(d *sqlite.DB) error {
			now, _ := d.Position()
			if now.Generation != from.Generation || now.Frames < from.Frames {
				t.Fatalf("the log began anew: %v then %v", from, now)
			}
			tab, _ := d.Table("rows")
			return tab.Since(from.Frames, []string{"id"}, func(r sqlite.Row) error {
				seen[r[0].String()] = true
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		for id := range changed {
			if !seen[id] {
				t.Errorf("%s is not among the %d rows", id, len(seen))
			}
		}
		if len(changed) == 0 && len(seen) > 0 || len(seen) > 300 {
			t.Errorf("%d rows for %d changes", len(seen), len(changed))
		}
	})
}

// A transaction that is not finished is waited for, and what its owner left
// behind when it died is not taken for committed.
func TestUnfinished(t *testing.T) {
	for _, mode := range []string{"DELETE", "WAL"} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			db := open(t, path, "_pragma=cache_size(2)&_pragma=cache_spill(1)&_pragma=journal_mode("+mode+")")
			exec(t, db, schema)
			exec(t, db, `INSERT INTO "rows"(id) VALUES ('committed')`)
			exec(t, db, `BEGIN`)
			for i := range 400 {
				exec(t, db, `INSERT INTO "rows"(id, b) VALUES (?, ?)`, fmt.Sprint(i), make([]byte, 3000))
			}
			n := 0
			err := sqlite.View(path, func(d *sqlite.DB) error {
				n = 0
				tab, _ := d.Table("rows")
				return tab.Rows([]string{"id"}, func(sqlite.Row) error { n++; return nil })
			})
			switch {
			case mode == "WAL" && (err != nil || n != 1):
				t.Errorf("%d rows, %v", n, err)
			case mode == "DELETE" && !fault.Is(err, fault.Locked):
				t.Errorf("%d rows, %v", n, err)
			}
			exec(t, db, `COMMIT`)
			if got := len(dump(t, path, "rows", func(tab *sqlite.Table, visit func(sqlite.Row) error) error {
				return tab.Rows([]string{"id"}, visit)
			})); got != 401 {
				t.Errorf("%d rows after the commit", got)
			}
		})
	}
}

// While an owner writes and checkpoints, every look is of one state: the two
// halves of each transaction are there together or not at all.
func TestLiveWriter(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			db := open(t, path, "_pragma=synchronous(0)&_pragma=wal_autocheckpoint(200)&_pragma=journal_mode("+mode+")")
			exec(t, db, `CREATE TABLE a (id INTEGER PRIMARY KEY, n INTEGER, pad BLOB); CREATE TABLE b (id INTEGER PRIMARY KEY, n INTEGER, pad BLOB)`)
			ctx, stop := context.WithCancel(t.Context())
			var writer sync.WaitGroup
			writer.Go(func() {
				for n := 1; ctx.Err() == nil; n++ {
					tx, err := db.Begin()
					if err != nil {
						t.Error(err)
						return
					}
					for _, table := range []string{"a", "b"} {
						if _, err := tx.Exec(`INSERT OR REPLACE INTO `+table+`(id, n, pad) VALUES (?, ?, ?)`, n%50, n, make([]byte, n%7000)); err != nil {
							t.Error(err)
						}
					}
					if err := tx.Commit(); err != nil {
						t.Error(err)
						return
					}
					runtime.Gosched()
				}
			})
			good, locked := 0, 0
			for good < 12 && locked < 3 {
				var sums [2]int64
				err := sqlite.View(path, func(d *sqlite.DB) error {
					sums = [2]int64{}
					for i, name := range []string{"a", "b"} {
						tab, ok := d.Table(name)
						if !ok {
							return errors.New("no table " + name)
						}
						if err := tab.Rows([]string{"n", "id"}, func(r sqlite.Row) error {
							n, _ := r[0].Int()
							id, _ := r[1].Int()
							sums[i] += n * (id + 1)
							return nil
						}); err != nil {
							return err
						}
					}
					return nil
				})
				switch {
				case fault.Is(err, fault.Locked):
					locked++
				case err != nil:
					t.Fatal(err)
				case sums[0] != sums[1]:
					t.Fatalf("a torn look: %v", sums)
				default:
					good++
				}
			}
			stop()
			writer.Wait()
			t.Logf("%d looks of one state, %d times the owner did not rest", good, locked)
			if err := sqlite.View(path, func(*sqlite.DB) error { return nil }); err != nil {
				t.Errorf("when the owner rests: %v", err)
			}
		})
	}
}

// No bytes make the reader panic, hang or read without bound.
func FuzzOpen(f *testing.F) {
	for _, mode := range []string{"WAL", "DELETE"} {
		path := filepath.Join(f.TempDir(), mode)
		db := open(f, path, "_pragma=page_size(512)&_pragma=journal_mode("+mode+")")
		exec(f, db, schema)
		for i := range 40 {
			exec(f, db, `INSERT INTO "rows"(id, owner, b) VALUES (?, ?, ?)`, fmt.Sprint(i), fmt.Sprint(i%3), make([]byte, i*20))
		}
		main, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		log, _ := os.ReadFile(path + sqlite.WAL)
		f.Add(main, log, uint32(0), byte(0))
		f.Add(main, log, uint32(600), byte(9))
	}
	f.Fuzz(func(t *testing.T, main, log []byte, at uint32, with byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "x.db")
		if len(main) > 0 {
			main[int(at)%len(main)] ^= with
		}
		if err := errors.Join(os.WriteFile(path, main, 0o600), os.WriteFile(path+sqlite.WAL, log, 0o600)); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		d, err := sqlite.Open(path)
		if err != nil {
			if fault.KindOf(err) == fault.Internal {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		defer d.Close()
		for _, name := range []string{"rows", "numbered"} {
			tab, ok := d.Table(name)
			if !ok {
				continue
			}
			seen := func(sqlite.Row) error { return nil }
			for _, err := range []error{
				tab.Rows([]string{"id", "b", "later"}, seen), tab.Where("owner", "1", []string{"id", "b"}, seen),
				tab.Prefix("id", "1", []string{"b"}, seen), tab.Since(0, []string{"id"}, seen),
			} {
				if err != nil && fault.KindOf(err) == fault.Internal && !errors.Is(err, sqlite.ErrChanged) {
					t.Errorf("an error of no kind: %v", err)
				}
			}
		}
	})
}
