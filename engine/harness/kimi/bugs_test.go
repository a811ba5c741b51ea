package kimi

import (
	"crypto/md5"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

const (
	home = "/h/.kimi/sessions/0123/s-1/"
	main = home + "context.jsonl"
)

func say(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }

func checkpoint(n int) string { return fmt.Sprintf(`{"role":"_checkpoint","id":%d}`, n) }

func join(lines ...string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }

func brief(turns []turn.Turn) []string {
	var list []string
	for _, t := range turns {
		text := string(t.Class) + " " + t.Text
		if t.Mark != "" {
			text = t.Mark + " " + text
		}
		list = append(list, text)
	}
	return list
}

// again reads a context of which the turns are captured, and returns those
// that are new: the store drops the others by their names.
func again(t *testing.T, captured []turn.Turn, path string, data []byte) []turn.Turn {
	t.Helper()
	env := harnesstest.Known(map[string][]turn.Turn{"s-1": captured})
	env.Path = path
	s := harnesstest.Sample{Data: data, Path: path}
	r := harnesstest.Read(Context{}, env, s)
	harnesstest.Check(t, Context{}, r)
	harnesstest.Cuts(t, Context{}, env, s)
	var fresh []turn.Turn
	for _, got := range r.All() {
		if !slices.ContainsFunc(captured, func(c turn.Turn) bool { return c.ID == got.ID && c.Text == got.Text }) {
			fresh = append(fresh, got)
		}
	}
	return fresh
}

func TestRewritten(t *testing.T) {
	one := []string{checkpoint(0), say("user", "one"), say("assistant", "1")}
	two := []string{checkpoint(1), say("user", "continue"), say("assistant", "2"), say("user", "yes"), say("assistant", "3")}
	all := slices.Concat(one, two)
	captured := harnesstest.Read(Context{}, harness.Env{}, harnesstest.Sample{Data: join(all...), Path: main}).All()
	if len(captured) != 6 {
		t.Fatalf("%q", brief(captured))
	}
	prompt := `{"role":"_system_prompt","content":"You are."}`
	summary := `{"role":"user","content":[{"type":"text","text":"<system>Previous context has been compacted. Here is the compaction output:</system>"},{"type":"text","text":"sum"}]}`
	const summed = "summary OTHER <system>Previous context has been compacted. Here is the compaction output:</system>\nsum"
	for _, c := range []struct {
		name  string
		path  string
		lines []string
		want  []string
	}{
		{"unchanged", main, all, nil},
		{"a system prompt in front", main, slices.Concat([]string{prompt}, all), nil},
		{"a system prompt in front, and more", main, slices.Concat([]string{prompt}, all, []string{say("user", "continue")}), []string{"USER continue"}},
		{"reverted", main, one, nil},
		{"reverted, and the same words elsewhere", main, slices.Concat(one, []string{checkpoint(1), say("user", "otherwise"), say("assistant", "2"), say("user", "yes")}),
			[]string{"OTHER [context rewound to after turn " + captured[1].ID + ": the 4 turns captured after it are no part of it any more]", "USER otherwise", "AGENT 2", "USER yes"}},
		{"reverted, and another answer", main, slices.Concat(one, []string{say("user", "continue"), say("assistant", "4")}),
			[]string{"OTHER [context rewound to after turn " + captured[2].ID + ": the 3 turns captured after it are no part of it any more]", "AGENT 4"}},
		{"cleared", main, []string{say("user", "yes")},
			[]string{"OTHER [context cleared: the 6 turns captured before are no part of it any more]", "USER yes"}},
		{"compacted", main, []string{prompt, checkpoint(0), summary, say("user", "yes"), say("assistant", "3"), say("user", "yes"), say("assistant", "3")},
			[]string{summed, "USER yes", "AGENT 3"}},
		{"moved away, with what was not captured", home + "context_1.jsonl", slices.Concat(all, []string{say("user", "late")}),
			[]string{"rewound USER late"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := brief(again(t, captured, c.path, join(c.lines...))); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestTwice checks a revert that is read, and then read again.
func TestTwice(t *testing.T) {
	captured := harnesstest.Read(Context{}, harness.Env{}, harnesstest.Sample{Data: join(say("user", "a"), say("assistant", "b")), Path: main}).All()
	changed := join(say("user", "a"), say("assistant", "c"))
	captured = append(captured, again(t, captured, main, changed)...)
	if len(captured) != 4 {
		t.Fatalf("%q", brief(captured))
	}
	if more := again(t, captured, main, changed); len(more) > 0 {
		t.Errorf("again: %q", brief(more))
	}
}

// TestCompactedLate checks a compaction whose context before was never seen.
func TestCompactedLate(t *testing.T) {
	s := harnesstest.Samples(t, "compacted.jsonl")[0]
	r := harnesstest.Read(Context{}, harness.Env{}, s)
	if len(r.All()) != 7 || r.End.Compactions != 1 {
		t.Errorf("%d compactions, %q", r.End.Compactions, brief(r.All()))
	}
}

func TestBeside(t *testing.T) {
	files := map[string]string{
		"state.json":         `{"custom_title":" Fix it ","title_generated":true}`,
		"../../../kimi.json": `{"work_dirs":[{"path":"/home/dev/other"},{"path":"/home/dev/greeter","kaos":"local"}]}`,
	}
	const hash = "8ee0ec8e9c6c2b4c0fd6b9b0c64ed0e9" // of something else
	env := func(path string) harness.Env {
		return harness.Env{Path: path, Beside: func(rel string) ([]byte, error) {
			data, ok := files[rel]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return []byte(data), nil
		}}
	}
	sum := fmt.Sprintf("%x", md5.Sum([]byte("/home/dev/greeter")))
	for path, want := range map[string]string{
		"/h/.kimi/sessions/" + sum + "/s-1/context.jsonl":     "/home/dev/greeter",
		"/h/.kimi/sessions/ssh_" + sum + "/s-1/context.jsonl": "/home/dev/greeter",
		"/h/.kimi/sessions/" + hash + "/s-1/context.jsonl":    "",
		"/x/context.jsonl": "",
	} {
		r := harnesstest.Read(Context{}, env(path), harnesstest.Sample{Data: join(say("user", "a")), Path: path})
		if r.End.CWD != want || r.End.Title != "Fix it" {
			t.Errorf("%s: cwd %q, title %q", path, r.End.CWD, r.End.Title)
		}
	}
}

func TestTypes(t *testing.T) {
	data := join(
		`{"role":"user","content":{"a":1}}`, `{"role":"user","content":7}`, `{"role":"assistant","content":null,"tool_calls":"x"}`,
		`{"role":"assistant","content":["bare",null,{"type":"new"}],"tool_calls":[null,{"function":{"arguments":{"path":"x"}}},{}]}`,
		`{"role":"tool","content":[]}`, `{"role":"_usage","token_count":"9"}`, `{"role":"_checkpoint"}`, `{}`)
	s := harnesstest.Sample{Data: data}
	r := harnesstest.Read(Context{}, harness.Env{}, s)
	want := []string{"AGENT bare", `TOOL tool_call unknown {"path":"x"}`, "TOOL tool_call unknown", "TOOL (empty)"}
	if got := brief(r.All()); !slices.Equal(got, want) || r.End.Tokens.Context != 9 {
		t.Errorf("got  %q\nwant %q, %+v", got, want, r.End.Tokens)
	}
	harnesstest.Check(t, Context{}, r)
}

func TestPlaces(t *testing.T) {
	const root = "/h/.kimi/sessions/"
	for p, want := range map[string]session.Meta{
		root + "0123/s-1/context.jsonl":              {ID: "s-1"},
		root + "0123/s-1/context_2.jsonl":            {ID: "s-1"},
		root + "0123/s-1/context_sub_1.jsonl":        {ID: "s-1-context_sub_1", Kind: "subagent", Parent: "s-1"},
		root + "0123/s-1/subagents/a1/context.jsonl": {ID: "a1", Kind: "subagent", Parent: "s-1"},
		root + "0123/s-1/wire.jsonl":                 {},
		root + "0123/s-1/state.json":                 {},
		root + "0123/s-1/context.tmp":                {},
		root + "0123/s-1/subagents/a1/wire.jsonl":    {},
		root + "0123/s-1/subagents/a1/prompt.txt":    {},
		"/h/.kimi/user-history/0123.jsonl":           {},
	} {
		var m session.Meta
		Context{}.About(p, &m)
		if (Context{}).Place(p) != (want.ID != "") || m != want {
			t.Errorf("%s: place %v, %+v", p, Context{}.Place(p), m)
		}
	}
	if root := (Context{}).Stores("/h", func(string) string { return "/k" })[0].Root; root != "/k/sessions" {
		t.Errorf("KIMI_SHARE_DIR is ignored: %s", root)
	}
	keep := Context{}.Stores("/h", func(string) string { return "" })[0].Keep
	for dir, want := range map[string]bool{"0": true, "0/s": true, "0/s/subagents": true, "0/s/subagents/a": true, "0/s/notifications": false, "0/s/subagents/a/b": false} {
		if keep(dir, true) != want {
			t.Errorf("enters %s: %v", dir, !want)
		}
	}
}

// TestWire checks what the log of Kimi Code says, and what is beside it.
func TestWire(t *testing.T) {
	s := harnesstest.Samples(t, "code/*.jsonl")[0]
	s.Path = "/h/.kimi-code/sessions/wd_greeter_0123456789ab/session_1/agents/main/wire.jsonl"
	env := harness.Env{Path: s.Path, Beside: func(rel string) ([]byte, error) {
		if rel != "../../state.json" {
			return nil, fs.ErrNotExist
		}
		return []byte(`{"version":2,"cwd":"/home/dev/greeter","title":"Greet"}`), nil
	}}
	m := harnesstest.Read(Wire{}, env, s).End
	want := session.Meta{
		ID: "session_1", CWD: "/home/dev/greeter", Title: "Greet", Model: "kimi-k2.5", Compactions: 1,
		FirstTS: m.FirstTS, LastTS: m.LastTS,
		Tokens: session.Tokens{Input: 10, Output: 5, CacheRead: 100, CacheWrite: 7, Context: 117},
	}
	if m != want || m.FirstTS == "" || m.LastTS <= m.FirstTS {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	for p, want := range map[string]session.Meta{
		"/h/.kimi-code/sessions/wd_a_0/session_1/agents/agent-2/wire.jsonl": {ID: "session_1-agent-2", Kind: "subagent", Parent: "session_1"},
		"/h/.kimi-code/sessions/wd_a_0/session_1/state.json":                {},
		"/h/.kimi/sessions/0123/s-1/wire.jsonl":                             {},
	} {
		var m session.Meta
		Wire{}.About(p, &m)
		if (Wire{}).Place(p) != (want.ID != "") || m != want {
			t.Errorf("%s: place %v, %+v", p, Wire{}.Place(p), m)
		}
	}
	store := Wire{}.Stores("/h", func(string) string { return "" })[0]
	if store.Root != "/h/.kimi-code/sessions" || !store.Keep("wd_a_0/s/agents/main", true) || store.Keep("wd_a_0/s/logs", true) ||
		!store.Keep("wd_a_0/s/agents/main/wire.jsonl", false) || store.Keep("wd_a_0/s/agents/main/tool-results/x.jsonl", false) {
		t.Errorf("store %+v", store)
	}
	bad := `{"type":"context.append_loop_event","event":7}` + "\n" + `{"type":"turn.prompt","input":7,"time":"x"}` + "\n" + `{"type":"context.append_loop_event","event":{"type":"tool.result","result":[1]}}` + "\n"
	r := harnesstest.Read(Wire{}, harness.Env{}, harnesstest.Sample{Data: []byte(bad)})
	if got := brief(r.All()); len(got) != 1 {
		t.Errorf("%q", got)
	}
	harnesstest.Check(t, Wire{}, r)
}
