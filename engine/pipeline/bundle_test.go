package pipeline_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/ingest"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
	"handoffd/engine/verify"
)

// agent writes a session into a database as OpenCode does: parts appear, grow
// and finish in place.
type agent struct {
	t    testing.TB
	db   *sql.DB
	path string
	n    int64
}

func newAgent(t testing.TB, dir string) *agent {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, path: filepath.Join(dir, "opencode.db"), n: 1781674674000}
	a.db = harnesstest.Owner(t, a.path, "WAL")
	a.do(`CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text, revert text, time_created integer, time_updated integer)`)
	a.do(`CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text)`)
	a.do(`CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text)`)
	a.do(`CREATE INDEX m ON message(session_id); CREATE INDEX p ON part(session_id); CREATE INDEX q ON part(message_id)`)
	a.session("ses_1")
	return a
}

func (a *agent) do(statement string, args ...any) {
	a.t.Helper()
	harnesstest.Do(a.t, a.db, statement, args...)
}

func (a *agent) now() int64 { a.n++; return a.n }

func (a *agent) session(id string) {
	a.do(`INSERT INTO session VALUES (?, NULL, '/home/u/work', 'A title', '1.18', NULL, ?, ?)`, id, a.now(), a.n)
}

// put writes a row, or writes it again.
func (a *agent) put(table, id, message, data string) {
	a.t.Helper()
	if table == "message" {
		a.do(`INSERT INTO message VALUES (?, 'ses_1', ?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data, time_updated = excluded.time_updated`, id, a.now(), a.n, data)
		return
	}
	a.do(`INSERT INTO part VALUES (?, ?, 'ses_1', ?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data, time_updated = excluded.time_updated`, id, message, a.now(), a.n, data)
}

// turn is the writes of one prompt and its answer, in order.
func (a *agent) turn(n int) []func() {
	user, answer := fmt.Sprintf("msg_%03da", n), fmt.Sprintf("msg_%03db", n)
	part := func(k int) string { return fmt.Sprintf("prt_%03d%d", n, k) }
	list := []func(){
		func() { a.put("message", user, "", `{"role":"user"}`) },
		func() { a.put("part", part(0), user, fmt.Sprintf(`{"type":"text","text":"prompt %d"}`, n)) },
		func() {
			a.put("message", answer, "", `{"role":"assistant","modelID":"m","time":{"created":1781674674001}}`)
		},
	}
	for _, text := range []string{"I", "I do", "I do it"} {
		list = append(list, func() {
			a.put("part", part(1), answer, fmt.Sprintf(`{"type":"text","text":%q,"time":{"start":1781674674002}}`, text))
		})
	}
	list = append(list, func() {
		a.put("part", part(1), answer, fmt.Sprintf(`{"type":"text","text":"I do it %d","time":{"start":1781674674002,"end":1781674674003}}`, n))
	})
	for _, state := range []string{
		`"status":"pending","input":{}`, `"status":"running","input":{"command":"make"}`,
		`"status":"completed","input":{"command":"make"},"output":"ok","metadata":{"exit":0}`,
	} {
		list = append(list, func() {
			a.put("part", part(2), answer, `{"type":"tool","tool":"bash","callID":"c`+fmt.Sprint(n)+`","state":{`+state+`}}`)
		})
	}
	return append(list,
		func() {
			a.put("part", part(3), answer, fmt.Sprintf(`{"type":"text","text":"Done %d","time":{"start":1781674674004,"end":1781674674005}}`, n))
		},
		func() {
			a.put("message", answer, "", `{"role":"assistant","modelID":"m","tokens":{"input":10,"output":2},"time":{"created":1781674674001,"completed":1781674674006}}`)
		})
}

// A session of a database, looked at however often while its rows change, ends
// as one undisturbed build of it does.
func TestBundleInterrupted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newBench(t)
		a := newAgent(t, x.path("data"))
		source := harness.Join(a.path, "ses_1")
		build := func() {
			_, err := x.b.Build(context.Background(), pipeline.Request{Source: source})
			if err != nil && !fault.Is(err, fault.NoTurns) {
				t.Fatal(err)
			}
		}
		for n := range rapid.IntRange(1, 3).Draw(rt, "turns") {
			for i, write := range a.turn(n) {
				write()
				switch rapid.IntRange(0, 5).Draw(rt, fmt.Sprint("after ", n, ".", i)) {
				case 0, 1:
					build()
				case 2:
					x.restart()
					build()
				case 3:
					a.do(`PRAGMA wal_checkpoint(TRUNCATE)`)
				}
			}
		}
		build()
		x.verify()
		got := x.outcome()
		y := newBench(t)
		if _, err := y.b.Build(context.Background(), pipeline.Request{Source: source}); err != nil {
			t.Fatal(err)
		}
		want := y.outcome()
		want.Brief = strings.ReplaceAll(want.Brief, x.root, "ROOT")
		want.Tools = strings.ReplaceAll(want.Tools, x.root, "ROOT")
		if got != want {
			t.Fatalf("interrupted and at once differ: %s", firstDifference(fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want)))
		}
	})
}

// Nothing is written when nothing changed, not even when the owner's other
// sessions did; and what a harness prunes or takes back stays.
func TestBundleKeeps(t *testing.T) {
	x := newBench(t)
	a := newAgent(t, x.path("data"))
	for n := range 2 {
		for _, write := range a.turn(n) {
			write()
		}
	}
	source := harness.Join(a.path, "ses_1")
	ask := func() *pipeline.Result {
		t.Helper()
		r, err := x.b.Build(context.Background(), pipeline.Request{Source: source})
		if err != nil {
			t.Fatal(err)
		}
		x.verify()
		return r
	}
	first := ask()
	if first.Turns != 10 || first.Session != "ses_1" || first.Project != "work" {
		t.Fatalf("first %+v", first)
	}
	a.session("ses_2")
	for range 2 {
		if r := ask(); r.Built {
			t.Errorf("nothing changed: %+v", r)
		}
		x.restart()
	}
	a.do(`DELETE FROM part WHERE message_id = 'msg_000b'`)
	a.do(`DELETE FROM message WHERE id = 'msg_000b'`)
	a.do(`UPDATE session SET revert = '{"messageID":"msg_001a"}', time_updated = time_updated + 1`)
	loc, dir := x.only()
	rewritten := func() bool {
		t.Helper()
		m, _, err := store.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		return m.Sources[0].Rewritten
	}
	if rewritten() {
		t.Error("rows that change in place count as rewritten")
	}
	if r := ask(); r.Turns != 10 || !rewritten() {
		t.Errorf("after pruning %d turns, rewritten %v", r.Turns, rewritten())
	}
	for _, name := range []string{store.ManifestName, store.SummaryName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	x.restart()
	if r := ask(); r.Turns != 10 || r.Location != loc {
		t.Errorf("after the loss of the manifest %+v", r)
	}
	m, _, err := store.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if i, ok := m.Source(source); !ok || m.Sources[i].Key == "" || m.Sources[i].Size != m.Sources[i].Bytes {
		t.Errorf("sources %+v", m.Sources)
	}
	report, err := verify.Session(context.Background(), x.store, loc)
	if err != nil || !strings.Contains(report.Line(), "read as an export") {
		t.Errorf("verify says %s, %v", report.Line(), err)
	}
}

// An answer that was captured while it came in stays when it is taken back
// before it was whole, and is not doubled by what takes its place.
func TestBundleTakenBack(t *testing.T) {
	x := newBench(t)
	a := newAgent(t, x.path("data"))
	source := harness.Join(a.path, "ses_1")
	ask := func() *pipeline.Result {
		t.Helper()
		r, err := x.b.Build(context.Background(), pipeline.Request{Source: source})
		if err != nil {
			t.Fatal(err)
		}
		x.verify()
		return r
	}
	for _, write := range a.turn(0)[:5] {
		write()
	}
	if r := ask(); r.Turns != 2 {
		t.Fatalf("a prompt and half an answer are %d turns", r.Turns)
	}
	a.do(`DELETE FROM part WHERE message_id = 'msg_000b'`)
	a.do(`DELETE FROM message WHERE id = 'msg_000b'`)
	for _, write := range a.turn(1) {
		write()
	}
	for range 2 {
		if r := ask(); r.Turns != 7 {
			t.Errorf("with the answer that was taken back, a prompt and a whole one there are %d turns", r.Turns)
		}
		a.do(`UPDATE session SET title = title || '.'`)
	}
	_, dir := x.only()
	var texts []string
	for one, err := range store.Turns(dir, -1) {
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, one.Text)
	}
	if got := strings.Join(texts, "|"); !strings.HasPrefix(got, "prompt 0|I do|prompt 1|") {
		t.Error(got)
	}
}

// A session that is larger than what is kept in memory is captured like any.
func TestBundleLarge(t *testing.T) {
	x := newBench(t)
	a := newAgent(t, x.path("data"))
	source := harness.Join(a.path, "ses_1")
	a.put("message", "msg_1", "", `{"role":"user"}`)
	for n := range 3 {
		text := strings.Repeat(fmt.Sprint(n, " line\\n"), 400_000)
		a.put("part", fmt.Sprint("prt_", n), "msg_1", `{"type":"text","text":"`+text+`"}`)
		r, err := x.b.Build(context.Background(), pipeline.Request{Source: source})
		if err != nil || r.Turns != n+1 {
			t.Fatalf("%+v %v", r, err)
		}
	}
	x.verify()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "handoffd-export-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("exports left behind: %v %v", left, err)
	}
}

// A source is gone when the database has not the session, or is not there.
func TestBundleGone(t *testing.T) {
	x := newBench(t)
	a := newAgent(t, x.path("data"))
	for _, write := range a.turn(0) {
		write()
	}
	source := harness.Join(a.path, "ses_1")
	if _, err := x.b.Build(context.Background(), pipeline.Request{Source: source}); err != nil {
		t.Fatal(err)
	}
	loc, dir := x.only()
	gone := func() bool {
		t.Helper()
		if err := x.b.SourceGone(context.Background(), loc, source); err != nil {
			t.Fatal(err)
		}
		m, _, err := store.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		return m.Sources[0].Gone
	}
	if gone() {
		t.Error("it is there")
	}
	a.do(`DELETE FROM session`)
	if !gone() {
		t.Error("the session is deleted")
	}
	if _, err := x.b.Build(context.Background(), pipeline.Request{Source: source}); !fault.Is(err, fault.SourceMissing) {
		t.Errorf("build of a deleted session: %v", err)
	}
	x.verify()
}

// What cannot be read is refused with one line, and leaves nothing behind.
func TestBundleRefused(t *testing.T) {
	x := newBench(t)
	a := newAgent(t, x.path("data"))
	_, err := x.b.Build(context.Background(), pipeline.Request{Source: a.path})
	if !fault.Is(err, fault.Usage) || fault.HintOf(err) == "" {
		t.Errorf("a database: %v", err)
	}
	foreign := x.path("else.db")
	harnesstest.Do(t, harnesstest.Owner(t, foreign, "DELETE"), `CREATE TABLE t (x)`)
	for _, c := range []struct {
		source string
		kind   fault.Kind
	}{
		{harness.Join(a.path, "ses_none"), fault.SourceMissing},
		{harness.Join(a.path+"x", "ses_1"), fault.SourceMissing},
		{harness.Join(a.path, "ses_1"), fault.NoTurns},
		{foreign, fault.Unsupported},
		{harness.Join(foreign, "x"), fault.Unsupported},
	} {
		_, err := x.b.Build(context.Background(), pipeline.Request{Source: c.source})
		if !fault.Is(err, c.kind) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.source, err)
		}
	}
	if all, err := x.store.Sessions(); err != nil || len(all) > 0 {
		t.Errorf("left behind: %v %v", all, err)
	}
	list, many, err := ingest.Sessions(a.path)
	if err != nil || !many || len(list) != 1 || list[0].Path != harness.Join(a.path, "ses_1") {
		t.Errorf("sessions %v %v %v", list, many, err)
	}
	if _, many, err := ingest.Sessions(foreign); !many || !fault.Is(err, fault.Unsupported) {
		t.Errorf("sessions of a foreign database: %v %v", many, err)
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n%s\n%s", i, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}
