package opencode

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
)

const treeSession = "testdata/tree/storage/session/abc/ses_t.json"

func treeSamples(t testing.TB) []harnesstest.Sample {
	return harnesstest.Exports(t, Tree{}, filepath.FromSlash(treeSession))
}

func TestTree(t *testing.T) {
	harnesstest.Run(t, Tree{}, treeSamples(t)...)
	harnesstest.Golden(t, Tree{}, treeSamples(t)...)
}

func TestExport(t *testing.T) {
	samples := harnesstest.Samples(t, "export*.json")
	harnesstest.Run(t, Export{}, samples...)
	harnesstest.Golden(t, Export{}, samples...)
}

func FuzzExport(f *testing.F) {
	harnesstest.Fuzz(f, Export{}, harnesstest.Samples(f, "export*.json")...)
}

// copied is the tree in a directory where it can be damaged.
func copied(t *testing.T) (session, storage string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/tree")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "storage", "session", "abc", "ses_t.json"), filepath.Join(dir, "storage")
}

// Files that a full disk or a crash emptied cost only themselves, and their
// content is read when it is there again (anomalyco/opencode#7607, #10904,
// #9673).
func TestDamagedFiles(t *testing.T) {
	read := func(path string) string {
		t.Helper()
		r := harnesstest.Read(Tree{}, harness.Env{}, harnesstest.Sample{Data: harnesstest.Export(t, Tree{}, path, "ses_t"), Path: path})
		var list []string
		for _, one := range r.All() {
			list = append(list, one.ID)
		}
		return strings.Join(list, " ")
	}
	whole, _ := copied(t)
	all := read(whole)
	for _, c := range []struct{ file, costs string }{
		{"part/msg_t1/prt_t1.json", "prt_t1"},
		{"part/msg_t2/prt_t3.json", "prt_t3#call prt_t3#result"},
		{"message/ses_t/msg_t1.json", "prt_t1"},
		{"message/ses_t/msg_t2.json", "prt_t2 prt_t3#call prt_t3#result prt_t4"},
	} {
		for name, damage := range map[string][]byte{
			"empty": {}, "NUL": make([]byte, 413), "many NUL": make([]byte, 1300_000), "half": []byte(`{"id":"x","ro`),
			"array": []byte("[]"), "text": []byte("\xff\xfe"),
		} {
			session, storage := copied(t)
			path := filepath.Join(storage, filepath.FromSlash(c.file))
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			key, _, _ := Tree{}.Key(session, "ses_t")
			if err := os.WriteFile(path, damage, 0o600); err != nil {
				t.Fatal(err)
			}
			want := strings.Join(strings.Fields(strings.Replace(all, c.costs, "", 1)), " ")
			if got := read(session); got != want {
				t.Errorf("%s %s: %s, want %s", c.file, name, got, want)
			}
			damagedKey, _, _ := Tree{}.Key(session, "ses_t")
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
			healed, _, _ := Tree{}.Key(session, "ses_t")
			if got := read(session); got != all || damagedKey == key || healed == damagedKey {
				t.Errorf("%s %s, healed: %s with keys %s %s %s", c.file, name, got, key, damagedKey, healed)
			}
		}
	}
}

// A session's own file that is damaged is no session, and says so in one line;
// one that is gone is missing.
func TestDamagedSession(t *testing.T) {
	session, _ := copied(t)
	var s harnesstest.Spool
	for _, damage := range [][]byte{{}, make([]byte, 413), []byte("{")} {
		if err := os.WriteFile(session, damage, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (Tree{}).Export(session, "ses_t", &s); !fault.Is(err, fault.NoTurns) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d bytes: %v", len(damage), err)
		}
	}
	if err := os.Remove(session); err != nil {
		t.Fatal(err)
	}
	if err := (Tree{}).Export(session, "ses_t", &s); !fault.Is(err, fault.SourceMissing) {
		t.Errorf("removed: %v", err)
	}
	if _, ok, err := (Tree{}).Key(session, "ses_t"); ok || err != nil {
		t.Errorf("removed: %v %v", ok, err)
	}
}

// A message has the same turns, ids and all, in the tree, in the database that
// it was moved to and in an export.
func TestOneDecoder(t *testing.T) {
	tree := harnesstest.Read(Tree{}, harness.Env{}, treeSamples(t)[0]).All()
	export := harnesstest.Read(Export{}, harness.Env{}, harnesstest.Samples(t, "export.json")[0]).All()
	if len(tree) == 0 || len(tree) != len(export) {
		t.Fatalf("%d and %d turns", len(tree), len(export))
	}
	for i := range tree {
		if a, b := harnesstest.Line(tree[i]), harnesstest.Line(export[i]); a != b {
			t.Errorf("turn %d\n%s\n%s", i, a, b)
		}
	}
}

// An export is known by its start, wherever that is cut.
func TestRecognizeExport(t *testing.T) {
	data := harnesstest.Samples(t, "export.json")[0].Data
	if (Export{}).Recognize(data) != harness.Certain || (Export{}).Recognize(data[:200]) == harness.No {
		t.Error("the export is not known")
	}
	if (Export{}).Recognize(bytes.Replace(data, []byte(`"info"`), []byte(`"data"`), 1)) != harness.No {
		t.Error("something else is taken for an export")
	}
}

// A part that is being written is told as it is now, and decided when it is
// whole, whichever of its states were seen.
func TestGrowing(t *testing.T) {
	const head = `{"session":{"id":"s","directory":"/p","time_created":1781674674000}}
{"message":{"id":"m1","data":{"role":"user"}}}
{"part":{"id":"p1","data":{"type":"text","text":"Go"}}}
`
	const open = `{"message":{"id":"m2","data":{"role":"assistant","time":{"created":1781674675000}}}}` + "\n"
	const whole = `{"message":{"id":"m2","data":{"role":"assistant","time":{"created":1781674675000,"completed":1781674679000}}}}` + "\n"
	part := func(id, data string) string { return `{"part":{"id":"` + id + `","data":` + data + "}}\n" }
	said := part("p2", `{"type":"text","text":"I will","time":{"start":1,"end":2}}`)
	ran := part("p3", `{"type":"tool","tool":"bash","callID":"c","state":{"status":"completed","input":{"command":"ls"},"output":"x"}}`)
	var states []harnesstest.Sample
	for _, text := range []string{
		head, head + open,
		head + open + part("p2", `{"type":"text","text":"I w","time":{"start":1}}`),
		head + open + said,
		head + open + said + part("p3", `{"type":"tool","tool":"bash","callID":"c","state":{"status":"pending","input":{}}}`),
		head + open + said + part("p3", `{"type":"tool","tool":"bash","callID":"c","state":{"status":"running","input":{"command":"ls"}}}`) + part("p4", `{"type":"text","text":"Do`+`"}`),
		head + open + said + ran + part("p4", `{"type":"text","text":"Done"}`),
		head + whole + said + ran + part("p4", `{"type":"text","text":"Done.","time":{"start":3,"end":4}}`),
		head + whole + said + ran + part("p4", `{"type":"text","text":"Done.","time":{"start":3,"end":4}}`) +
			`{"message":{"id":"m3","data":{"role":"user"}}}` + "\n" + part("p5", `{"type":"text","text":"Thanks"}`),
	} {
		states = append(states, harnesstest.Sample{Data: []byte(text)})
	}
	harnesstest.States(t, Database{}, states...)
}
