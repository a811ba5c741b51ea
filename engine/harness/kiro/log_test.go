package kiro

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/session"
)

func TestLog(t *testing.T) {
	harnesstest.Run(t, Log{}, harnesstest.Samples(t, "*.jsonl")...)
	harnesstest.Golden(t, Log{}, harnesstest.Samples(t, "*.jsonl")...)
}

func TestDocument(t *testing.T) {
	harnesstest.Run(t, Document{}, harnesstest.Samples(t, "*.json")...)
	harnesstest.Golden(t, Document{}, harnesstest.Samples(t, "*.json")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Document{}, harnesstest.Fixtures(t, "kiro", ".json")...)
}

func FuzzLog(f *testing.F) { harnesstest.Fuzz(f, Log{}, harnesstest.Samples(f, "*.jsonl")...) }

func FuzzDocument(f *testing.F) {
	harnesstest.Fuzz(f, Document{}, harnesstest.Samples(f, "*.json")...)
}

// No id stands for two turns, though collectors blank the ids of calls.
func TestBlankIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, one := range harnesstest.Read(Document{}, harness.Env{}, harnesstest.Samples(t, "*.json")[0]).All() {
		if one.ID == "" || seen[one.ID] {
			t.Errorf("%s", harnesstest.Line(one))
		}
		seen[one.ID] = true
	}
}

// What the log does not say is in the file beside it, if that can be read.
func TestSidecar(t *testing.T) {
	s := harnesstest.Samples(t, "*.jsonl")[0]
	const whole = `{"session_id":"x","cwd":"/p","title":"Note","parent_session_id":"boss","session_state":{"rts_model_state":{"model_info":{"model_id":"m-1"}}}}`
	for name, c := range map[string]struct {
		text string
		want session.Meta
	}{
		"whole":        {whole, session.Meta{ID: "x", CWD: "/p", Title: "Note", Model: "m-1", Kind: "subagent", Parent: "boss"}},
		"half written": {whole[:50], session.Meta{}},
		"other types":  {`{"cwd":{},"title":7,"session_state":{"rts_model_state":[]}}`, session.Meta{Title: "7"}},
		"missing":      {"", session.Meta{}},
	} {
		env := harness.Env{Path: "/copy/x.jsonl", Beside: func(rel string) ([]byte, error) {
			if rel != "x.json" || c.text == "" {
				return nil, fs.ErrNotExist
			}
			return []byte(c.text), nil
		}}
		got := harnesstest.Read(Log{}, env, harnesstest.Sample{Data: s.Data}).End
		got.FirstTS, got.LastTS, got.Compactions = "", "", 0
		if got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		harnesstest.Cuts(t, Log{}, env, s)
	}
}

func TestTypes(t *testing.T) {
	data := strings.Join([]string{
		`{"kind":"Prompt","data":"x"}`, `{"kind":"Prompt","data":{"content":{"a":1},"meta":7}}`, `{"kind":7,"data":{}}`,
		`{"kind":"AssistantMessage","data":{"content":[null,7,{"kind":"toolUse","data":"x"},{"data":{"text":"t"},"kind":"thinking"},{"kind":"text"}]}}`,
		`{"kind":"ToolResults","data":{"content":[{"kind":"toolResult","data":{"status":7,"content":[{"kind":"json","data":{"exit_status":"killed","stdout":"o"}},3]}}]}}`, "",
	}, "\n")
	r := harnesstest.Read(Log{}, harness.Env{}, harnesstest.Sample{Data: []byte(data)})
	var got []string
	for _, t := range r.All() {
		got = append(got, string(t.Class)+" "+t.Text)
	}
	want := []string{"TOOL tool_call unknown", "THOUGHT t", `TOOL {"exit_status":"killed","stdout":"o"}`}
	if !slices.Equal(got, want) || !slices.Equal(r.Unknown, []string{"7"}) {
		t.Errorf("%q, unknown %q", got, r.Unknown)
	}
	harnesstest.Check(t, Log{}, r)
}

func TestPlaces(t *testing.T) {
	for p, want := range map[string]string{
		"/h/.kiro/sessions/cli/0190.jsonl":       "0190",
		"/h/.kiro/sessions/cli/0190.json":        "",
		"/h/.kiro/sessions/cli/0190.lock":        "",
		"/h/.kiro/sessions/cli/sub/0190.jsonl":   "",
		"/h/.kiro/sessions/ab/sess_1/hist.jsonl": "",
		"/elsewhere/0190.jsonl":                  "",
	} {
		var m session.Meta
		Log{}.About(p, &m)
		if (Log{}).Place(p) != (want != "") || m.ID != want {
			t.Errorf("%s: place %v, id %q", p, Log{}.Place(p), m.ID)
		}
	}
	store := Log{}.Stores("/h", func(string) string { return "/k" })[0]
	if store.Root != "/k/sessions/cli" || store.Keep("sub", true) || !store.Keep("a.jsonl", false) || store.Keep("a.json", false) {
		t.Errorf("store %+v", store)
	}
}
