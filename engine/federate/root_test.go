package federate_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"handoffd/engine/fault"
	"handoffd/engine/federate"
	"handoffd/engine/pipeline"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// built makes a store with one session of three turns and returns its root.
func built(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "s1.jsonl")
	text := `{"role":"user","text":"count the carts","thread":"--shop--"}` + "\n" + `{"role":"assistant","text":"42"}` + "\n" + `{"role":"user","text":"thanks"}` + "\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := pipeline.New(store.Store{Root: filepath.Join(dir, "store")}, pipeline.Options{})
	if _, err := b.Build(context.Background(), pipeline.Request{Source: source}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "store")
}

var place = store.Location{Project: "shop", Dir: "s1"}

func open(t testing.TB, root string) *federate.Root {
	t.Helper()
	r, err := federate.Open(root, root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestSession(t *testing.T) {
	r := open(t, built(t))
	list, refused, err := r.Sessions()
	if err != nil || len(refused) != 0 || len(list) != 1 || list[0] != place {
		t.Fatalf("%v %v %v", list, refused, err)
	}
	s, err := r.Session(place)
	if err != nil || s.Decided != 3 || s.Manifest.Session != "s1" {
		t.Fatalf("%+v %v", s, err)
	}
	n := 0
	for turn, err := range s.Turns(true) {
		if err != nil || turn.Text == "" {
			t.Fatalf("%+v %v", turn, err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d turns", n)
	}
}

// forge changes the manifest and seals it again, as anybody can.
func forge(change func(*session.Manifest)) func(dir string) error {
	return func(dir string) error {
		m, _, err := store.ReadManifest(dir)
		if err != nil {
			return err
		}
		change(m)
		raw, err := session.Encode(m)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, store.ManifestName), raw, 0o600)
	}
}

func timelineOf(m *session.Manifest) *session.Artifact {
	for i := range m.Committed {
		if m.Committed[i].Name == store.TimelineName {
			return &m.Committed[i]
		}
	}
	return nil
}

// TestHostile does to a session what its owner may do, and expects a refusal
// in one line.
func TestHostile(t *testing.T) {
	replace := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	for _, c := range []struct {
		name string
		do   func(dir string) error
		want string
	}{
		{"no manifest", func(dir string) error { return os.Remove(filepath.Join(dir, store.ManifestName)) }, "no manifest"},
		{"manifest of nothing", replace(store.ManifestName, ""), "manifest"},
		{"manifest that is no JSON", replace(store.ManifestName, "<html>"), "manifest"},
		{"manifest that is deep", replace(store.ManifestName, strings.Repeat("[", 1<<20)), "manifest"},
		{"giant manifest", func(dir string) error { return os.Truncate(filepath.Join(dir, store.ManifestName), 9<<20) }, "more than"},
		{"manifest unsealed", replace(store.ManifestName, `{"session":"s1","manifest_sha256":"00"}`), "tampered"},
		{"no session", forge(func(m *session.Manifest) { m.Session = "" }), "names no session"},
		{"long session", forge(func(m *session.Manifest) { m.Session = strings.Repeat("x", 5000) }), "names no session"},
		{"no turns", forge(func(m *session.Manifest) { m.TurnCount = 0 }), "counts 0 turns"},
		{"negative turns", forge(func(m *session.Manifest) { m.TurnCount = -1 }), "counts -1 turns"},
		{"more turns", forge(func(m *session.Manifest) { m.TurnCount = 4 }), "drift"},
		{"more undecided than turns", forge(func(m *session.Manifest) { m.Provisional = 4 }), "undecided"},
		{"negative length", forge(func(m *session.Manifest) { timelineOf(m).Bytes = -1 }), "a timeline of -1 bytes"},
		{"giant length", forge(func(m *session.Manifest) { timelineOf(m).Bytes = 1 << 60 }), "a timeline of"},
		{"longer than it is", forge(func(m *session.Manifest) { timelineOf(m).Bytes += 10 }), "cut"},
		{"another hash", forge(func(m *session.Manifest) { timelineOf(m).SHA256 = strings.Repeat("0", 64) }), "altered"},
		{"giant timeline", func(dir string) error {
			if err := forge(func(m *session.Manifest) { m.Committed, m.Renders, m.Schema = nil, nil, 0 })(dir); err != nil {
				return err
			}
			return os.Truncate(filepath.Join(dir, store.TimelineName), 9<<30)
		}, "more than"},
		{"no timeline", func(dir string) error { return os.Remove(filepath.Join(dir, store.TimelineName)) }, "missing"},
		{"torn timeline", func(dir string) error {
			if err := forge(func(m *session.Manifest) { m.Committed, m.Renders, m.Schema = nil, nil, 0 })(dir); err != nil {
				return err
			}
			return os.Truncate(filepath.Join(dir, store.TimelineName), 70)
		}, "cut"},
		{"timeline of nonsense", func(dir string) error {
			if err := forge(func(m *session.Manifest) { m.Committed, m.Renders, m.Schema = nil, nil, 0 })(dir); err != nil {
				return err
			}
			return replace(store.TimelineName, "{}\n{}\n{}\n")(dir)
		}, "line 1"},
		{"manifest is a directory", func(dir string) error {
			path := filepath.Join(dir, store.ManifestName)
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}, "not a regular file"},
		{"manifest is a link", func(dir string) error {
			path := filepath.Join(dir, store.ManifestName)
			return errors.Join(os.Remove(path), os.Symlink(filepath.Join(dir, store.SummaryName), path))
		}, "not a regular file"},
		{"timeline is a link out", func(dir string) error {
			path := filepath.Join(dir, store.TimelineName)
			return errors.Join(os.Rename(path, filepath.Join(dir, "..", "..", "..", "..", "t")), os.Symlink("../../../../t", path))
		}, "not a regular file"},
		{"brief is a link", func(dir string) error {
			path := filepath.Join(dir, store.BriefName)
			return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path))
		}, "not a regular file"},
		{"giant brief", func(dir string) error { return os.Truncate(filepath.Join(dir, store.BriefName), 5<<20) }, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(c.name, "link") {
				t.Skip("links need a privilege here")
			}
			root := built(t)
			if err := c.do(filepath.Join(root, store.ProjectsDir, "shop", "s1")); err != nil {
				t.Fatal(err)
			}
			_, err := open(t, root).Session(place)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "nowhere"), file, dir} {
		if _, err := federate.Open(path, path); !fault.Is(err, fault.Missing) {
			t.Errorf("%s: %v", path, err)
		}
	}
	root := built(t)
	if r := open(t, root); !r.Same(root) || r.Same(dir) {
		t.Error("a store is not told from another")
	}
}

// FuzzTimeline reads timelines of any kind.
func FuzzTimeline(f *testing.F) {
	f.Add([]byte(`{"seq":0,"ts":"","class":"USER","text":"x"}` + "\n"))
	f.Add([]byte(`{"seq":0,"ts":"","class":"TOOL","text":"x","tool":{"phase":"call","name":"n"},"origin":"a/b#1@00"}` + "\n"))
	f.Add([]byte("\x00\xff\n\n"))
	f.Fuzz(func(t *testing.T, timeline []byte) {
		root := t.TempDir()
		dir := filepath.Join(root, store.ProjectsDir, "shop", "s1")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		m := &session.Manifest{Session: "s1", TurnCount: max(1, bytes.Count(timeline, []byte("\n")))}
		raw, err := session.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{store.ManifestName: raw, store.TimelineName: timeline} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := open(t, root).Session(place)
		if err != nil {
			return
		}
		h, err := federate.Trace(s.Turns(true))
		if err != nil || h.Len() != m.TurnCount {
			t.Fatalf("%d turns, %v", h.Len(), err)
		}
		if p := h.Compare(h); p.Missing != 0 || p.Own != 0 {
			t.Fatalf("it differs from itself: %+v", p)
		}
	})
}

// shell is another machine.
type shell struct {
	connect error
	archive func(w io.Writer) error
	argv    []string
	have    []string // programs
}

func (s *shell) Connect(string) error { return s.connect }

func (s *shell) Look(name string) (string, error) {
	for _, p := range s.have {
		if p == name {
			return "/usr/bin/" + name, nil
		}
	}
	return "", fault.New(fault.Missing, "%s is not installed", name)
}

func (s *shell) Stream(_ context.Context, argv []string, w io.Writer) (int, []byte, error) {
	s.argv = argv
	if err := s.archive(w); err != nil {
		return 0, nil, err
	}
	return 0, nil, nil
}

func TestFetch(t *testing.T) {
	pack := func(files map[string]string) func(io.Writer) error {
		return func(w io.Writer) error {
			a := tar.NewWriter(w)
			for name, text := range files {
				h := &tar.Header{Name: name, Size: int64(len(text)), Mode: 0o4777, Typeflag: tar.TypeReg}
				if target, link := strings.CutPrefix(text, "-> "); link {
					h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
				}
				if err := a.WriteHeader(h); err != nil {
					return err
				}
				if h.Size > 0 {
					if _, err := io.WriteString(a, text); err != nil {
						return err
					}
				}
			}
			return a.Close()
		}
	}
	s := &shell{have: []string{"ssh"}, archive: pack(map[string]string{
		"projects/p/s/manifest.json":      "m",
		"./projects/p/s/timeline.jsonl":   "t",
		"projects/p/s/TOOLS.md":           "not wanted",
		"projects/../../s/manifest.json":  "up",
		"/projects/p/s2/manifest.json":    "absolute",
		"projects/p/../manifest.json":     "up",
		"projects/.p/s/manifest.json":     "hidden",
		"projects/p/link":                 "-> /etc",
		"projects/p/link/manifest.json":   "through a link",
		"elsewhere/p/s/manifest.json":     "x",
		"projects/p/s/deep/manifest.json": "x",
	})}
	got, err := federate.Fetch(context.Background(), "ssh://ada@laptop/~/it's here", s)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Remove()
	var files []string
	err = filepath.WalkDir(got.Dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(got.Dir, path)
			files = append(files, filepath.ToSlash(rel))
			if info, _ := e.Info(); runtime.GOOS != "windows" && info.Mode() != 0o600 {
				t.Errorf("%s has mode %v", rel, info.Mode())
			}
		}
		return err
	})
	if want := "projects/p/link/manifest.json projects/p/s/manifest.json projects/p/s/timeline.jsonl"; err != nil || strings.Join(files, " ") != want {
		t.Errorf("%v %v", files, err)
	}
	if want := `/usr/bin/ssh -T -o ConnectTimeout=20 -- ada@laptop tar -C './it'\''s here' -cf - projects`; strings.Join(s.argv, " ") != want {
		t.Errorf("%q", s.argv)
	}
	for _, root := range []string{
		"ssh://", "ssh://host", "ssh://host/", "ssh:///path", "ssh://-oProxyCommand=x/y", "ssh://a b/c", "ssh://h/%00", "ssh://h/x%0ay",
		"ssh://u:p@h/x", "ssh://-u@h/x", "ssh://h:x/y", "ssh://h/x?y", "ssh://h/~/-x", "ssh://$(x)/y", "ssh://h;x/y",
	} {
		if got, err := federate.Fetch(context.Background(), root, s); !fault.Is(err, fault.Usage) {
			got.Remove()
			t.Errorf("%s: %v", root, err)
		}
	}
	for name, s := range map[string]*shell{
		"forbidden":   {have: []string{"ssh"}, connect: fault.New(fault.Denied, "no")},
		"without ssh": {},
		"broken off": {have: []string{"ssh"}, archive: func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Repeat("x", 700))
			return err
		}},
		"failing": {have: []string{"ssh", "rsync"}, archive: func(io.Writer) error { return errors.New("no route") }},
	} {
		if got, err := federate.Fetch(context.Background(), "ssh://h/x", s); err == nil {
			got.Remove()
			t.Errorf("%s: fetched", name)
		}
	}
}
