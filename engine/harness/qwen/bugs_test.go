package qwen

import (
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/session"
)

func TestTypes(t *testing.T) {
	const env = `"sessionId":"s","timestamp":"2026-07-03T14:00:00.000Z"`
	data := strings.Join([]string{
		`{"uuid":"a",` + env + `,"type":"user","message":{"role":"user","parts":"bare"}}`,
		`{"uuid":"b",` + env + `,"type":"user","message":null}`,
		`{"uuid":"c",` + env + `,"type":"assistant","message":{"parts":["bare",{"text":7},{"functionCall":{"args":"x"}},null,{"new":1}]},"usageMetadata":"x"}`,
		`{"uuid":"d",` + env + `,"type":"tool_result","message":{"parts":[{"functionResponse":{"response":[1]}}]},"toolCallResult":"x"}`,
		`{"uuid":"e",` + env + `,"type":"tool_result","toolCallResult":{"callId":"k","status":"cancelled"}}`,
		`{"uuid":"f",` + env + `,"type":"system","subtype":"rewind","systemPayload":null}`,
		`{"uuid":"g",` + env + `,"type":"system"}`, "",
	}, "\n")
	s := harnesstest.Sample{Data: []byte(data)}
	r := harnesstest.Read(Tree{}, harness.Env{}, s)
	want := []string{"USER bare", "AGENT bare\n7", `TOOL tool_call unknown "x"`, "TOOL (empty)", "TOOL (empty)", "OTHER [rewound]"}
	var got []string
	for _, t := range r.All() {
		got = append(got, string(t.Class)+" "+t.Text)
	}
	if !slices.Equal(got, want) || !slices.Equal(r.Unknown, []string{"system/"}) {
		t.Errorf("got  %q, unknown %q\nwant %q", got, r.Unknown, want)
	}
	harnesstest.Check(t, Tree{}, r)
	harnesstest.Cuts(t, Tree{}, harness.Env{}, s)
}

// TestClaude checks that the same envelope with Claude Code's content is left
// to it.
func TestClaude(t *testing.T) {
	for _, line := range []string{
		`{"uuid":"a","parentUuid":null,"sessionId":"s","timestamp":"t","type":"user","cwd":"/p","version":"2.1.0","message":{"role":"user","content":"hi"}}`,
		`{"uuid":"a","sessionId":"s","type":"system","subtype":"compact_boundary","content":"x","compactMetadata":{}}`,
	} {
		if got := (Tree{}).Recognize([]byte(line)); got != harness.No {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestPlaces(t *testing.T) {
	const root = "/h/.qwen/projects/"
	for p, want := range map[string]string{
		root + "-home-dev-p/chats/1c9a.jsonl":                 "1c9a",
		root + "-home-dev-p/chats/archive/1c9a.jsonl":         "1c9a",
		root + "-home-dev-p/subagents/1c9a/agent-x.jsonl":     "agent-x",
		root + "-home-dev-p/subagents/1c9a/agent-x.meta.json": "",
		root + "-home-dev-p/chats/1c9a.ledger.jsonl":          "",
		root + "-home-dev-p/chats/1c9a.runtime.json":          "",
		root + "-home-dev-p/chats/other/1c9a.jsonl":           "",
		"/h/.qwen/tmp/0123/logs.json":                         "",
	} {
		var m session.Meta
		Tree{}.About(p, &m)
		if (Tree{}).Place(p) != (want != "") || m.ID != want {
			t.Errorf("%s: place %v, id %q", p, Tree{}.Place(p), m.ID)
		}
		if want == "agent-x" && (m.Kind != "subagent" || m.Parent != "1c9a") {
			t.Errorf("subagent: %+v", m)
		}
	}
	for _, c := range [][3]string{{"", "", "/h/.qwen/projects"}, {"/q", "", "/q/projects"}, {"/q", "/r", "/r/projects"}} {
		env := map[string]string{"QWEN_HOME": c[0], "QWEN_RUNTIME_DIR": c[1]}
		if got := (Tree{}).Stores("/h", func(k string) string { return env[k] })[0].Root; got != c[2] {
			t.Errorf("%v: %s", env, got)
		}
	}
	keep := Tree{}.Stores("/h", func(string) string { return "" })[0].Keep
	for dir, want := range map[string]bool{"p": true, "p/chats": true, "p/chats/archive": true, "p/subagents/1c9a": true, "p/memory": false, "p/chats/x": false} {
		if keep(dir, true) != want {
			t.Errorf("enters %s: %v", dir, !want)
		}
	}
}
