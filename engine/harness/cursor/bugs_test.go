package cursor

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/harness/journal"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

func TestClock(t *testing.T) {
	for in, want := range map[string]string{
		"Sunday, Jul 26, 2026, 1:06 PM (UTC+3)":         "2026-07-26T10:06:00.000Z",
		"Sunday, Jul 26, 2026, 12:06 AM (UTC-3)":        "2026-07-26T03:06:00.000Z",
		"Sunday, Jul 26, 2026, 1:06\u202fPM (UTC+5:45)": "2026-07-26T07:21:00.000Z",
		"Sunday, July 26, 2026, 1:06 PM (UTC)":          "2026-07-26T13:06:00.000Z",
		"Sunday, Jul 26, 2026, 1:06:09 PM (GMT-03:30)":  "2026-07-26T16:36:09.000Z",
		"2026-07-26T13:06:00+03:00":                     "2026-07-26T10:06:00.000Z",
		"Sunday, Jul 26, 2026, 1:06 PM (CEST)":          "",
		"Sunday, Jul 26, 2026, 1:06 PM":                 "2026-07-26T13:06:00.000Z",
		"yesterday":                                     "",
		"":                                              "",
	} {
		if got, zoned := clock(in); got != want || zoned == strings.HasSuffix(in, "PM") && got != "" {
			t.Errorf("clock(%q) = %q, %v, want %q", in, got, zoned, want)
		}
	}
}

func TestPrompt(t *testing.T) {
	for in, want := range map[string][]segment{
		"words":                          {{turn.User, "words"}},
		"<user_query>\nq\n</user_query>": {{turn.User, "q"}},
		"<rules>r</rules>\n<user_query>q</user_query>\nafter": {{turn.Other, "<rules>r</rules>"}, {turn.User, "q"}, {turn.Other, "after"}},
		"<user_query>cut": {{turn.User, "cut"}},
		"<user_query>a</user_query>\n<user_query>b</user_query>":                      {{turn.User, "a"}, {turn.User, "b"}},
		"<user_query>say </user_query> twice</user_query>":                            {{turn.User, "say </user_query> twice"}},
		"<system_reminder>x</system_reminder>":                                        {{turn.Other, "<system_reminder>x</system_reminder>"}},
		"<attached_files>\na\n</attached_files>\n\nfix it":                            {{turn.Other, "<attached_files>\na\n</attached_files>"}, {turn.User, "fix it"}},
		"fix\n<open_and_recently_viewed_files>\nb\n</open_and_recently_viewed_files>": {{turn.User, "fix"}, {turn.Other, "<open_and_recently_viewed_files>\nb\n</open_and_recently_viewed_files>"}},
		"<div>html</div>\n<my_tag> never closed":                                      {{turn.User, "<div>html</div>\n<my_tag> never closed"}},
		"<timestamp>noon</timestamp> is a tag I type":                                 {{turn.User, "<timestamp>noon</timestamp> is a tag I type"}},
		"<user_query><timestamp>Jul 1, 2026, 1:00 PM</timestamp></user_query>":        {{turn.User, "<timestamp>Jul 1, 2026, 1:00 PM</timestamp>"}},
		" \n": nil,
	} {
		if got, _ := prompt(in); !slices.Equal(got, want) {
			t.Errorf("prompt(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestCarried checks that times are carried on from the prompt that tells one
// (vshulcz/deja-vu#3349) and never made up.
func TestCarried(t *testing.T) {
	r := harnesstest.Read(Lines{}, harness.Env{}, harnesstest.Samples(t, "stamped.jsonl")[0])
	for i, got := range r.All() {
		switch {
		case i < 2 && (got.TS != "" || got.Mark != ""):
			t.Errorf("turn %d has a time before any was told: %s", i, harnesstest.Line(got))
		case got.Text == "first" && (got.TS != "2026-07-26T10:06:00.000Z" || got.Mark != ""):
			t.Errorf("%s", harnesstest.Line(got))
		case got.Text == "One." && (got.TS != "2026-07-26T10:06:00.000Z" || got.Mark != journal.Approximate):
			t.Errorf("%s", harnesstest.Line(got))
		case got.Text == "Two." && got.TS != "2026-08-25T05:00:00.000Z":
			t.Errorf("%s", harnesstest.Line(got))
		}
	}
	if m := r.End; m.FirstTS != "2026-07-26T10:06:00.000Z" || m.LastTS != "2026-08-25T05:00:00.000Z" || m.CWD != "/home/dev/greeter" {
		t.Errorf("meta %+v", m)
	}
}

// TestNames checks that a file written again names the same turns alike, and
// equal words apart.
func TestNames(t *testing.T) {
	s := harnesstest.Samples(t, "plain.jsonl")[0]
	ids := map[string]bool{}
	all := harnesstest.Read(Lines{}, harness.Env{}, s).All()
	for _, got := range all {
		if ids[got.ID] {
			t.Errorf("%s has the name of another", harnesstest.Line(got))
		}
		ids[got.ID] = true
	}
	s.Data = append(s.Data, `{"role":"user","message":{"content":[{"type":"text","text":"more"}]}}`+"\n"...)
	again := harnesstest.Read(Lines{}, harness.Env{}, s).All()
	for i, got := range all {
		if again[i].ID != got.ID {
			t.Errorf("%s was %s", harnesstest.Line(again[i]), got.ID)
		}
	}
	s.Path = "testdata/other.jsonl"
	if other := harnesstest.Read(Lines{}, harness.Env{}, s).All(); other[0].ID == all[0].ID {
		t.Error("two sessions with equal prompts look like one and its fork")
	}
}

func TestTypes(t *testing.T) {
	data := strings.Join([]string{
		`{"role":"user","message":{"content":"bare"}}`,
		`{"role":"user","message":{"content":null}}`,
		`{"role":"assistant","message":"text"}`,
		`{"role":"assistant","message":{"content":["bare",{"type":"tool_use","input":"x"},{"type":"image"},{"type":"new"},null,7]}}`,
		`{"role":"assistant","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"}],"is_error":true}]}}`,
		`{"role":"system","message":{"content":[]}}`,
		`{}`,
		"",
	}, "\n")
	s := harnesstest.Sample{Data: []byte(data)}
	r := harnesstest.Read(Lines{}, harness.Env{}, s)
	want := []string{"USER bare", "AGENT bare", `TOOL tool_call unknown "x"`, "AGENT [image]", "AGENT 7", "TOOL r"}
	var got []string
	for _, t := range r.All() {
		got = append(got, string(t.Class)+" "+t.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if want := []string{"role/assistant", "role/system", "(none)"}; !slices.Equal(r.Unknown, want) {
		t.Errorf("unknown %q", r.Unknown)
	}
	harnesstest.Check(t, Lines{}, r)
}

// TestWorkspace checks that a directory that cannot be decoded is found by
// paths that are held against it.
func TestWorkspace(t *testing.T) {
	line := `{"role":"assistant","message":{"content":[{"type":"tool_use","name":"Read","input":{"path":"/home/dev/my-app.v2/src/a.go"}}]}}` + "\n"
	for p, want := range map[string]string{
		"/h/.cursor/projects/home-dev-my-app-v2/agent-transcripts/x.jsonl":   "/home/dev/my-app.v2",
		"/h/.cursor/projects/home-dev-my-app-v2/agent-transcripts/x/x.jsonl": "/home/dev/my-app.v2",
		"/h/.cursor/projects/home-dev-other/agent-transcripts/x.jsonl":       "",
		"/elsewhere/x.jsonl": "",
	} {
		if got := harnesstest.Read(Lines{}, harness.Env{Path: p}, harnesstest.Sample{Data: []byte(line)}).End.CWD; got != want {
			t.Errorf("%s: %q", p, got)
		}
	}
}

// TestTwin checks that a session with both files is captured once.
func TestTwin(t *testing.T) {
	s := harnesstest.Samples(t, "old.txt")[0]
	for have, want := range map[string]bool{"old.jsonl": false, "other.jsonl": true} {
		env := harness.Env{Path: "/x/old.txt", Beside: func(rel string) ([]byte, error) {
			if rel != have {
				return nil, fs.ErrNotExist
			}
			return []byte("{}"), nil
		}}
		if got := harnesstest.Read(Text{}, env, s).All(); len(got) > 0 != want {
			t.Errorf("beside %s: %d turns", have, len(got))
		}
	}
}

func TestPlaces(t *testing.T) {
	const root = "/h/.cursor/projects/"
	for p, want := range map[string][2]bool{ // lines, text
		root + "w/agent-transcripts/a.jsonl":             {true, false},
		root + "w/agent-transcripts/a.txt":               {false, true},
		root + "w/agent-transcripts/a/a.jsonl":           {true, false},
		root + "w/agent-transcripts/a/a.txt":             {false, true},
		root + "w/agent-transcripts/a/subagents/b.jsonl": {true, false},
		root + "w/agent-transcripts/a/b.jsonl":           {false, false},
		root + "w/agent-tools/a.txt":                     {false, false},
		root + "w/terminals/1.txt":                       {false, false},
		root + "w/mcp-cache.json":                        {false, false},
	} {
		for i, f := range []harness.Format{Lines{}, Text{}} {
			rel := strings.TrimPrefix(p, root)
			if f.Place(p) != want[i] || f.Stores("/h", nil)[0].Keep(rel, false) != want[i] {
				t.Errorf("%s: place %v", p, f.Place(p))
			}
		}
	}
	keep := Lines{}.Stores("/h", nil)[0].Keep
	for dir, want := range map[string]bool{
		"w": true, "w/agent-transcripts": true, "w/agent-transcripts/a": true, "w/agent-transcripts/a/subagents": true,
		"w/agent-tools": false, "w/agent-transcripts/a/other": false,
	} {
		if keep(dir, true) != want {
			t.Errorf("enters %s: %v", dir, !want)
		}
	}
	var m session.Meta
	Lines{}.About(root+"w/agent-transcripts/a/subagents/b.jsonl", &m)
	if m.ID != "b" || m.Parent != "a" || m.Kind != "subagent" {
		t.Errorf("subagent: %+v", m)
	}
}
