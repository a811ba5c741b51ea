package evidence

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/seal"
)

var key = []byte(strings.Repeat("k", 64))

func newLedger(t *testing.T) Ledger {
	t.Helper()
	return Ledger{Dir: filepath.Join(t.TempDir(), ".adlc"), Host: "here", Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC) }}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The published tool signs these so.
func TestVectors(t *testing.T) {
	e := Entry{
		Seq: 1, Gate: "context-handoff-write", TS: "2026-01-02T03:04:05.678Z", Ticket: "T1",
		Data: jsontext.Value(`{"session_id":"s1","content_hash":"h1","deny_reason":"ok","rebound":false}`),
	}
	for version, want := range map[int]string{
		0: "5cc4d06071f4e8c982b618cfe21e66dd134339441c2371c55dc5326297b089ea",
		2: "bf0d49c6e2ce5a31bbccd23feffb4a9dbcf2775f9ec1f9675fac8ccd95238fb1",
	} {
		e.SigVersion = version
		line, err := e.line(key)
		if err != nil || !strings.HasSuffix(string(line), `"sig":"`+want+`"}`) {
			t.Errorf("version %d: %s, %v", version, line, err)
		}
		if _, err := Check(append(line, '\n'), key, false); err != nil {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestAppend(t *testing.T) {
	l := newLedger(t)
	for i := range 3 {
		seq, err := l.Append(t.Context(), key, "g", "T", map[string]any{"i": i, "s": "<&>\u2028"})
		if err != nil || seq != int64(i+1) {
			t.Fatal(seq, err)
		}
	}
	raw, err := os.ReadFile(l.root())
	if err != nil {
		t.Fatal(err)
	}
	first := strings.SplitAfter(string(raw), "\n")[0]
	if want := `{"seq":1,"gate":"g","ts":"2026-01-02T03:04:05.678Z","ticket":"T","data":{"i":0,"s":"<&>` + "\u2028" + `"},"files":{},"prev":null,"sig":"`; !strings.HasPrefix(first, want) {
		t.Errorf("%s", first)
	}
	if err := l.Verify(key); err != nil {
		t.Error(err)
	}
	if err := l.Verify(nil); err != nil {
		t.Error(err)
	}
	if err := l.Verify([]byte("other")); err == nil {
		t.Error("another key verifies")
	}
	for name, damaged := range map[string]string{
		"line gone":    strings.Join(strings.SplitAfter(string(raw), "\n")[1:], ""),
		"order":        strings.Replace(string(raw), `"seq":2`, `"seq":5`, 1),
		"text":         strings.Replace(string(raw), `"i":1`, `"i":7`, 1),
		"not JSON":     string(raw) + "{not-json",
		"not an entry": string(raw) + "{}\n",
		"unsigned":     string(raw) + fmt.Sprintf(`{"seq":4,"gate":"g","ts":"x","files":{},"prev":%q}`+"\n", seal.Sum([]byte(strings.Split(string(raw), "\n")[2]))),
	} {
		put(t, l.root(), damaged)
		if err := l.Verify(key); !fault.Is(err, fault.Operational) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := l.Append(t.Context(), key, "g", "", nil); !fault.Is(err, fault.Operational) {
			t.Errorf("%s was appended to: %v", name, err)
		}
		if now, _ := os.ReadFile(l.root()); string(now) != damaged {
			t.Errorf("%s was changed", name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(l.Dir, "*.lock")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAppendRace(t *testing.T) {
	l := newLedger(t)
	var wg sync.WaitGroup
	for range 10 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := l.Append(t.Context(), key, "g", "", nil); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	raw, _ := os.ReadFile(l.root())
	if c, err := Check(raw, key, false); err != nil || c.Entries != 10 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestMend(t *testing.T) {
	l := newLedger(t)
	if _, err := l.Append(t.Context(), key, "g", "", nil); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(l.root())
	put(t, l.root(), string(whole)+`{"seq":2,"ga`)
	kept, err := l.Mend(t.Context())
	if err != nil || kept == "" {
		t.Fatal(kept, err)
	}
	if raw, _ := os.ReadFile(kept); string(raw) != `{"seq":2,"ga` {
		t.Errorf("%q", raw)
	}
	if now, _ := os.ReadFile(l.root()); string(now) != string(whole) {
		t.Errorf("%q", now)
	}
	// Only the newline is missing: nothing to mend, and it is appended to.
	put(t, l.root(), strings.TrimSuffix(string(whole), "\n"))
	if kept, err := l.Mend(t.Context()); kept != "" || err != nil {
		t.Error(kept, err)
	}
	if seq, err := l.Append(t.Context(), key, "g", "", nil); seq != 2 || err != nil {
		t.Error(seq, err)
	}
	if err := l.Verify(key); err != nil {
		t.Error(err)
	}
	put(t, l.root(), string(whole)+"{}\n")
	if kept, err := l.Mend(t.Context()); kept != "" || err != nil {
		t.Error("a whole line was taken for torn", kept, err)
	}
}

func TestSegments(t *testing.T) {
	l := newLedger(t)
	put(t, filepath.Join(l.segments(), ".store.json"), `{"format":"adlc-manifest-segments","version":1}`)
	if _, err := l.Append(t.Context(), key, "g", "", nil); !fault.Is(err, fault.Operational) || fault.HintOf(err) == "" {
		t.Fatal(err)
	}
	first, err := Entry{Seq: 1, Gate: "anchor", TS: "t", SigVersion: 2}.line(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.segments(), "main-01J.jsonl")
	put(t, path, string(first)+"\n")
	put(t, filepath.Join(l.segments(), ".lineage"), `{"segment":"main-01J","ulid":"01J","branch":"main"}`)
	if seq, err := l.Append(t.Context(), key, "g", "", nil); seq != 2 || err != nil {
		t.Fatal(seq, err)
	}
	raw, _ := os.ReadFile(path)
	if !strings.Contains(string(raw), `"sigVersion":2,"sig":`) {
		t.Errorf("%s", raw)
	}
	if err := l.Verify(key); err != nil {
		t.Error(err)
	}
	if got := l.Recent(); len(got) != 2 || got[1].Gate != "g" {
		t.Errorf("%+v", got)
	}
	put(t, filepath.Join(l.segments(), ".lineage"), `{"segment":"../../x"}`)
	if _, err := l.Append(t.Context(), key, "g", "", nil); err == nil {
		t.Error("a segment outside was appended to")
	}
}

func TestRecent(t *testing.T) {
	l := newLedger(t)
	if got := l.Recent(); got != nil {
		t.Errorf("%+v", got)
	}
	for i := range 15 {
		if _, err := l.Append(t.Context(), key, fmt.Sprint("g", i), "", nil); err != nil {
			t.Fatal(err)
		}
	}
	raw, _ := os.ReadFile(l.root())
	put(t, l.root(), string(raw)+"garbage\n")
	got := l.Recent()
	if len(got) != 12 || got[0].Gate != "g3" || got[11].Gate != "g14" {
		t.Errorf("%+v", got)
	}
}

func TestActiveTicket(t *testing.T) {
	for _, c := range []struct {
		file, env, want string
		fails           bool
	}{
		{"", "", "", false}, {"", " T1 ", "T1", false}, {`"T1"`, "", "T1", false}, {`{"id":"T1","ticketHash":"x"}`, "T1", "T1", false},
		{`{"ticket":"T2"}`, "", "T2", false}, {`{"ticketId":"T3"}`, "", "T3", false},
		{`{"id":"T1"}`, "T2", "", true}, {`{`, "", "", true}, {`[]`, "", "", true}, {`""`, "", "", true}, {`{"id":5}`, "", "", true}, {`null`, "T1", "", true},
	} {
		l := newLedger(t)
		if c.file != "" {
			put(t, filepath.Join(l.Dir, "current-ticket.json"), c.file)
		}
		got, err := l.ActiveTicket(c.env)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%+v gives %q, %v", c, got, err)
		}
	}
	l := newLedger(t)
	put(t, filepath.Join(l.Dir, "tickets.json"), `{"tickets":[{"id":"T1","title":"one"}]}`)
	if l.TicketTitle("T1") != "one" || l.TicketTitle("T2") != "" || l.TicketTitle("") != "" {
		t.Error("titles")
	}
}

// A live lock of the published tool is honoured, a dead one is not in the way.
func TestLedgerLock(t *testing.T) {
	l := newLedger(t)
	lock := l.root() + ".lock"
	theirs := func(pid int) string {
		return fmt.Sprintf(`{"version":1,"token":"x","pid":%d,"hostname":"here","startedAt":"t"}`, pid)
	}
	put(t, lock, theirs(1<<22))
	if _, err := l.Append(t.Context(), key, "g", "", nil); err != nil {
		t.Fatal(err)
	}
	put(t, lock, theirs(os.Getppid()))
	ctx, cancel := context.WithTimeout(t.Context(), 20*poll) // sooner than its own patience
	defer cancel()
	if _, err := l.Append(ctx, key, "g", "", nil); !fault.Is(err, fault.Operational) {
		t.Fatal(err)
	}
	if raw, _ := os.ReadFile(lock); string(raw) != theirs(os.Getppid()) {
		t.Error("a live lock is gone")
	}
}

func FuzzCheck(f *testing.F) {
	line, _ := Entry{Seq: 1, Gate: "g", TS: "t"}.line(key)
	f.Add(append(slices.Clone(line), '\n'))
	f.Add([]byte(`{"seq":1,"gate":"g","files":{},"prev":null}` + "\n\n"))
	f.Add([]byte("{not-json"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := Check(raw, key, false)
		if err != nil {
			return
		}
		// What verifies goes on: an entry behind it verifies too.
		e := Entry{Seq: c.Seq + 1, Gate: "g", TS: "t"}
		if c.Entries > 0 {
			e.Prev = &c.LastHash
		}
		line, err := e.line(key)
		if err != nil {
			t.Fatal(err)
		}
		if c.Open {
			raw = append(slices.Clone(raw), '\n')
		}
		if after, err := Check(append(slices.Clone(raw), line...), key, false); err != nil || after.Entries != c.Entries+1 {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
