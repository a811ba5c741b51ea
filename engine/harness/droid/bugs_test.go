package droid

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/session"
)

// TestSettings checks that the model and the tokens are those of the file
// beside the session, and that nothing depends on it.
func TestSettings(t *testing.T) {
	s := harnesstest.Samples(t, "session.jsonl")[0]
	for name, c := range map[string]struct {
		settings string
		model    string
		tokens   session.Tokens
	}{
		"whole": {`{"model":"glm-4.6","tokenUsage":{"inputTokens":10,"outputTokens":20,"cacheCreationTokens":3,"cacheReadTokens":40,"thinkingTokens":5}}`,
			"glm-4.6", session.Tokens{Input: 10, Output: 20, CacheRead: 40, CacheWrite: 3}},
		"half written": {`{"model":"glm-4.6","tokenUsage":{"inp`, "glm-5.2", session.Tokens{}},
		"other types":  {`{"model":7,"tokenUsage":[]}`, "7", session.Tokens{}},
		"missing":      {"", "glm-5.2", session.Tokens{}},
	} {
		env := harness.Env{Path: "/h/.factory/sessions/p/8f1d.jsonl", Beside: func(rel string) ([]byte, error) {
			if rel != "8f1d.settings.json" || c.settings == "" {
				return nil, fs.ErrNotExist
			}
			return []byte(c.settings), nil
		}}
		r := harnesstest.Read(Log{}, env, s)
		if r.End.Model != c.model || r.End.Tokens != c.tokens {
			t.Errorf("%s: model %q, tokens %+v", name, r.End.Model, r.End.Tokens)
		}
		harnesstest.Cuts(t, Log{}, env, s)
	}
}

func TestRelations(t *testing.T) {
	const head = `{"type":"session_start","id":"x","cwd":"/p","version":2`
	for rest, want := range map[string]session.Meta{
		`}`:                                     {ID: "x", CWD: "/p"},
		`,"callingSessionId":"boss"}`:           {ID: "x", CWD: "/p", Kind: "subagent", Parent: "boss"},
		`,"parent":"origin"}`:                   {ID: "x", CWD: "/p", Kind: "fork", ForkedFrom: "origin"},
		`,"title":"t"}`:                         {ID: "x", CWD: "/p", Title: "t"},
		`,"title":"New Session"}`:               {ID: "x", CWD: "/p"},
		`,"title":"t","sessionTitle":"better"}`: {ID: "x", CWD: "/p", Title: "better"},
	} {
		if _, m := harnesstest.Turns(Log{}, []byte(head+rest+"\n"), ""); m != want {
			t.Errorf("%s: %+v", rest, m)
		}
	}
}

func TestTypes(t *testing.T) {
	data := strings.Join([]string{
		`{"type":"session_start","id":7,"title":{},"cwd":null}`,
		`{"type":"message","id":"a"}`,
		`{"type":"message","id":"b","message":"text"}`,
		`{"type":"message","id":"c","message":{"role":"user","content":{"a":1}}}`,
		`{"type":"message","id":"d","message":{"role":"assistant","content":["bare",{"type":"tool_use","input":"x"},{"type":"new"},null]}}`,
		`{"type":"message","id":"e","message":{"role":"user","content":[{"type":"tool_result","content":null,"is_error":"yes"}]}}`,
		`{"type":"compaction_state","summary":{"title":"T","body":"B"}}`,
		`{"type":"compaction_state","summaryText":[]}`, "",
	}, "\n")
	s := harnesstest.Sample{Data: []byte(data)}
	r := harnesstest.Read(Log{}, harness.Env{}, s)
	want := []string{"AGENT bare", `TOOL tool_call unknown "x"`, "TOOL (empty)", "OTHER T\nB", "OTHER (context compacted)"}
	var got []string
	for _, t := range r.All() {
		got = append(got, string(t.Class)+" "+t.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	harnesstest.Check(t, Log{}, r)
}

func TestPlaces(t *testing.T) {
	for p, want := range map[string]string{
		"/h/.factory/sessions/-home-dev-p/8f1d.jsonl":           "8f1d",
		"/h/.factory/sessions/8f1d.jsonl":                       "8f1d",
		"/h/.factory/sessions/-home-dev-p/8f1d.settings.json":   "",
		"/h/.factory/sessions/-home-dev-p/8f1d.jsonl.bak":       "",
		"/h/.factory/sessions/-home-dev-p/8f1d/artifacts.jsonl": "",
		"/h/.factory/history.jsonl":                             "",
		"/elsewhere/8f1d.jsonl":                                 "",
	} {
		var m session.Meta
		Log{}.About(p, &m)
		if (Log{}).Place(p) != (want != "") || m.ID != want {
			t.Errorf("%s: place %v, id %q", p, Log{}.Place(p), m.ID)
		}
	}
	store := Log{}.Stores("/h", func(string) string { return "/o" })[0]
	if store.Root != "/o/.factory/sessions" || !store.Keep("p", true) || store.Keep("p/q", true) || !store.Keep("p/a.jsonl", false) || store.Keep("p/a.settings.json", false) {
		t.Errorf("store %+v", store)
	}
}
