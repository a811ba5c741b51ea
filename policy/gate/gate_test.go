package gate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/safefile"
	"handoffd/policy/continuation"
	"handoffd/policy/deny"
	"handoffd/policy/evidence"
	"handoffd/policy/pressure"
	"handoffd/policy/signed"
)

var key = []byte(strings.Repeat("k", 64))

// project is one with a ledger directory and an operator.
type project struct {
	continuation.Operator
	dir string
}

func newProject(t testing.TB) project {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, ".adlc"), 0o700); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC) }
	p := project{dir: root}
	p.Store = deny.Store{Root: root, Now: now, Host: "here"}
	p.Ledger = evidence.Ledger{Dir: p.Store.Ledger(), Host: "here", Now: now}
	p.Key = key
	return p
}

func depth(n float64) pressure.Observation { return pressure.Observation{Depth: &n} }

func (p project) call(session string, change func(*Call)) Verdict {
	c := Call{Store: p.Store, Ledger: p.Ledger, Session: session, Tool: Edit, Targets: []string{"src/a"}, Dir: p.dir, Host: "test", Program: "/bin/handoffctl"}
	if change != nil {
		change(&c)
	}
	return Decide(c)
}

func (p project) denied(t *testing.T, session string) {
	t.Helper()
	if e := p.Store.Ensure(session, nil, nil, "", "x"); !e.OK {
		t.Fatal(e)
	}
}

func (p project) bound(t *testing.T, session string) {
	t.Helper()
	if _, err := p.Write(context.Background(), continuation.WriteInput{Session: session, Ticket: "T1", Hash: "h1"}); err != nil {
		t.Fatal(err)
	}
}

func has(v Verdict, reason string) bool { return slices.Contains(v.Reasons, reason) }

func at(n float64) func(*Call) { return func(c *Call) { c.Pressure = depth(n) } }

func keyed(c *Call) { c.Key = key }

func shell(command string) func(*Call) {
	return func(c *Call) { c.Tool, c.Targets, c.Command = Shell, nil, command }
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	_ = filepath.WalkDir(dir, func(string, os.DirEntry, error) error { n++; return nil })
	return n
}

// TestDecide is by the numbers of the published behaviour.
func TestDecide(t *testing.T) {
	t.Run("30 and 56 clean", func(t *testing.T) {
		p := newProject(t)
		for _, n := range []float64{1, 10, 21} {
			if v := p.call("s1", at(n)); v.Deny || len(v.Reasons) != 0 || v.Ensured || entries(t, p.Store.Ledger()) != 1 {
				t.Errorf("%+v", v)
			}
		}
	})
	t.Run("31 and 56 depth", func(t *testing.T) {
		p := newProject(t)
		v := p.call("s1", func(c *Call) { c.Pressure, c.Ticket = depth(45), "T1" })
		m, outcome := p.Store.Read("s1")
		if !v.Deny || !v.Ensured || !v.EverDenied || !slices.Equal(v.Reasons, []string{"D2:denier_session", "D3:unauthorized_open:s1"}) || outcome != deny.OK || m.Host != "test" || deny.Text(m.Ticket) != "T1" {
			t.Errorf("%+v %+v", v, m)
		}
		if v := p.call("s1", at(1)); !v.Deny {
			t.Error("forgotten")
		}
		for _, word := range []string{"handoff summary (state, done, remaining, next, dead ends)", "/bin/handoffctl context bypass --session s1 --write", v.Reasons[0]} {
			if !strings.Contains(v.Recovery, word) {
				t.Errorf("no %q in %q", word, v.Recovery)
			}
		}
	})
	t.Run("43 no id", func(t *testing.T) {
		p := newProject(t)
		if v := p.call("", at(1)); v.Deny {
			t.Errorf("%+v", v)
		}
		if v := p.call("", at(30)); !has(v, "D0:invalid_session_id") || strings.Contains(v.Recovery, "bypass") {
			t.Errorf("%+v", v)
		}
		p.bound(t, "d")
		if v := p.call("", nil); !has(v, "D0:invalid_session_id") {
			t.Errorf("%+v", v)
		}
		// Defect 5: what is consumed denies nobody but its own session.
		if _, err := p.Resume(context.Background(), "s2", "d"); err != nil {
			t.Fatal(err)
		}
		if v := p.call("", nil); v.Deny {
			t.Errorf("%+v", v)
		}
	})
	t.Run("44 authorization", func(t *testing.T) {
		p := newProject(t)
		p.bound(t, "d")
		a := signed.Auth{Schema: 1, Ticket: deny.Bind("T1"), Hash: deny.Bind("h1"), Denier: "d", Consumer: "s2", Written: "x"}
		a.Sign(key)
		raw, _ := deny.Encode(a)
		if err := os.WriteFile(p.Store.Auth("s2"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if v := p.call("s2", nil); !v.Deny || !has(v, ReasonUnverifiable) {
			t.Errorf("%+v", v)
		}
		if v := p.call("s2", keyed); v.Deny {
			t.Errorf("%+v", v)
		}
		if v := p.call("s2", func(c *Call) { c.Key = []byte("other") }); !v.Deny || !has(v, ReasonUnverified) {
			t.Errorf("%+v", v)
		}
		// 42 and defect 10: the ledger is verified.
		if err := safefile.Append(filepath.Join(p.Store.Ledger(), "manifest.jsonl"), []byte("{not-json\n")); err != nil {
			t.Fatal(err)
		}
		if v := p.call("s2", keyed); !v.Deny {
			t.Errorf("%+v", v)
		}
	})
	t.Run("45 failed marker", func(t *testing.T) {
		p := newProject(t)
		restore := safefile.Intercept(func(op, path string) error { return errors.New("full") })
		v := p.call("s1", at(30))
		restore()
		if !v.Deny || !has(v, "D1:process_sticky") || !strings.HasPrefix(v.Reasons[0], ReasonEnsure) || !v.EverDenied {
			t.Errorf("%+v", v)
		}
		if v := p.call("s1", at(1)); v.Deny {
			t.Errorf("%+v", v)
		}
		if v := p.call("s1", func(c *Call) { c.EverDenied = true }); !has(v, deny.ReasonVanished) {
			t.Errorf("%+v", v)
		}
	})
	t.Run("46 once", func(t *testing.T) {
		p := newProject(t)
		if v := p.call("s1", func(c *Call) { c.Targets = []string{".adlc", ".adlc"} }); len(v.Reasons) != 1 {
			t.Errorf("%+v", v)
		}
	})
	t.Run("47 and 48 shell", func(t *testing.T) {
		p := newProject(t)
		if v := p.call("s1", shell("adlc handoff repair --write")); v.Deny {
			t.Errorf("%+v", v)
		}
		p.denied(t, "s1")
		if v := p.call("s1", shell("ls")); !has(v, ReasonShell) || has(v, ReasonCLI) {
			t.Errorf("%+v", v)
		}
		if v := p.call("s1", shell("adlc handoff repair --write")); !has(v, ReasonShell) || !has(v, ReasonCLI) {
			t.Errorf("%+v", v)
		}
		if v := p.call("s1", func(c *Call) { c.Tool = Read }); v.Deny {
			t.Errorf("%+v", v)
		}
	})
	t.Run("49 to 54 places", func(t *testing.T) {
		p := newProject(t)
		for target, reason := range map[string]string{".adlc/handoffs/denies/x.json": "path_protected:.adlc/handoffs/denies/x.json", ".adlc/.deny-store": "path_protected:.adlc/.deny-store", ".adlc/tickets.json": ""} {
			v := p.call("s1", func(c *Call) { c.Targets = []string{target} })
			if v.Deny != (reason != "") || v.Deny && !slices.Equal(v.Reasons, []string{reason}) {
				t.Errorf("%s: %+v", target, v)
			}
		}
		for command, reason := range map[string]string{"rm -rf .adlc": "path_protected_shell:.adlc", "ls .adlc": "", "git commit -m 'touch .adlc docs'": ""} {
			v := p.call("s1", shell(command))
			if v.Deny != (reason != "") || v.Deny && !slices.Equal(v.Reasons, []string{reason}) {
				t.Errorf("%s: %+v", command, v)
			}
		}
		if err := os.MkdirAll(p.Store.Denies(), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(p.Store.Dir(), filepath.Join(p.dir, "ln")); err != nil {
			t.Skip("no symbolic links here")
		}
		for command, hit := range map[string]bool{"rm -rf ln/denies": true, "echo x > ln/denies/a.json": true, "rm ln": false, "mv ln old": false, "ls ln/": false} {
			if v := p.call("s1", shell(command)); v.Deny != hit {
				t.Errorf("%s: %+v", command, v)
			}
		}
	})
	t.Run("59 no project", func(t *testing.T) {
		p := newProject(t)
		_ = os.Remove(p.Store.Ledger())
		if v := p.call("s1", at(99)); v.Deny || entries(t, p.dir) != 1 {
			t.Errorf("%+v", v)
		}
	})
	t.Run("61 and 62 recovery", func(t *testing.T) {
		p := newProject(t)
		p.denied(t, "s1")
		own := func(c *Call) { c.Own = func(path string) bool { return path == c.Program } }
		for command, deny := range map[string]bool{
			"pwd": false, "pwd ": true, "/bin/handoffctl context bypass --session s1 --write": false, "/bin/handoffctl context bypass --session s2 --write": true,
		} {
			if v := p.call("s1", func(c *Call) { shell(command)(c); own(c) }); v.Deny != deny {
				t.Errorf("%q: %+v", command, v)
			}
			// Defect 9: a shell that has the key does not clear itself.
			if v := p.call("s1", func(c *Call) { shell(command)(c); own(c); c.KeyInReach = true }); v.Deny != (command != "pwd") {
				t.Errorf("%q with the key in reach: %+v", command, v)
			}
		}
	})
	t.Run("83 captures", func(t *testing.T) {
		p := newProject(t)
		p.bound(t, "d")
		r, err := p.Continue(context.Background(), continuation.ContinueInput{Denier: "d", Successor: "s2"})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := os.ReadFile(r.Path)
		for text, reason := range map[string]string{
			string(body): "", strings.ReplaceAll(string(body), "\n", " \r\n"): "", strings.Replace(string(body), "Ticket", "tickeT", 1): "content_hash mismatch", string(body) + strings.Repeat("x", 70000): "oversize",
		} {
			if err := os.WriteFile(r.Path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, session := range []string{"s2", "s3"} {
				if v := p.call(session, nil); v.Deny != (reason != "") || v.Deny && v.Reasons[0] != ReasonTamper+"d:"+reason {
					t.Errorf("%s: %+v, want %q", session, v, reason)
				}
			}
		}
		_ = os.Remove(r.Path)
		// Defect 4: the grant is not used up in vain, and repair leads out.
		reason := "lost capture"
		if _, err := p.Bypass(context.Background(), "s3", &reason, ""); err != nil {
			t.Fatal(err)
		}
		if v := p.call("s3", keyed); !has(v, ReasonTamper+"d:missing") {
			t.Errorf("%+v", v)
		}
		if _, err := os.Stat(p.Store.Grant("s3")); err != nil {
			t.Error("the grant was used up")
		}
		if _, err := p.Repair(context.Background(), continuation.RepairInput{Session: "d", Ticket: "T1", Hash: "h1"}); err != nil {
			t.Fatal(err)
		}
		if v := p.call("s3", nil); v.Deny {
			t.Errorf("%+v", v)
		}
	})
}

func TestGrants(t *testing.T) {
	granted := func(t *testing.T) project {
		p := newProject(t)
		p.bound(t, "d")
		if _, err := p.Bypass(context.Background(), "s2", nil, ""); err != nil {
			t.Fatal(err)
		}
		return p
	}
	unspent := func(t *testing.T, p project) {
		t.Helper()
		if v := p.call("s2", keyed); v.Deny {
			t.Errorf("the grant was used up: %+v", v)
		}
	}
	t.Run("77 one call", func(t *testing.T) {
		p := granted(t)
		raw, _ := os.ReadFile(p.Store.Grant("s2"))
		if v := p.call("s2", keyed); v.Deny {
			t.Errorf("%+v", v)
		}
		if v := p.call("s2", keyed); !v.Deny {
			t.Errorf("%+v", v)
		}
		// Defect 9: put back within its time it is known.
		if err := os.WriteFile(p.Store.Grant("s2"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if v := p.call("s2", keyed); !v.Deny {
			t.Errorf("replayed: %+v", v)
		}
	})
	t.Run("78 not spent by what else denies", func(t *testing.T) {
		p := granted(t)
		if v := p.call("s2", func(c *Call) { c.Key, c.Targets = key, []string{".adlc/.deny-store"} }); !v.Deny {
			t.Errorf("%+v", v)
		}
		if v := p.call("s2", func(c *Call) { shell("rm -rf .adlc")(c); c.Key = key }); !v.Deny {
			t.Errorf("%+v", v)
		}
		unspent(t, p)
	})
	t.Run("not spent by what needs none", func(t *testing.T) {
		p := granted(t)
		if v := p.call("s2", func(c *Call) { c.Key, c.Tool = key, Read }); v.Deny {
			t.Errorf("%+v", v)
		}
		unspent(t, p)
	})
	t.Run("78 no key", func(t *testing.T) {
		p := granted(t)
		if v := p.call("s2", nil); !v.Deny {
			t.Errorf("%+v", v)
		}
		if v := p.call("s2", func(c *Call) { c.Key = []byte("x") }); !v.Deny {
			t.Errorf("%+v", v)
		}
		unspent(t, p)
	})
	t.Run("78 the host's verdict", func(t *testing.T) {
		p := granted(t)
		if v := p.call("s2", func(c *Call) { c.Key, c.Grant = key, jsontext.Value("null") }); !v.Deny {
			t.Errorf("%+v", v)
		}
		unspent(t, p)
		if v := p.call("s2", func(c *Call) { c.Grant = jsontext.Value(`{"sessionId":"s2"}`) }); v.Deny {
			t.Errorf("%+v", v)
		}
	})
	t.Run("40 store gone", func(t *testing.T) {
		p := granted(t)
		raw, _ := os.ReadFile(p.Store.Grant("s2"))
		_ = os.RemoveAll(p.Store.Denies())
		if v := p.call("s2", keyed); !has(v, "D0:deny_store_unavailable") {
			t.Errorf("%+v", v)
		}
		if now, _ := os.ReadFile(p.Store.Grant("s2")); string(now) != string(raw) {
			t.Error("the grant was used up")
		}
		reason := "store is gone"
		if _, err := p.Bypass(context.Background(), "s2", &reason, ""); err != nil {
			t.Fatal(err)
		}
		if v := p.call("s2", keyed); v.Deny {
			t.Errorf("%+v", v)
		}
	})
}

// A gate that does not work leaves open who did not ask for one, and closed
// who did, with the way out.
func TestFailed(t *testing.T) {
	p := newProject(t)
	c := Call{Store: p.Store, Session: "s1", Tool: Edit, Program: "/bin/handoffctl"}
	if v := Failed(c, errors.New("no luck")); v.Deny {
		t.Errorf("%+v", v)
	}
	if err := os.WriteFile(filepath.Join(p.Store.Ledger(), "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := Failed(c, errors.New("no luck"))
	if !v.Deny || !has(v, "gate_error:no luck") || !strings.Contains(v.Recovery, "/bin/handoffctl context bypass --session s1 --write") {
		t.Errorf("behaviour 58: %+v", v)
	}
}

// BenchmarkClean is what the gate costs a call that nothing is said against.
func BenchmarkClean(b *testing.B) {
	p := newProject(b)
	for b.Loop() {
		if p.call("s1", shell("go test ./...")).Deny {
			b.Fatal("denied")
		}
	}
}

// BenchmarkConsumed is the same with fifty consumed records.
func BenchmarkConsumed(b *testing.B) {
	p := newProject(b)
	for i := range 50 {
		id := "d" + strconv.Itoa(i)
		if e := p.Store.Ensure(id, deny.Bind("T"), deny.Bind("h"), "", "x"); !e.OK {
			b.Fatal(e)
		}
		raw, err := os.ReadFile(p.Store.Marker(id))
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p.Store.Marker(id), []byte(strings.Replace(string(raw), `"open"`, `"consumed"`, 1)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if v := p.call("s1", nil); v.Deny {
			b.Fatal(v)
		}
	}
}
