package signed

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"handoffd/policy/deny"
)

var key = []byte(strings.Repeat("k", 64))

var now = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

func ptr(s string) *string { return &s }

// The published tool signs these so.
func TestVectors(t *testing.T) {
	a := Auth{Schema: 1, Ticket: ptr("T1"), Hash: ptr("h1"), Denier: "d1", Consumer: "c1"}
	a.Sign(key)
	if want := "11529cbb87016e14a4b378414e1a6fcb9a2c406b1601eb80096806f201ad441d"; a.Sig != want {
		t.Errorf("authorization: %s", a.Sig)
	}
	for reason, want := range map[string]string{
		"":        "35a42faf263dd28d48806182aca882c38729285b0e1cf758ea57582d133d556e",
		"a<b & c": "353155cedc735a4ac9b17d2960f3f247bf01e299a1a3c2ee373e898cc36ddcb7",
	} {
		g, raw, err := NewGrant(key, "s1", deny.Bind(reason), now)
		if err != nil || g.Sig != want {
			t.Errorf("grant %q: %s, %v", reason, g.Sig, err)
		}
		if _, ok := ParseGrant(raw, key, "s1", now); !ok {
			t.Error("its own grant does not verify")
		}
		// As the published tool writes it, without what is ours.
		theirs, _ := deny.Encode(Grant{Schema: 2, Session: "s1", Reason: g.Reason, Written: g.Written, Sig: want})
		if _, ok := ParseGrant(theirs, key, "s1", now); !ok {
			t.Error("a grant of the published tool does not verify")
		}
	}
}

// Behaviour 78: what is not exactly right is no grant.
func TestGrantInert(t *testing.T) {
	g, raw, err := NewGrant(key, "s1", nil, now)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(change func(*Grant)) []byte {
		c := g
		change(&c)
		out, _ := deny.Encode(c)
		return out
	}
	for name, c := range map[string]struct {
		raw, key []byte
		session  string
		now      time.Time
		ok       bool
	}{
		"as it is":       {raw, key, "s1", now, true},
		"at the end":     {raw, key, "s1", now.Add(GrantTTL), true},
		"in the future":  {raw, key, "s1", now.Add(-time.Hour), true},
		"11 minutes old": {raw, key, "s1", now.Add(11 * time.Minute), false},
		"wrong key":      {raw, []byte("other"), "s1", now, false},
		"no key":         {raw, nil, "s1", now, false},
		"other session":  {raw, key, "s2", now, false},
		"edited time":    {edit(func(g *Grant) { g.Written = deny.Stamp(now.Add(time.Minute)) }), key, "s1", now, false},
		"edited reason":  {edit(func(g *Grant) { g.Reason = ptr("x") }), key, "s1", now, false},
		"edited nonce":   {edit(func(g *Grant) { g.Nonce = strings.Repeat("0", 16) }), key, "s1", now, false},
		"schema 1":       {edit(func(g *Grant) { g.Schema = 1 }), key, "s1", now, false},
		"no signature":   {edit(func(g *Grant) { g.Sig = "" }), key, "s1", now, false},
		"list":           {[]byte("[]"), key, "s1", now, false},
		"padded":         {append(bytes.Clone(raw), bytes.Repeat([]byte(" "), maxDocument)...), key, "s1", now, false},
	} {
		if _, ok := ParseGrant(c.raw, c.key, c.session, c.now); ok != c.ok {
			t.Errorf("%s: %v", name, ok)
		}
	}
	if _, _, err := NewGrant(key, "s1", ptr(strings.Repeat("x", maxDocument)), now); err == nil {
		t.Error("a grant that nobody could read was made")
	}
}

// A grant is used once: by one of many, and not again when it is put back
// (defect 9 of the published tool).
func TestClaim(t *testing.T) {
	s := deny.Store{Root: t.TempDir(), Now: func() time.Time { return now }, Host: "here"}
	if err := os.MkdirAll(s.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	_, raw, err := NewGrant(key, "s1", nil, now)
	if err != nil {
		t.Fatal(err)
	}
	put := func() {
		if err := os.WriteFile(s.Grant("s1"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put()
	read, bytes, ok := ReadGrant(s, key, "s1")
	if !ok {
		t.Fatal("the grant is not there")
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 12 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if Claim(s, read, bytes) {
				mu.Lock()
				won++
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d used it", won)
	}
	if _, err := os.Lstat(s.Grant("s1")); err == nil {
		t.Error("the file is still there")
	}
	put()
	if _, _, ok := ReadGrant(s, key, "s1"); ok || Claim(s, read, raw) {
		t.Error("the grant was used again")
	}
	// What is too old to matter is forgotten.
	later := s
	later.Now = func() time.Time { return now.Add(24 * time.Hour) }
	g2, raw2, _ := NewGrant(key, "s2", nil, later.Now())
	if !Claim(later, g2, raw2) {
		t.Error("the second grant is not usable")
	}
	if list, _ := os.ReadDir(s.Spent()); len(list) != 1 {
		t.Errorf("%d are remembered", len(list))
	}
}

// Links, pipes and large files are no authorization (defect 9).
func TestReadAuth(t *testing.T) {
	s := deny.Store{Root: t.TempDir(), Now: func() time.Time { return now }}
	if err := os.MkdirAll(s.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	a := Auth{Schema: 1, Ticket: ptr("T"), Hash: ptr("h"), Denier: "d", Consumer: "c", Written: "x"}
	a.Sign(key)
	raw, _ := deny.Encode(a)
	real := filepath.Join(s.Root, "real")
	for _, c := range []struct {
		name      string
		make      func() error
		ok, found bool
	}{
		{"none", func() error { return nil }, false, false},
		{"plain", func() error { return os.WriteFile(s.Auth("c"), raw, 0o600) }, true, true},
		{"link", func() error { _ = os.WriteFile(real, raw, 0o600); return os.Symlink(real, s.Auth("c")) }, false, true},
		{"directory", func() error { return os.Mkdir(s.Auth("c"), 0o700) }, false, true},
		{"large", func() error {
			return os.WriteFile(s.Auth("c"), append(bytes.Clone(raw), make([]byte, maxDocument)...), 0o600)
		}, false, true},
		{"another's", func() error {
			return os.WriteFile(s.Auth("c"), bytes.ReplaceAll(raw, []byte(`"c"`), []byte(`"x"`)), 0o600)
		}, false, true},
	} {
		if err := c.make(); err != nil {
			t.Fatal(c.name, err)
		}
		got, ok, found := ReadAuth(s, "c")
		if ok != c.ok || found != c.found || ok && !got.Verified(key) {
			t.Errorf("%s: %v %v", c.name, ok, found)
		}
		_ = os.Remove(s.Auth("c"))
	}
	if a.Verified(nil) || a.Verified([]byte("x")) {
		t.Error("another key verifies")
	}
}

func TestReadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
	}{{"secret\n", 0o600, "secret"}, {"se cret", 0o600, "se cret"}, {"a\r\n", 0o400, "a"}, {"", 0o600, ""}, {"secret", 0o644, ""}, {"secret", 0o620, ""}} {
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadKey("env", path)
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q of mode %o: %q, %v", c.text, c.mode, got, err)
		}
	}
	if got, err := ReadKey("env", ""); err != nil || string(got) != "env" {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzGrant(f *testing.F) {
	_, raw, _ := NewGrant(key, "s1", nil, now)
	f.Add(raw)
	f.Add([]byte(`{"schema":2,"session_id":"s1"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		g, ok := ParseGrant(in, key, "s1", now)
		if !ok {
			if g != (Grant{}) {
				t.Fatal("an error with a result")
			}
			return
		}
		// Nobody but the holder of the key makes one.
		if !bytes.Contains(in, []byte(g.Sig)) || g.Session != "s1" {
			t.Fatalf("%s", in)
		}
		if a, ok := ParseAuth(in, "s1"); ok && !a.Verified(key) && a.Consumer != "s1" {
			t.Fatal("another's")
		}
	})
}
