package verb_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
	"handoffd/engine/verb"
	"handoffd/engine/verify"
)

type bench struct {
	t      *testing.T
	store  store.Store
	b      *pipeline.Builder
	source string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	root := t.TempDir()
	x := &bench{t: t, store: store.Store{Root: filepath.Join(root, "store")}, source: filepath.Join(root, "demo.jsonl")}
	x.b = pipeline.New(x.store, pipeline.Options{Linking: true, MinOverlap: 0.06})
	x.write("count the carts in the shop please", "There are 42 carts.")
	x.build()
	return x
}

func (x *bench) write(prompt, answer string) {
	x.t.Helper()
	text := `{"role":"user","text":"` + prompt + `","thread":"--shop--"}` + "\n" + `{"role":"assistant","text":"` + answer + `"}` + "\n"
	if err := os.WriteFile(x.source, []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
}

func (x *bench) build() *pipeline.Result {
	x.t.Helper()
	r, err := x.b.Build(context.Background(), pipeline.Request{Source: x.source, Session: "demo"})
	if err != nil {
		x.t.Fatal(err)
	}
	return r
}

func (x *bench) find(id string) index.Entry {
	x.t.Helper()
	e, err := x.b.Index.Find(id)
	if err != nil {
		x.t.Fatal(err)
	}
	return e
}

func (x *bench) verify() {
	x.t.Helper()
	all, err := x.store.Sessions()
	if err != nil || len(all) != 1 {
		x.t.Fatalf("%v %v", all, err)
	}
	if r, err := verify.Session(context.Background(), x.store, all[0]); err != nil || !r.OK {
		x.t.Fatalf("%+v %v", r, err)
	}
}

func (x *bench) read(rel string) string {
	raw, err := os.ReadFile(filepath.Join(x.store.Root, filepath.FromSlash(rel)))
	if err != nil {
		x.t.Fatal(err)
	}
	return string(raw)
}

func TestRenameAndRetitle(t *testing.T) {
	x := newBench(t)
	moved, err := verb.Rename(context.Background(), x.b, x.find("demo"), "New Shop")
	if err != nil || moved.Project != "new-shop" || moved.Revision != 2 {
		t.Fatalf("%+v %v", moved, err)
	}
	x.verify()
	titled, err := verb.Retitle(context.Background(), x.b, x.find("demo"), "Counting Carts")
	if err != nil || titled.Name != "counting-carts" || titled.Revision != 3 {
		t.Fatalf("%+v %v", titled, err)
	}
	x.verify()
	for _, name := range []string{store.BriefName, store.SummaryName, store.PayloadName} {
		if text := x.read("projects/new-shop/counting-carts/" + name); !strings.Contains(text, "Counting Carts") || !strings.Contains(text, "new-shop") {
			t.Errorf("%s does not say where it is: %.300s", name, text)
		}
	}
	if page := x.read("projects/shop/PROJECT.md"); strings.Contains(page, "- session") {
		t.Errorf("the old project still lists it: %s", page)
	}
	if page := x.read("projects/new-shop/PROJECT.md"); strings.Count(page, "- session") != 1 || !strings.Contains(page, "counting-carts (turns=2, rev=3)") {
		t.Errorf("the new project: %s", page)
	}
	// The session is found where it is now, and goes on there.
	x.write("count the carts in the shop please", "There are 43 carts.")
	if r := x.build(); r.Project != "new-shop" || r.New != 1 || r.Revision != 4 {
		t.Fatalf("%+v", r)
	}
	x.verify()
	if e := x.find("counting-carts"); e.UUID != "demo" {
		t.Errorf("%+v", e)
	}
}

func TestTargetExists(t *testing.T) {
	x := newBench(t)
	if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.source, Session: "demo", Project: "other"}); err != nil {
		t.Fatal(err)
	}
	if _, err := verb.Rename(context.Background(), x.b, x.find("shop/demo"), "other"); !fault.Is(err, fault.Exists) {
		t.Errorf("rename: %v", err)
	}
	if _, err := verb.Rename(context.Background(), x.b, x.find("shop/demo"), "..."); !fault.Is(err, fault.Usage) {
		t.Errorf("rename to nothing: %v", err)
	}
	if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.source, Session: "second", Project: "shop"}); err != nil {
		t.Fatal(err)
	}
	if _, err := verb.Retitle(context.Background(), x.b, x.find("shop/demo"), "second"); !fault.Is(err, fault.Exists) {
		t.Errorf("retitle: %v", err)
	}
}

// TestContractSurvives edits the contract by hand and builds, moves and
// builds again.
func TestContractSurvives(t *testing.T) {
	x := newBench(t)
	path := filepath.Join(x.store.Root, "projects/shop/demo", store.BriefName)
	brief := x.read("projects/shop/demo/" + store.BriefName)
	head, _, ok := strings.Cut(brief, "\n\n(none yet)")
	if !ok {
		t.Fatal("no contract section")
	}
	const block = "RESULT: done\nWHAT_CHANGED: cart\nVALIDATION: go test\nEVIDENCE: log\nBLOCKERS: none\nRISKS: none\nFOLLOW_UP: none"
	if err := os.WriteFile(path, []byte(head+"\n\n"+block+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		x.write("count the carts in the shop please", "There are "+strings.Repeat("4", i+3))
		x.build()
		x.verify()
	}
	if _, err := verb.Rename(context.Background(), x.b, x.find("demo"), "elsewhere"); err != nil {
		t.Fatal(err)
	}
	text := x.read("projects/elsewhere/demo/" + store.BriefName)
	if strings.Count(text, block) != 1 || strings.Count(text, "contract sha256") != 1 {
		t.Errorf("contract: %s", text[max(0, len(text)-800):])
	}
	x.verify()
}
