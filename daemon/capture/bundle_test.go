package capture

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/watch"
)

// shop is a database of many sessions, whose owner is at work.
type shop struct {
	t    testing.TB
	path string
	db   *sql.DB
	at   int64
}

func (b *bench) shop() *shop {
	b.t.Helper()
	dir := filepath.Join(b.dir, "home", ".local", "share", "opencode")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	s := &shop{t: b.t, path: filepath.Join(dir, "opencode.db"), at: 1781674674000}
	db, err := sql.Open("sqlite", "file:"+s.path+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		b.t.Fatal(err)
	}
	s.db = db
	b.t.Cleanup(func() { _ = db.Close() })
	s.do(`CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text, revert text, time_created integer, time_updated integer)`)
	s.do(`CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text)`)
	s.do(`CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text)`)
	s.do(`CREATE INDEX m ON message(session_id); CREATE INDEX p ON part(session_id); CREATE INDEX q ON part(message_id)`)
	return s
}

func (s *shop) do(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

// say adds a prompt to a session.
func (s *shop) say(id, text string) {
	s.t.Helper()
	s.at += 1000
	n := s.at
	s.do(`INSERT OR IGNORE INTO session VALUES (?, NULL, '/p', 't', '1', NULL, ?, ?)`, id, n, n)
	s.do(`INSERT INTO message VALUES (?, ?, ?, ?, '{"role":"user"}')`, fmt.Sprint("msg_", n), id, n, n)
	s.do(`INSERT INTO part VALUES (?, ?, ?, ?, ?, json_object('type', 'text', 'text', ?))`, fmt.Sprint("prt_", n), fmt.Sprint("msg_", n), id, n, n, text)
}

func (s *shop) member(id string) string { return harness.Join(s.path, id) }

func (b *bench) stored(s *shop, id string) int {
	b.t.Helper()
	entries, err := b.builder.Index.Entries()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		if e.UUID == id {
			return e.Turns
		}
	}
	return 0
}

// The sessions of a database are captured each by itself: at the start, at an
// event about its log, at a sweep, at a poke; and only those that changed.
func TestBundle(t *testing.T) {
	b := newBench(t, nil)
	s := b.shop()
	for n := range 5 {
		s.say(fmt.Sprint("ses_", n), "one")
	}
	b.start()
	b.until("the first five", func() bool {
		return b.stored(s, "ses_0") == 1 && b.stored(s, "ses_4") == 1 && b.capturer.Stats().Captures.Built == 5
	})
	s.say("ses_2", "two")
	b.capturer.event(watch.Event{Path: s.path + "-wal"})
	b.until("what an event told", func() bool { return b.stored(s, "ses_2") == 2 })
	s.say("ses_3", "two")
	s.say("ses_9", "new")
	if err := b.capturer.Poke(t.Context(), []string{s.path}, true); err != nil {
		t.Fatal(err)
	}
	if b.stored(s, "ses_3") != 2 || b.stored(s, "ses_9") != 1 {
		t.Errorf("after a poke of the database: %d and %d turns", b.stored(s, "ses_3"), b.stored(s, "ses_9"))
	}
	s.say("ses_0", "two")
	if err := b.capturer.Poke(t.Context(), []string{s.member("ses_0")}, true); err != nil || b.stored(s, "ses_0") != 2 {
		t.Errorf("after a poke of the session: %d turns, %v", b.stored(s, "ses_0"), err)
	}
	s.say("ses_1", "two")
	if err := b.capturer.Poke(t.Context(), nil, true); err != nil || b.stored(s, "ses_1") != 2 {
		t.Errorf("after a poke of everything: %d turns, %v", b.stored(s, "ses_1"), err)
	}
	before := b.capturer.Stats().Captures
	b.capturer.event(watch.Event{Path: s.path + "-wal"})
	if err := b.capturer.Poke(t.Context(), nil, true); err != nil {
		t.Fatal(err)
	}
	b.until("rest", func() bool { return b.capturer.Stats().Queue.Queued == 0 })
	if now := b.capturer.Stats().Captures; now != before || now.Failed > 0 {
		t.Errorf("nothing changed, yet %+v became %+v", before, now)
	}
	s.say("ses_4", "the last word")
	b.end()
	if b.stored(s, "ses_4") != 2 {
		t.Error("the end did not capture the last word")
	}

	b.capturer = nil // as a new process
	s.say("ses_2", "while nobody watched")
	b.start()
	b.until("what changed meanwhile", func() bool { return b.capturer.Stats().Captures.Built == 1 })
	if err := b.capturer.Poke(t.Context(), nil, true); err != nil || b.stored(s, "ses_2") != 3 {
		t.Errorf("%d turns, %v", b.stored(s, "ses_2"), err)
	}
	if c := b.capturer.Stats().Captures; c.Built != 1 || c.Skipped > 0 {
		t.Errorf("a restart built more than what changed: %+v", c)
	}
	b.end()
}

// A session that its owner deletes is told that it is gone; so are all when the
// database is. What was captured stays.
func TestBundleGone(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Sweep = time.Second })
	s := b.shop()
	s.say("ses_1", "one")
	s.say("ses_2", "one")
	b.start()
	b.until("both", func() bool { return b.stored(s, "ses_1") == 1 && b.stored(s, "ses_2") == 1 })
	s.do(`DELETE FROM part WHERE session_id = 'ses_1'`)
	s.do(`DELETE FROM message WHERE session_id = 'ses_1'`)
	s.do(`DELETE FROM session WHERE id = 'ses_1'`)
	s.do(`PRAGMA wal_checkpoint(TRUNCATE)`)
	s.say("ses_2", "two")
	b.until("the deleted one", func() bool { return b.gone(s.member("ses_1")) })
	b.until("the other", func() bool { return b.stored(s, "ses_2") == 2 })
	if b.gone(s.member("ses_2")) || b.stored(s, "ses_1") != 1 {
		t.Error("the session that is there is gone, or what was captured of the other")
	}
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(s.path + end)
	}
	b.until("the database", func() bool { return b.gone(s.member("ses_2")) })
	if b.stored(s, "ses_2") != 2 {
		t.Error("what was captured is gone")
	}
	b.end()
}

// A database that its owner holds is tried again; one of another schema is
// passed over with one line.
func TestBundleRefused(t *testing.T) {
	b := newBench(t, nil)
	s := b.shop()
	s.say("ses_1", "one")
	s.do(`ALTER TABLE part RENAME TO chunk`)
	b.start()
	if err := b.capturer.Poke(t.Context(), []string{s.path}, true); !fault.Is(err, fault.Unsupported) {
		t.Errorf("another schema: %v", err)
	}
	s.do(`ALTER TABLE chunk RENAME TO part`)
	if err := b.capturer.Poke(t.Context(), []string{s.path}, true); err != nil || b.stored(s, "ses_1") != 1 {
		t.Errorf("as it was: %v", err)
	}
	b.end()
}

// A session of a tree of files is captured when any of its files changes.
func TestTree(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Sweep = time.Second })
	root := filepath.Join(b.dir, "home", ".local", "share", "opencode", "storage")
	put := func(rel, text string) {
		t.Helper()
		path := filepath.Join(root, rel)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("session/p/ses_1.json", `{"id":"ses_1","directory":"/p","time":{"created":1764265491419}}`)
	put("message/ses_1/msg_1.json", `{"id":"msg_1","role":"user"}`)
	put("part/msg_1/prt_1.json", `{"id":"prt_1","type":"text","text":"one"}`)
	put("message/ses_1/msg_2.json", `{"id":"msg_2","role":"assistant","time":{"completed":1764265491420}}`)
	put("part/msg_2/prt_2.json", "")
	b.start()
	b.until("what is whole", func() bool { return b.stored(nil, "ses_1") == 1 })
	put("part/msg_2/prt_2.json", `{"id":"prt_2","type":"text","text":"two"}`)
	b.until("the file that was empty", func() bool { return b.stored(nil, "ses_1") == 2 })
	b.end()
}
