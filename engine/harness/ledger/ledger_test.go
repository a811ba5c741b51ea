package ledger_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/harness/ledger"
)

var shop = ledger.Store{
	Harness: "Shop", Millis: ledger.Millis,
	Tables: []ledger.Table{
		{Name: "session", Session: "id", Updated: "at"},
		{Name: "part", Session: "owner", Content: "data", Updated: "at"},
		{Name: "extra", Session: "owner", Optional: true},
	},
}

func open(t testing.TB, mode string) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shop.db")
	db = harnesstest.Owner(t, path, mode)
	harnesstest.Do(t, db, `CREATE TABLE session (id TEXT PRIMARY KEY, at INTEGER); CREATE TABLE part (owner TEXT, at INTEGER, data TEXT); CREATE INDEX o ON part(owner)`)
	return path, db
}

// A listing that goes on from an earlier one is the listing that knows nothing,
// but for sessions from which only rows are gone; and a key is what is listed.
func TestListing(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		rapid.Check(t, func(rt *rapid.T) {
			path, db := open(t, mode)
			defer db.Close()
			var known *harness.Listing
			id := func(what string) string { return fmt.Sprint("s", rapid.IntRange(0, 5).Draw(rt, what)) }
			for range rapid.IntRange(1, 6).Draw(rt, "steps") {
				changed := map[string]bool{}
				for range rapid.IntRange(0, 3).Draw(rt, "changes") {
					of := id("session")
					changed[of] = true
					at := rapid.IntRange(1, 9).Draw(rt, "at")
					switch rapid.IntRange(0, 5).Draw(rt, "what") {
					case 0:
						harnesstest.Do(t, db, `INSERT OR REPLACE INTO session VALUES (?, ?)`, of, at)
					case 1:
						harnesstest.Do(t, db, `UPDATE part SET data = data || 'x' WHERE owner = ?`, of)
					case 2:
						harnesstest.Do(t, db, `UPDATE part SET at = at + 1 WHERE owner = ?`, of)
					case 3:
						harnesstest.Do(t, db, `PRAGMA wal_checkpoint(TRUNCATE)`)
					default:
						harnesstest.Do(t, db, `INSERT INTO session VALUES (?, 1) ON CONFLICT DO NOTHING`, of)
						harnesstest.Do(t, db, `INSERT INTO part VALUES (?, ?, hex(zeroblob(?)))`, of, at, rapid.IntRange(0, 3000).Draw(rt, "length"))
					}
				}
				before := known
				next, err := shop.List(path, known)
				if err != nil {
					t.Fatal(err)
				}
				fresh, err := shop.List(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(next.Members) != fmt.Sprint(fresh.Members) {
					t.Fatalf("going on:\n%v\nfrom nothing:\n%v", next.Members, fresh.Members)
				}
				for id, m := range next.Members {
					if key, ok, err := shop.Key(path, id); err != nil || !ok || key != m.Key {
						t.Fatalf("key of %s is %q, listed %q: %v %v", id, key, m.Key, ok, err)
					}
					if before != nil && !changed[id] && before.Members[id] != m {
						t.Fatalf("%s did not change, yet its key did", id)
					}
				}
				known = next
			}
		})
	}
}

// Whatever happens to a row, the key tells, also within one step of the clock.
func TestKeys(t *testing.T) {
	path, db := open(t, "WAL")
	harnesstest.Do(t, db, `INSERT INTO session VALUES ('s', 5), ('other', 5)`)
	for range 3 {
		harnesstest.Do(t, db, `INSERT INTO part VALUES ('s', 5, 'one')`)
	}
	key := func() string {
		t.Helper()
		k, ok, err := shop.Key(path, "s")
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return k
	}
	seen := map[string]string{key(): "the start"}
	for _, do := range []string{
		`INSERT INTO part VALUES ('s', 4, 'two')`,
		`UPDATE part SET data = 'three' WHERE rowid = 2`,
		`UPDATE part SET at = 6 WHERE rowid = 2`,
		`DELETE FROM part WHERE rowid = 1`,
		`UPDATE part SET rowid = 70 WHERE rowid = 3`,
		`UPDATE session SET at = 9 WHERE id = 's'`,
		`CREATE TABLE extra (owner TEXT)`, // a table that later versions have
	} {
		harnesstest.Do(t, db, do)
		k := key()
		if before, ok := seen[k]; ok && do != `CREATE TABLE extra (owner TEXT)` {
			t.Errorf("after %s the key is as after %s", do, before)
		}
		seen[k] = do
	}
	k := key()
	harnesstest.Do(t, db, `INSERT INTO part VALUES ('other', 9, 'x')`)
	harnesstest.Do(t, db, `VACUUM`)
	if now := key(); now != k {
		t.Errorf("another session changed, yet the key became %s, was %s", now, k)
	}
}

// A schema that is not known is refused in one line that says what is missing.
func TestForeignSchema(t *testing.T) {
	for _, change := range []string{
		`DROP TABLE part`, `ALTER TABLE part RENAME COLUMN data TO content`, `ALTER TABLE part RENAME COLUMN owner TO of`,
		`ALTER TABLE session RENAME TO old; CREATE VIEW session AS SELECT * FROM old`,
	} {
		path, db := open(t, "WAL")
		harnesstest.Do(t, db, change)
		_, err := shop.List(path, nil)
		_, _, keyErr := shop.Key(path, "s")
		if !fault.Is(err, fault.Unsupported) || keyErr == nil || err.Error() != keyErr.Error() {
			t.Errorf("%s: %v, %v", change, err, keyErr)
		}
	}
	path, db := open(t, "WAL")
	harnesstest.Do(t, db, `ALTER TABLE session DROP COLUMN at; INSERT INTO session VALUES ('s')`)
	if l, err := shop.List(path, nil); err != nil || len(l.Members) != 1 {
		t.Errorf("without times: %v, %v", l, err)
	}
}

func TestMillis(t *testing.T) {
	const ms = 1781674674123
	for n, want := range map[int64]int64{
		ms: ms, ms / 1000: ms / 1000 * 1000, ms * 1000: ms, ms * 1_000_000: ms,
		0: 0, -ms: 0, 42: 0, 1 << 62: 0, 631152000: 0, 4102444800: 0,
	} {
		if got := ledger.Millis(n); got != want {
			t.Errorf("%d is %d, want %d", n, got, want)
		}
	}
	if got := ledger.Stamp(ms); got != "2026-06-17T05:37:54.123Z" {
		t.Error(got)
	}
}
