package pi

import (
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

func brief(turns []turn.Turn) []string {
	var list []string
	for _, t := range turns {
		list = append(list, string(t.Class)+" "+t.Text)
	}
	return list
}

// TestFork checks that what a fork copies is the origin's, under the same ids
// (version 3) and without any (version 1).
func TestFork(t *testing.T) {
	const origin = "019ff000-0000-7000-8000-00000000aaaa"
	head := func(id, rest string) string {
		return `{"type":"session","id":"` + id + `","timestamp":"2026-06-11T08:30:00.000Z","cwd":"/p"` + rest + "}"
	}
	entry := func(id, ts, role, text string) string {
		line := `{"type":"message","timestamp":"2026-06-11T08:00:` + ts + `.000Z","message":{"role":"` + role + `","content":"` + text + `"}}`
		if id != "" {
			line = strings.Replace(line, `{`, `{"id":"`+id+`","parentId":null,`, 1)
		}
		return line
	}
	for _, ids := range [][3]string{{"a", "b", "c"}, {"", "", ""}} {
		past := []string{entry(ids[0], "01", "user", "one"), entry(ids[1], "02", "assistant", "two")}
		parent := harnesstest.Read(Tree{}, harness.Env{}, harnesstest.Sample{Data: []byte(strings.Join(append([]string{head(origin, "")}, past...), "\n"))})
		known := harnesstest.Known(map[string][]turn.Turn{origin: parent.All()})
		lines := append([]string{head("child", `,"parentSession":"C:\\x\\2026-06-11T08-00-00-000Z_`+origin+`.jsonl"`)}, past...)
		lines = append(lines, entry(ids[2], "03", "user", "one"))
		s := harnesstest.Sample{Data: []byte(strings.Join(lines, "\n") + "\n")}
		r := harnesstest.Read(Tree{}, known, s)
		if got := brief(r.All()); !slices.Equal(got, []string{"USER one"}) {
			t.Errorf("ids %q: %q", ids, got)
		}
		if m := r.End; m.Inherited != 2 || m.ForkedFrom != origin || m.Kind != "fork" || m.ID != "child" {
			t.Errorf("ids %q: meta %+v", ids, m)
		}
		harnesstest.Cuts(t, Tree{}, known, s)
		if all := harnesstest.Read(Tree{}, harness.Env{}, s).All(); len(all) != 3 {
			t.Errorf("origin unknown: %q", brief(all))
		}
	}
}

// TestLargeLine checks a line of the size reported in F1.
func TestLargeLine(t *testing.T) {
	text := strings.Repeat("x", 5<<20)
	turns, _ := harnesstest.Turns(Tree{}, []byte(`{"type":"message","message":{"role":"user","content":"`+text+`"}}`+"\n"), "")
	if len(turns) != 1 || turns[0].Text != text {
		t.Errorf("%d turns", len(turns))
	}
}

// TestTypes checks fields of types that were not asked for (H10).
func TestTypes(t *testing.T) {
	data := strings.Join([]string{
		`{"type":"session","version":"3","id":7,"timestamp":null,"cwd":{}}`,
		`{"type":"message","id":"a"}`,
		`{"type":"message","id":"b","message":"text"}`,
		`{"type":"message","id":"c","message":{"role":"assistant","content":{"a":1},"usage":5}}`,
		`{"type":"message","id":"d","message":{"role":"assistant","content":["bare",{"type":"toolCall","arguments":"x"},{"type":"new"},null]}}`,
		`{"type":"message","id":"e","message":{"role":"toolResult","content":null,"isError":"yes"}}`,
		`{"type":"message","id":"f","message":{"role":"bashExecution","command":1,"exitCode":null}}`,
		`{"type":"compaction","summary":[]}`,
	}, "\n")
	s := harnesstest.Sample{Data: []byte(data)}
	r := harnesstest.Read(Tree{}, harness.Env{}, s)
	want := []string{"AGENT bare", `TOOL tool_call unknown "x"`, "TOOL (empty)", "TOOL $ 1\n", "OTHER (context compacted)"}
	if got := brief(r.All()); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	harnesstest.Check(t, Tree{}, r)
}

func TestPlaces(t *testing.T) {
	const p = "/h/.pi/agent/sessions/--home-dev-proj--/2026-08-12T10-28-43-797Z_019ff584-6a95-7611-be13-a1010206e6be.jsonl"
	var m session.Meta
	Tree{}.About(p, &m)
	if !(Tree{}).Place(p) || m.ID != "019ff584-6a95-7611-be13-a1010206e6be" {
		t.Errorf("place %v, meta %+v", Tree{}.Place(p), m)
	}
	for _, other := range []string{"/h/.pi/agent/settings.json", "/h/.codex/sessions/x.jsonl", "/h/2026-08-12T10-28-43-797Z_x.jsonl"} {
		if (Tree{}).Place(other) {
			t.Errorf("%s is a place", other)
		}
	}
	store := Tree{}.Stores("/h", func(string) string { return "" })[0]
	if !store.Keep("--p--", true) || store.Keep("--p--/deep", true) || !store.Keep("--p--/a.jsonl", false) || store.Keep("--p--/a.json", false) {
		t.Error("the store keeps other files")
	}
	if root := (Tree{}).Stores("/h", func(string) string { return "/x" })[0].Root; root != "/x/sessions" {
		t.Errorf("PI_CODING_AGENT_DIR is ignored: %s", root)
	}
}
