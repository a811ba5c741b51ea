package continuation

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"handoffd/engine/fault"
	"handoffd/policy/capture"
	"handoffd/policy/deny"
	"handoffd/policy/evidence"
	"handoffd/policy/mutation"
)

var key = []byte(strings.Repeat("k", 64))

type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func newOperator(t *testing.T) Operator {
	t.Helper()
	return operatorIn(t.TempDir())
}

func operatorIn(root string) Operator {
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC) }
	o := Operator{Store: deny.Store{Root: root, Now: now, Host: "here"}, Key: key}
	o.Ledger = evidence.Ledger{Dir: o.Store.Ledger(), Host: "here", Now: now}
	o.Narrative = func(path string) (capture.Narrative, error) {
		raw, err := os.ReadFile(path)
		n, ok := capture.Lines(raw)
		if err == nil && !ok {
			err = errors.New("no object")
		}
		if err != nil {
			return n, capture.NoTranscript(path, err)
		}
		return n, nil
	}
	return o
}

func put(t tester, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files returns every file below .adlc with its text, but for the kernel's
// locks.
func files(t tester, o Operator) map[string]string {
	t.Helper()
	out := map[string]string{}
	_ = filepath.WalkDir(o.Store.Ledger(), func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(p, ".locks") {
			raw, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(o.Store.Ledger(), p)
			out[filepath.ToSlash(rel)] = string(raw)
		}
		return nil
	})
	return out
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || w != v {
			return false
		}
	}
	return true
}

func write(t tester, o Operator, session, ticket, hash string) WriteResult {
	t.Helper()
	r, err := o.Write(ctx, WriteInput{Session: session, Ticket: ticket, Hash: hash})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func marker(t tester, o Operator, session string) deny.Marker {
	t.Helper()
	m, outcome := o.Store.Read(session)
	if outcome != deny.OK {
		t.Fatalf("marker of %s: %s", session, outcome)
	}
	return m
}

func gates(t tester, o Operator) []string {
	t.Helper()
	var out []string
	for _, e := range o.Ledger.Recent() {
		out = append(out, strings.TrimPrefix(e.Gate, "context-handoff-"))
	}
	return out
}

func wants(t *testing.T, err error, k fault.Kind) {
	t.Helper()
	if !fault.Is(err, k) {
		t.Errorf("%v, want %v", err, k)
	}
}

func TestVectors(t *testing.T) {
	if got := DefaultHash("s1", deny.Bind("T1"), "local"); got != "a8465d4043c4a60574a8a2ee405e3a2d8d71dfbd935dc21830547bccfd3ddc16" {
		t.Error(got)
	}
	if got := DefaultHash("s1", nil, "local"); got != "bcd5add1d2f6cbca9f9f314c9eb88a320e8784dcd4bb9b24c1cc1108b5bb3493" {
		t.Error(got)
	}
}

func TestWrite(t *testing.T) {
	t.Run("65 dry run", func(t *testing.T) {
		o := newOperator(t)
		o.DryRun, o.Key = true, nil
		r := write(t, o, "s1", "T1", "")
		if b, ok := r.Deny.(Bound); !ok || b.Status != mutation.Open || len(files(t, o)) != 0 {
			t.Errorf("%+v %v", r, files(t, o))
		}
		if _, err := os.Lstat(o.Store.Ledger()); err == nil {
			t.Error("a ledger was made")
		}
	})
	t.Run("66 with the key", func(t *testing.T) {
		o := newOperator(t)
		r := write(t, o, "s1", "T1", "")
		m := marker(t, o, "s1")
		if m.Status != mutation.Open || deny.Text(m.Hash) != r.Final.Hash || r.Evidence.Seq != 1 || r.Deny.(Rebound) != (Rebound{true, deny.ReasonMade, false}) {
			t.Errorf("%+v %+v", m, r)
		}
	})
	t.Run("67 no key", func(t *testing.T) {
		for _, k := range [][]byte{nil, {}} {
			o := newOperator(t)
			o.Key = k
			_, err := o.Write(ctx, WriteInput{Session: "s1", Ticket: "T1"})
			wants(t, err, fault.Operational)
			if len(files(t, o)) != 0 {
				t.Errorf("%v", files(t, o))
			}
		}
	})
	t.Run("68 again", func(t *testing.T) {
		o := newOperator(t)
		write(t, o, "s1", "T1", "h1")
		since := marker(t, o, "s1").Since
		o.Store.Now = func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }
		r := write(t, o, "s1", "T1", "h2")
		if d := r.Deny.(Rebound); !d.Rebound || d.Reason != deny.ReasonPresent || marker(t, o, "s1").Since != since {
			t.Errorf("%+v", d)
		}
		if _, err := o.Resume(ctx, "s2", "s1"); err != nil {
			t.Error(err)
		}
	})
	t.Run("69 not unbound, not consumed", func(t *testing.T) {
		o := newOperator(t)
		write(t, o, "s1", "T1", "h1")
		before := files(t, o)
		_, err := o.Write(ctx, WriteInput{Session: "s1"})
		wants(t, err, fault.Operational)
		if !equal(files(t, o), before) {
			t.Error("something changed")
		}
		if _, err := o.Resume(ctx, "s2", "s1"); err != nil {
			t.Fatal(err)
		}
		before = files(t, o)
		_, err = o.Write(ctx, WriteInput{Session: "s1", Ticket: "T1"})
		wants(t, err, fault.Operational)
		if !equal(files(t, o), before) {
			t.Error("something changed")
		}
	})
	t.Run("70 ledger damaged", func(t *testing.T) {
		o := newOperator(t)
		write(t, o, "s1", "T1", "h1")
		put(t, filepath.Join(o.Store.Ledger(), "manifest.jsonl"), "{not-json")
		before := files(t, o)
		_, err := o.Write(ctx, WriteInput{Session: "s1", Ticket: "T1", Hash: "h2"})
		wants(t, err, fault.Operational)
		if !equal(files(t, o), before) {
			t.Error("something changed")
		}
		_, err = o.Write(ctx, WriteInput{Session: "s9", Ticket: "T1"})
		wants(t, err, fault.Operational)
		if _, ok := files(t, o)["handoffs/finals/s9.json"]; ok || marker(t, o, "s9").Status != mutation.Open {
			t.Errorf("%v", files(t, o))
		}
	})
	t.Run("71 a directory in the way", func(t *testing.T) {
		o := newOperator(t)
		write(t, o, "s1", "T1", "h1")
		_ = os.Remove(o.Store.Final("s1"))
		_ = os.Mkdir(o.Store.Final("s1"), 0o700)
		_, err := o.Write(ctx, WriteInput{Session: "s1", Ticket: "T1", Hash: "h2"})
		wants(t, err, fault.Operational)
		if deny.Text(marker(t, o, "s1").Hash) != "h1" {
			t.Error("rebound")
		}
	})
}

func TestResume(t *testing.T) {
	o := newOperator(t)
	write(t, o, "s1", "T1", "h1")
	_, err := o.Resume(ctx, "s1", "s1")
	wants(t, err, fault.Refused)
	r, err := o.Resume(ctx, "s2", "s1")
	if err != nil {
		t.Fatal(err)
	}
	m := marker(t, o, "s1")
	if m.Status != mutation.Consumed || m.ConsumedBy != "s2" || !r.Persisted || !r.Auth.Verified(key) {
		t.Errorf("behaviour 72: %+v %+v", m, r)
	}
	_, err = o.Resume(ctx, "s3", "s1")
	wants(t, err, fault.Operational)

	// A session whose work it took over is no hindrance to take over more; if
	// that fails, what it had stays (defect 10).
	write(t, o, "d2", "T1", "h2")
	put(t, filepath.Join(o.Store.Ledger(), "manifest.jsonl"), "{not-json")
	before := files(t, o)
	_, err = o.Resume(ctx, "s2", "d2")
	wants(t, err, fault.Operational)
	if !equal(files(t, o), before) {
		t.Error("defect 10: the authorization of before is gone")
	}
	_, err = o.Resume(ctx, "s2", "nobody")
	wants(t, err, fault.Operational)
}

// Behaviour 72, of many who want to go on only one does.
func TestResumeRace(t *testing.T) {
	o := newOperator(t)
	write(t, o, "s1", "T1", "h1")
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, errs[i] = o.Resume(ctx, "c"+string(rune('a'+i)), "s1")
		}()
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		}
	}
	auths, _ := filepath.Glob(filepath.Join(o.Store.Dir(), "*.resume-auth.json"))
	locks, _ := filepath.Glob(filepath.Join(o.Store.Dir(), "*.lock"))
	if won != 1 || len(auths) != 1 || len(locks) != 0 || !slices.Equal(gates(t, o), []string{"write", "resume"}) {
		t.Errorf("%d went on, %v, %v, %v", won, auths, locks, gates(t, o))
	}
}

func TestBypass(t *testing.T) {
	o := newOperator(t)
	empty, reason := " ", "stale store"
	_, err := o.Bypass(ctx, "s1", &empty, "")
	wants(t, err, fault.Operational)
	r, err := o.Bypass(ctx, "s1", &reason, "")
	if err != nil || r.Bound || !r.Foreign || r.Grant.Nonce == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	r, err = o.Bypass(ctx, "s1", nil, "T1")
	if err != nil || !r.Bound || r.Foreign {
		t.Fatalf("%+v, %v", r, err)
	}
	put(t, filepath.Join(o.Store.Ledger(), "manifest.jsonl"), "{not-json")
	before := files(t, o)
	_, err = o.Bypass(ctx, "s1", nil, "")
	wants(t, err, fault.Operational)
	_, err2 := o.Bypass(ctx, "s2", nil, "")
	wants(t, err2, fault.Operational)
	if !equal(files(t, o), before) {
		t.Errorf("behaviour 79: %v", files(t, o))
	}
	long := strings.Repeat("x", 5000)
	_, err = o.Bypass(ctx, "s1", &long, "")
	wants(t, err, fault.Operational)
}

func TestRepair(t *testing.T) {
	repair := func(o Operator, session string) (RepairResult, error) {
		return o.Repair(ctx, RepairInput{Session: session, Ticket: "T2", Hash: "h9"})
	}
	t.Run("75 open", func(t *testing.T) {
		o := newOperator(t)
		o.Store.Ensure("s1", nil, nil, "", "local")
		since := marker(t, o, "s1").Since
		if r, err := repair(o, "s1"); err != nil || r.Restored {
			t.Fatal(r, err)
		}
		if m := marker(t, o, "s1"); deny.Text(m.Ticket) != "T2" || deny.Text(m.Hash) != "h9" || m.Since != since {
			t.Errorf("%+v", m)
		}
	})
	t.Run("75 nobody", func(t *testing.T) {
		o := newOperator(t)
		_, err := repair(o, "s1")
		wants(t, err, fault.Operational)
		if len(files(t, o)) != 0 {
			t.Errorf("%v", files(t, o))
		}
	})
	t.Run("75 consumed", func(t *testing.T) {
		o := newOperator(t)
		write(t, o, "s1", "T1", "h1")
		_, _ = o.Resume(ctx, "s2", "s1")
		before := files(t, o)
		_, err := repair(o, "s1")
		wants(t, err, fault.Operational)
		if !equal(files(t, o), before) {
			t.Error("something changed")
		}
	})
	t.Run("84 an open capture", func(t *testing.T) {
		o := newOperator(t)
		o.Store.Ensure("s1", deny.Bind("T1"), deny.Bind("h"), mutation.KindCapture, "local")
		if _, err := repair(o, "s1"); err != nil || marker(t, o, "s1").Kind != "" {
			t.Error(err)
		}
	})
	// Every state has a verb that leads out of it (defects 4 and 5).
	t.Run("lost capture of a consumed record", func(t *testing.T) {
		o := newOperator(t)
		write(t, o, "s1", "T1", "h1")
		if _, err := o.Continue(ctx, ContinueInput{Denier: "s1", Successor: "s2"}); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(o.Store.Capture("s1"))
		if _, err := repair(o, "s1"); err != nil {
			t.Fatal(err)
		}
		if m := marker(t, o, "s1"); m.Status != mutation.Consumed || m.Kind != "" {
			t.Errorf("%+v", m)
		}
	})
	t.Run("registered and gone", func(t *testing.T) {
		o := newOperator(t)
		o.Store.Ensure("s1", nil, nil, "", "local")
		_ = os.RemoveAll(o.Store.Dir())
		if r, err := repair(o, "s1"); err != nil || !r.Restored {
			t.Fatal(r, err)
		}
		if m := marker(t, o, "s1"); m.Status != mutation.Open || o.Store.Load().Unavailable != "" {
			t.Errorf("%+v", m)
		}
	})
	for name, text := range map[string]string{"corrupt": "{", "somebody else's": `{"session_id":"x","status":"open"}`, "revoked": `{"session_id":"s1","status":"revoked"}`} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t)
			put(t, o.Store.Marker("s1"), text)
			if r, err := repair(o, "s1"); err != nil || !r.Restored {
				t.Fatal(r, err)
			}
			kept := false
			for _, v := range files(t, o) {
				kept = kept || v == text
			}
			if !kept || len(o.Store.Load().Broken) != 0 {
				t.Errorf("%v", files(t, o))
			}
		})
	}
	t.Run("stale sentinel", func(t *testing.T) {
		o := newOperator(t)
		put(t, filepath.Join(o.Store.Ledger(), ".deny-store"), `{"schema":1,"sessions":["gone"]}`)
		if o.Store.Load().Unavailable == "" {
			t.Fatal("it is not stale")
		}
		if r, err := o.Forget(ctx, ""); err != nil || !slices.Equal(r.Cleared, []string{"gone"}) {
			t.Fatal(r, err)
		}
		if l := o.Store.Load(); l.Hot() || o.Ledger.Verify(key) != nil {
			t.Errorf("%+v", l)
		}
		_, err := o.Forget(ctx, "")
		wants(t, err, fault.Operational)
	})
	t.Run("oldest sentinel", func(t *testing.T) {
		o := newOperator(t)
		put(t, filepath.Join(o.Store.Dir(), ".deny-store"), `1`)
		if _, err := o.Forget(ctx, ""); err != nil || o.Store.Load().Hot() {
			t.Error(err)
		}
	})
	t.Run("torn ledger", func(t *testing.T) {
		o := newOperator(t)
		write(t, o, "s1", "T1", "h1")
		path := filepath.Join(o.Store.Ledger(), "manifest.jsonl")
		raw, _ := os.ReadFile(path)
		put(t, path, string(raw)+`{"seq":2,`)
		if _, err := repair(o, "s1"); err == nil {
			t.Fatal("it is not torn")
		}
		if r, err := o.MendLedger(ctx); err != nil || r.Torn == "" {
			t.Fatal(r, err)
		}
		if _, err := repair(o, "s1"); err != nil {
			t.Error(err)
		}
	})
}

func TestUnlock(t *testing.T) {
	const theirs = `{"schema":1,"session_id":"s1","pid":PID,"started_at":"t","host":"HOST","nonce":"0123456789abcdef"}`
	in := UnlockInput{Session: "s1", Started: "t", Host: "here", Nonce: "0123456789abcdef", PID: 1 << 22}
	for _, c := range []struct {
		name, pid, host string
		change          func(*UnlockInput)
		kind            fault.Kind
		ok              bool
	}{
		{"76 dead", "4194304", "here", nil, 0, true},
		{"76 live", "1", "here", func(i *UnlockInput) { i.PID = 1 }, fault.Refused, false},
		{"76 nonce", "4194304", "here", func(i *UnlockInput) { i.Nonce = "x" }, fault.Refused, false},
		{"76 foreign", "4194304", "there", func(i *UnlockInput) { i.Host = "there" }, fault.Refused, false},
		{"76 incomplete", "4194304", "here", func(i *UnlockInput) { i.Nonce = "" }, fault.Operational, false},
		{"76 none", "", "", nil, fault.Operational, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOperator(t)
			o.Key = nil
			text := strings.NewReplacer("PID", c.pid, "HOST", c.host).Replace(theirs)
			if c.pid != "" {
				put(t, o.Store.LockPath("s1"), text)
			}
			in := in
			if c.change != nil {
				c.change(&in)
			}
			r, err := o.Unlock(ctx, in)
			if (err == nil) != c.ok || r.Removed != c.ok {
				t.Fatal(r, err)
			}
			if !c.ok {
				wants(t, err, c.kind)
				if raw, err := os.ReadFile(o.Store.LockPath("s1")); c.pid != "" && (err != nil || string(raw) != text) {
					t.Error("the lock changed")
				}
			} else if _, err := os.Lstat(o.Store.LockPath("s1")); err == nil {
				t.Error("the lock is still there")
			}
		})
	}
}
