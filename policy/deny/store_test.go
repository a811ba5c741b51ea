package deny

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/policy/lockfile"
	"handoffd/policy/mutation"
)

func newStore(t *testing.T) Store {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, ".adlc"), 0o700); err != nil {
		t.Fatal(err)
	}
	return Store{Root: root, Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC) }, Host: "here"}
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

func get(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func listed(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func ensure(s Store, id string) Ensured { return s.Ensure(id, nil, nil, "", "local") }

func TestEnsure(t *testing.T) {
	const consumed = `{"session_id":"a","ticket_id":"T","content_hash":"h","status":"consumed","since":"x","host":"y","schema":1,"consumed_by":"b"}`
	for _, c := range []struct {
		name, before string // the marker of a before, "" for none
		ok           bool
		reason       string
		kept         bool // byte by byte
	}{
		{"11 first", "", true, ReasonMade, false},
		{"13 consumed", consumed, true, ReasonPresent, true},
		{"14 bound", strings.Replace(consumed, "consumed", "open", 1), true, ReasonPresent, true},
		{"15 corrupt", `{"session_id":`, true, ReasonMade, false},
		{"15 no object", `[]`, true, ReasonMade, false},
		{"15 empty", ` `, true, ReasonMade, false},
		{"16 another's", strings.Replace(consumed, `"a"`, `"b"`, 1), false, string(OtherSession), true},
		{"17 revoked", strings.Replace(consumed, `"consumed"`, `"revoked"`, 1), false, string(InvalidStatus), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			if c.before != "" {
				put(t, s.Marker("a"), c.before)
			}
			e := ensure(s, "a")
			if e.OK != c.ok || e.Reason != c.reason {
				t.Fatalf("%+v", e)
			}
			if c.kept && get(t, s.Marker("a")) != c.before {
				t.Error("the marker was rewritten")
			}
			if got := slices.Contains(s.ReadSentinel().Sessions, "a"); got != c.ok {
				t.Errorf("registered: %v", got)
			}
			if c.ok && !c.kept {
				m, outcome := s.Read("a")
				if outcome != OK || m.Status != mutation.Open || m.Since != "2026-01-02T03:04:05.678Z" || m.Ticket != nil {
					t.Errorf("%+v %s", m, outcome)
				}
				if want := `{"schema":1,"sessions":["a"]}` + "\n"; get(t, s.sentinel()) != want {
					t.Errorf("sentinel %q", get(t, s.sentinel()))
				}
			}
			if strings.HasPrefix(c.name, "15") {
				q := listed(t, filepath.Join(s.Denies(), "quarantine"))
				if len(q) != 1 || get(t, filepath.Join(s.Denies(), "quarantine", q[0])) != c.before {
					t.Errorf("quarantine %v", q)
				}
			}
		})
	}
	t.Run("12 blank binds", func(t *testing.T) {
		s := newStore(t)
		empty, blank := "", "  "
		if e := s.Ensure("a", &empty, &blank, "", "local"); !e.OK || e.Marker.Ticket != nil || e.Marker.Hash != nil {
			t.Errorf("%+v", e)
		}
		if !strings.Contains(get(t, s.Marker("a")), "\n  \"ticket_id\": null,\n  \"content_hash\": null,\n") {
			t.Error(get(t, s.Marker("a")))
		}
	})
	t.Run("18 unreadable", func(t *testing.T) {
		s := newStore(t)
		if err := os.MkdirAll(s.Marker("a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if e := ensure(s, "a"); e.OK || e.Reason != string(Unreadable) {
			t.Errorf("%+v", e)
		}
		if l := s.Load(); !slices.Equal(l.Broken, []Broken{{"a", "invalid:unreadable_marker"}}) {
			t.Errorf("%+v", l)
		}
	})
	t.Run("21 ids", func(t *testing.T) {
		s := newStore(t)
		for _, id := range []string{"", " a", "a/b", `a\b`, ".."} {
			if e := ensure(s, id); e.OK {
				t.Errorf("%q has a marker", id)
			}
		}
		if l := listed(t, s.Ledger()); len(l) != 0 {
			t.Errorf("%v", l)
		}
	})
}

var errStopped = errors.New("stopped")

func TestEnsureFails(t *testing.T) {
	for name, c := range map[string]struct {
		stop   func(s Store, op, path string) bool
		reason string
		marker bool
	}{
		"19 publish": {func(s Store, op, path string) bool { return op == "create" && path == s.Marker("a") }, "write_failed:", false},
		"19 write":   {func(s Store, op, path string) bool { return op == "write" && strings.HasPrefix(path, s.Marker("a")) }, "write_failed:", false},
		"20":         {func(s Store, op, path string) bool { return op == "rename" && path == s.sentinel() }, "sentinel_write_failed:", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			restore := safefile.Intercept(func(op, path string) error {
				if c.stop(s, op, path) {
					return errStopped
				}
				return nil
			})
			e := ensure(s, "a")
			restore()
			if e.OK || !strings.HasPrefix(e.Reason, c.reason) {
				t.Errorf("%+v", e)
			}
			if _, err := os.Lstat(s.sentinel()); err == nil {
				t.Error("there is a sentinel")
			}
			if left := listed(t, s.Denies()); (len(left) == 1) != c.marker {
				t.Errorf("left: %v", left)
			}
			// Trying again mends it.
			if e := ensure(s, "a"); !e.OK || !slices.Equal(s.ReadSentinel().Sessions, []string{"a"}) {
				t.Errorf("%+v", e)
			}
		})
	}
}

// Behaviour 28: everybody may ensure at once, and no registration is lost.
func TestEnsureRace(t *testing.T) {
	s := newStore(t)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if e := ensure(s, fmt.Sprint("s", i%8)); !e.OK {
				t.Errorf("%+v", e)
			}
		}()
	}
	wg.Wait()
	if n := len(s.ReadSentinel().Sessions); n != 8 {
		t.Errorf("%d sessions are registered", n)
	}
	for _, name := range listed(t, s.Denies()) {
		if !strings.HasSuffix(name, ".json") {
			t.Errorf("left behind: %s", name)
		}
	}
}

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name        string
		do          func(t *testing.T, s Store)
		unavailable string
		broken      []Broken
		markers     int
		hot         bool
	}{
		{"22 handoffs deleted", func(t *testing.T, s Store) { ensure(s, "a"); os.RemoveAll(s.Dir()) }, MissingStore, nil, 0, true},
		{"22 denies emptied", func(t *testing.T, s Store) { ensure(s, "a"); os.Remove(s.Marker("a")) }, EmptiedStore, nil, 0, true},
		{"23 one of two deleted", func(t *testing.T, s Store) { ensure(s, "a"); ensure(s, "b"); os.Remove(s.Marker("a")) }, "", []Broken{{"a", "invalid:missing_registered_marker"}}, 1, true},
		{"24 nothing", func(*testing.T, Store) {}, "", nil, 0, false},
		{"24 tickets only", func(t *testing.T, s Store) { put(t, filepath.Join(s.Ledger(), "tickets.json"), "{}") }, "", nil, 0, false},
		{"22 oldest sentinel", func(t *testing.T, s Store) { put(t, s.sentinel(), "1") }, MissingStore, nil, 0, true},
		{"25 no sentinel", func(t *testing.T, s Store) { ensure(s, "a"); os.Remove(s.sentinel()) }, "", nil, 1, true},
		{"26 legacy", func(t *testing.T, s Store) { ensure(s, "a"); os.Rename(s.sentinel(), s.legacySentinel()) }, "", nil, 1, true},
		{"corrupt sentinel", func(t *testing.T, s Store) { ensure(s, "a"); put(t, s.sentinel(), "{") }, "", nil, 1, true},
		{"no directory", func(t *testing.T, s Store) { put(t, s.Denies(), "") }, "readdir_failed:not_a_directory", nil, 0, true},
		{"consumed only", func(t *testing.T, s Store) {
			put(t, s.Marker("a"), `{"session_id":"a","status":"consumed"}`)
		}, "", nil, 1, false},
		{"temporary", func(t *testing.T, s Store) { ensure(s, "a"); put(t, s.Marker("a")+".12.0123456789abcdef.tmp", "{") }, "", nil, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			c.do(t, s)
			l := s.Load()
			if l.Unavailable != c.unavailable || !slices.Equal(l.Broken, c.broken) || len(l.Markers) != c.markers || l.Hot() != c.hot {
				t.Errorf("%+v, hot %v", l, l.Hot())
			}
			if c.name == "25 no sentinel" || c.name == "26 legacy" {
				if got := s.ReadSentinel(); got.Legacy || !slices.Equal(got.Sessions, []string{"a"}) {
					t.Errorf("%+v", got)
				}
			}
			if strings.HasPrefix(c.name, "24") && slices.Contains(listed(t, s.Ledger()), "handoffs") {
				t.Error("a clean tree was written to")
			}
		})
	}
	t.Run("23 for whom", func(t *testing.T) {
		s := newStore(t)
		ensure(s, "a")
		ensure(s, "b")
		os.Remove(s.Marker("a"))
		if got := mutation.Gate(s.Load().Input("c")); !slices.Contains(got, "D3:invalid_record:a") {
			t.Errorf("%v", got)
		}
		if got := mutation.Gate(s.Load().Input("a")); !slices.Contains(got, mutation.ReasonSticky) {
			t.Errorf("%v", got)
		}
	})
}

func TestSweep(t *testing.T) {
	s := newStore(t)
	ensure(s, "a")
	put(t, filepath.Join(s.Denies(), "notes.txt"), "n")
	put(t, filepath.Join(s.Denies(), "..x.json"), "n")
	put(t, filepath.Join(s.Denies(), "zz"), "n")
	put(t, s.Marker("s"), "{")
	restore := safefile.Intercept(func(op, path string) error {
		if op == "rename" && strings.Contains(path, "notes.txt") {
			return errStopped
		}
		return nil
	})
	moved, failed := s.Sweep()
	restore()
	if !slices.Equal(moved, []string{"..x.json", "zz"}) || !slices.Equal(failed, []string{"notes.txt"}) {
		t.Errorf("behaviour 27: moved %v, failed %v", moved, failed)
	}
	if get(t, s.Marker("s")) != "{" {
		t.Error("a broken marker was moved")
	}
}

func TestReentry(t *testing.T) {
	for _, c := range []struct {
		status  string
		outcome Outcome
		ever    bool
		want    string
	}{
		{mutation.Open, OK, false, ReasonOpenPersists},
		{mutation.Consumed, OK, false, ReasonConsumedPersists},
		{"", Missing, false, ""},
		{"", Missing, true, ReasonVanished},
		{"", Unreadable, false, "D1:unreadable_marker"},
	} {
		if got := Reentry(Marker{Status: c.status}, c.outcome, c.ever); got != c.want {
			t.Errorf("behaviour 29: %+v gives %q", c, got)
		}
	}
}

func TestUnregister(t *testing.T) {
	s := newStore(t)
	ensure(s, "a")
	ensure(s, "b")
	os.Remove(s.Marker("a"))
	if gone, err := s.Unregister([]string{"a", "b"}); err != nil || !slices.Equal(gone, []string{"a"}) {
		t.Fatal(gone, err)
	}
	if got := s.ReadSentinel().Sessions; !slices.Equal(got, []string{"b"}) {
		t.Errorf("%v", got)
	}
	os.RemoveAll(s.Dir())
	if _, err := s.Unregister([]string{"b"}); err != nil {
		t.Fatal(err)
	}
	if l := s.Load(); l.Unavailable != "" || s.ReadSentinel().There {
		t.Errorf("%+v", l)
	}
}

func TestProtects(t *testing.T) {
	s := newStore(t)
	ensure(s, "a")
	for name, to := range map[string]string{
		"file": s.Marker("a"), "dir": s.Denies(), "ledger": s.Ledger(), "nowhere": filepath.Join(s.Denies(), "new.json"), "plain": filepath.Join(s.Root, "src"), "sentinel": ".adlc/.deny-store",
	} {
		if err := os.Symlink(to, filepath.Join(s.Root, name)); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	put(t, filepath.Join(s.Root, "src", "x"), "")
	for target, want := range map[string]string{
		"file": ReasonSymlink, "dir": ReasonSymlink, "dir/a.json": ReasonSymlink, "dir/new.json": ReasonSymlink, "ledger": ReasonSymlink, "ledger/handoffs/x": ReasonSymlink,
		"nowhere": ReasonSymlink, "sentinel": ReasonSymlink, "plain": "", "plain/x": "", "src/x": "", "ledger/tickets.json": "", ".": "", "..": "", "/": "",
		s.Root: "", s.Marker("zz"): ReasonPath, ".adlc": ReasonPath, ".adlc/handoffs/x/../denies/a.json": ReasonPath,
	} {
		got := s.Protects(target, s.Root)
		if want == "" && got != "" || want != "" && got != want+target {
			t.Errorf("behaviours 49, 50, 53: %s gives %q, want %q", target, got, want)
		}
	}
}

func TestLock(t *testing.T) {
	const nobody = 1 << 22
	theirs := func(pid int, host string) string {
		return fmt.Sprintf(`{"schema":1,"session_id":"a","pid":%d,"started_at":"2026-01-02T03:04:05.678Z","host":%q,"nonce":"0123456789abcdef"}`, pid, host)
	}
	for _, c := range []struct {
		name, file string
		ok         bool
	}{
		{"73 none", "", true},
		{"73 live", theirs(os.Getppid(), "here"), false},
		{"73 dead", theirs(nobody, "here"), true},
		{"73 foreign", theirs(nobody, "there"), false},
		{"not understood", "x", false},
		{"left by a killed one of ours, whoever has its id now", strings.Replace(theirs(os.Getppid(), "here"), "{", `{"by":"handoffd",`, 1), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			if c.file != "" {
				put(t, s.LockPath("a"), c.file)
			}
			l, err := s.Lock(t.Context(), "a")
			if (err == nil) != c.ok || err != nil && !fault.Is(err, fault.Refused) {
				t.Fatal(err)
			}
			if err != nil {
				if get(t, s.LockPath("a")) != c.file {
					t.Error("a lock that is not ours was changed")
				}
				return
			}
			if got, ok := ParseLock([]byte(get(t, s.LockPath("a")))); !ok || got.PID != os.Getpid() || got.Session != "a" {
				t.Errorf("%+v", got)
			}
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
			if got := listed(t, s.Dir()); !slices.Equal(got, []string{".locks"}) {
				t.Errorf("left: %v", got)
			}
		})
	}
	t.Run("one at a time", func(t *testing.T) {
		s := newStore(t)
		put(t, s.LockPath("a"), theirs(nobody, "here"))
		var wg sync.WaitGroup
		var mu sync.Mutex
		held, most := 0, 0
		for range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				l, err := s.Lock(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				held++
				most = max(most, held)
				mu.Unlock()
				mu.Lock()
				held--
				mu.Unlock()
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		if most != 1 {
			t.Errorf("%d held it at once", most)
		}
	})
}

// A lock that changed hands between reading and reclaiming is put back
// (defect 6 of the published tool).
func TestReclaimRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	put(t, path, "live")
	if err := lockfile.Reclaim(path, []byte("dead")); !fault.Is(err, fault.Refused) {
		t.Fatal(err)
	}
	if get(t, path) != "live" {
		t.Error("the live lock is gone")
	}
	if err := lockfile.Reclaim(path, []byte("live")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the dead lock is still there")
	}
}

func FuzzMarker(f *testing.F) {
	f.Add([]byte(`{"session_id":"a","ticket_id":"T","content_hash":null,"status":"open","since":"x","host":"y","schema":1,"more":{"x":[1]}}`))
	f.Add([]byte(`{"session_id":"a","status":"consumed","content_kind":"capture","ticket_id":" "}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, outcome := ParseMarker(raw, "a")
		if outcome != OK {
			if m.Session != "" {
				t.Fatal("an error with a result")
			}
			return
		}
		once, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		again, outcome := ParseMarker(once, "a")
		twice, err := Encode(again)
		if err != nil || outcome != OK || !bytes.Equal(once, twice) {
			t.Fatalf("%s: %s, then %s (%s, %v)", raw, once, twice, outcome, err)
		}
	})
}

func FuzzSentinelAndLock(f *testing.F) {
	f.Add([]byte(`{"schema":1,"sessions":["b","a","a","../x"]}`))
	f.Add([]byte(`1`))
	f.Add([]byte(`{"pid":1,"host":"h","nonce":"n"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := ParseSentinel(raw)
		if !slices.IsSorted(got) || slices.ContainsFunc(got, func(id string) bool { return !mutation.SafeID(id) }) {
			t.Fatalf("%q", got)
		}
		if l, ok := ParseLock(raw); ok && l.PID <= 0 {
			t.Fatalf("%+v", l)
		}
	})
}
