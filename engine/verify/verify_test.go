package verify_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"handoffd/engine/pipeline"
	"handoffd/engine/store"
	"handoffd/engine/verify"
)

// reference is a store as the reference tool writes one: its seal, no cover
// for content. It was made with JavaScript's own JSON.stringify.
func reference(t *testing.T) (store.Store, store.Location) {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/reference")); err != nil {
		t.Fatal(err)
	}
	return store.Store{Root: root}, store.Location{Project: "shop", Dir: "demo-1"}
}

func TestReferenceStore(t *testing.T) {
	s, loc := reference(t)
	r, err := verify.Session(context.Background(), s, loc)
	if err != nil || !r.OK || r.Turns != 3 {
		t.Fatalf("%+v %v", r, err)
	}
	for name, want := range map[string]string{
		store.ManifestName: "manifest tampered (sha mismatch)",
		store.TimelineName: "turn count drift",
		store.PayloadName:  "llm json does not parse",
	} {
		t.Run(name, func(t *testing.T) {
			s, loc := reference(t)
			path := filepath.Join(s.SessionDir(loc.Project, loc.Dir), name)
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			raw = bytes.Replace(raw, []byte(`"turn_count": 3`), []byte(`"turn_count": 2`), 1)
			if name == store.TimelineName {
				raw = append(raw, raw...)
			}
			if name == store.PayloadName {
				raw = raw[:len(raw)-2]
			}
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := verify.Session(context.Background(), s, loc)
			if err != nil || r.OK || !strings.Contains(r.Reason, want) {
				t.Fatalf("%+v %v", r, err)
			}
		})
	}
}

// built is a store with one session of ours.
func built(t *testing.T) (store.Store, store.Location, string) {
	t.Helper()
	root := t.TempDir()
	source := filepath.Join(root, "4f1c0a52-6d7e-4c1b-9a51-0b7f1f6c2d10.jsonl")
	raw, err := os.ReadFile("../harness/claude/testdata/work.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, append(raw, "{\"broken\n42\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	s := store.Store{Root: filepath.Join(root, "store")}
	r, err := pipeline.New(s, pipeline.Options{}).Build(context.Background(), pipeline.Request{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	return s, r.Location, source
}

// TestEveryByte changes one byte at many places of every file of a session;
// each change must be found. One in the section that people write is said to
// be theirs.
func TestEveryByte(t *testing.T) {
	s, loc, _ := built(t)
	dir := s.SessionDir(loc.Project, loc.Dir)
	changes := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		step := max(1, len(raw)/97)
		for at := 0; at < len(raw); at += step {
			changed := bytes.Clone(raw)
			changed[at] ^= 0x20
			if changed[at] == 0 || isSpace(raw[at]) || isSpace(changed[at]) {
				changed[at] = 'x'
			}
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				return err
			}
			changes++
			if r, err := verify.Session(context.Background(), s, loc); err == nil && r.OK && !strings.Contains(r.Line(), "edited by hand") {
				t.Errorf("%s: byte %d from %q to %q passes: %s", filepath.Base(path), at, raw[at], changed[at], r.Line())
			}
		}
		return os.WriteFile(path, raw, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := verify.Session(context.Background(), s, loc); err != nil || !r.OK {
		t.Fatalf("%+v %v", r, err)
	}
	t.Logf("%d changes", changes)
	if changes < 500 {
		t.Fatal("too few changes")
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func TestMissingFiles(t *testing.T) {
	s, loc, source := built(t)
	dir := s.SessionDir(loc.Project, loc.Dir)
	for _, name := range []string{store.TimelineName, store.ToolsName, store.BriefName, store.SummaryName, store.PayloadName, store.QuarantineRaw, store.KeysName} {
		path := filepath.Join(dir, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if r, err := verify.Session(context.Background(), s, loc); err != nil || r.OK {
			t.Errorf("%s removed: %+v %v", name, r, err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	r, err := verify.Session(context.Background(), s, loc)
	if err != nil || !r.OK || !strings.Contains(r.Line(), "gone") {
		t.Errorf("source gone: %s %v", r.Line(), err)
	}
}

// TestSealInJavaScript checks our seal by the reference's own rule.
func TestSealInJavaScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the seal is not checked by JavaScript itself")
	}
	s, loc, _ := built(t)
	const rule = `const m=JSON.parse(require('fs').readFileSync(process.argv[1],'utf8'));const h=m.manifest_sha256;delete m.manifest_sha256;` +
		`process.stdout.write(String(h===require('crypto').createHash('sha256').update(JSON.stringify(m)).digest('hex')))`
	out, err := exec.Command(node, "-e", rule, filepath.Join(s.SessionDir(loc.Project, loc.Dir), store.ManifestName)).CombinedOutput()
	if err != nil || string(out) != "true" {
		t.Fatalf("%s %v", out, err)
	}
}
