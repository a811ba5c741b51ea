package permission

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pretend is a file system in memory: paths to entries. It may be one on which
// case does not count.
type pretend struct {
	entries map[string]Entry
	folds   bool
}

// newPretend makes a disk of paths; "a -> b" is a link.
func newPretend(folds bool, paths ...string) *pretend {
	p := &pretend{map[string]Entry{"/": {ID: "/"}}, folds}
	for _, line := range paths {
		name, link, _ := strings.Cut(line, " -> ")
		for at := name; at != "/"; at = path.Dir(at) {
			if _, ok := p.entries[p.key(at)]; !ok || at == name {
				p.entries[p.key(at)] = Entry{ID: p.key(at)}
			}
		}
		if link != "" {
			p.entries[p.key(name)] = Entry{Link: link}
		}
	}
	return p
}

func (p *pretend) key(name string) string {
	if p.folds {
		return strings.ToLower(name)
	}
	return name
}

// Look implements Disk.
func (p *pretend) Look(name string) (Entry, error) {
	if e, ok := p.entries[p.key(name)]; ok {
		return e, nil
	}
	return Entry{}, fs.ErrNotExist
}

// Folds implements Disk.
func (p *pretend) Folds(string) bool { return p.folds }

func TestLocate(t *testing.T) {
	d := newPretend(false,
		"/ws/dir/file", "/ws/..name/x", "/secret/key", "/ws/out -> /secret", "/ws/rel -> ../secret", "/ws/in -> dir",
		"/ws/loop -> loop", "/ws/ping -> pong", "/ws/pong -> ping", "/ws/gone -> /nowhere/at/all", "/ws/root -> /",
		"/a -> /b", "/b -> /c", "/c -> /ws", "/ws/up -> ..", "/ws/self -> .", "/ws/far -> dir/../../secret/./key")
	for in, want := range map[string]string{
		"/ws/dir/file":            "/ws/dir/file",
		"/ws//dir/./file/":        "/ws/dir/file",
		"/ws/dir/..":              "/ws",
		"/../../ws":               "/ws",
		"/":                       "/",
		"/ws/..name/x":            "/ws/..name/x",
		"/ws/...":                 "/ws/...",
		"/ws/out/key":             "/secret/key",
		"/ws/out/..":              "/",
		"/ws/out/../ws/dir":       "/ws/dir",
		"/ws/rel":                 "/secret",
		"/ws/in/file":             "/ws/dir/file",
		"/ws/in/../x":             "/ws/x",
		"/a/dir":                  "/ws/dir",
		"/ws/gone/x":              "/nowhere/at/all/x",
		"/ws/root/secret":         "/secret",
		"/ws/up/secret":           "/secret",
		"/ws/self/self/self/dir":  "/ws/dir",
		"/ws/far":                 "/secret/key",
		"/ws/new/../../secret":    "/secret",
		"/ws/new/deep/../x":       "/ws/new/x",
		"/ws/dir/file/../../out":  "/secret",
		"/ws/new/../out/key":      "/secret/key",
		"/ws/loop":                "error",
		"/ws/ping/x":              "error",
		"/ws/\x00":                "error",
		"ws":                      "error",
		"":                        "error",
		"/ws/dir/file/x/../../..": "/ws",
	} {
		p, err := locate(d, in)
		got := "error"
		if err == nil {
			got = p.path()
		}
		if got != want {
			t.Errorf("%q is %s (%v), want %s", in, got, err, want)
		}
	}
}

func TestInside(t *testing.T) {
	for _, c := range []struct {
		disk       *pretend
		path, root string
		want       bool
	}{
		{newPretend(false, "/ws/a"), "/ws/a", "/ws", true},
		{newPretend(false, "/ws/a"), "/ws", "/ws", true},
		{newPretend(false, "/ws/a"), "/", "/ws", false},
		{newPretend(false, "/ws/a", "/wsx"), "/wsx", "/ws", false},
		{newPretend(false, "/ws/a"), "/ws/..a/b", "/ws", true},
		{newPretend(false, "/ws/a"), "/anything", "/", true},
		{newPretend(false, "/ws/a"), "/WS/a", "/ws", false},
		{newPretend(true, "/ws/a"), "/WS/A", "/ws", true},
		{newPretend(true, "/ws/a"), "/ws/x", "/WS", true},
		// Neither exists yet.
		{newPretend(false, "/ws"), "/ws/Secret/x", "/ws/secret", false},
		{newPretend(true, "/ws"), "/ws/Secret/x", "/WS/sECRET", true},
		{newPretend(false, "/ws"), "/ws/secret", "/ws/secret/deeper", false},
		{newPretend(false, "/ws"), "/ws/secret/deeper/x", "/ws/secret/deeper", true},
		// Another name of the same directory.
		{&pretend{map[string]Entry{"/": {ID: "/"}, "/m": {ID: "1"}, "/ws": {ID: "1"}}, false}, "/m/x", "/ws", true},
	} {
		p, err := locate(c.disk, c.path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := locate(c.disk, c.root)
		if err != nil {
			t.Fatal(err)
		}
		if got := inside(c.disk, p, r); got != c.want {
			t.Errorf("%s inside %s (folds %t): %t", c.path, c.root, c.disk.folds, got)
		}
	}
}

// On a disk without links, where a path is depends on its names alone.
func TestLocateModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "..", ".", "", "..a", "c"}), 0, 12).Draw(t, "names")
		have := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"/a", "/a/b", "/a/..a", "/b/c", "/c"}), rapid.ID[string]).Draw(t, "have")
		in := "/" + strings.Join(names, "/")
		p, err := locate(newPretend(false, have...), in)
		if err != nil || p.path() != path.Clean(in) {
			t.Fatalf("%s is %s, %v", in, p.path(), err)
		}
	})
}

// With links, nothing is inside a root that is not really below it: the model
// follows one step at a time.
func FuzzLocate(f *testing.F) {
	f.Add("/ws/out/../x", "../secret", "ws/dir")
	f.Add("/ws/out", "out", "/")
	f.Add("/ws/out/key", "/ws/./two", "../secret/..")
	f.Fuzz(func(t *testing.T, target, one, two string) {
		if one == "" || two == "" {
			return
		}
		d := newPretend(false, "/ws/dir/file", "/secret/key", "/ws/..x")
		d.entries["/ws/out"], d.entries["/ws/two"] = Entry{Link: one}, Entry{Link: two}
		p, err := locate(d, target)
		if err != nil {
			return
		}
		for i, name := range p.names {
			if i > 0 && (name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00")) {
				t.Fatalf("%q has the name %q", p.path(), name)
			}
			if at := (place{names: p.names[:i+1]}).path(); d.entries[at].Link != "" {
				t.Fatalf("%q still goes through the link %s", p.path(), at)
			}
		}
		again, err := locate(d, p.path())
		if err != nil || !slices.Equal(again.names, p.names) {
			t.Fatalf("%q is not where it is: %v, %v", p.path(), again.names, err)
		}
		for _, root := range []string{"/ws", "/secret"} {
			r, err := locate(d, root)
			if err != nil {
				t.Fatal(err)
			}
			below := p.path() == root || strings.HasPrefix(p.path(), root+"/")
			if inside(d, p, r) != below {
				t.Fatalf("%q inside %s: %t", p.path(), root, !below)
			}
		}
	})
}

func ExampleDecide() {
	p := Builtin("linux", "/home/ada/greeter", "/home/ada")
	fmt.Println(Decide(p, R0, ApprovedWorkspace).Reason)
	fmt.Println(Decide(p, R2, Unplaced).Verdict)
	// Output:
	// APPROVED_WORKSPACE read at R0
	// NEEDS_AUTH
}
