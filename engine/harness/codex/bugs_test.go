package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// The lines of a rollout, without their times.
const (
	own   = `"type":"session_meta","payload":{"id":"019faaaa-0000-7000-8000-000000000001","cwd":"/p","cli_version":"0.145.0","source":"cli"}`
	turn1 = `"type":"turn_context","payload":{"turn_id":"t1","cwd":"/p","model":"gpt-5.5"}`
	turn2 = `"type":"turn_context","payload":{"turn_id":"t2","cwd":"/p","model":"gpt-5.5"}`
)

func says(role, text string) string {
	part := "input_text"
	if role == "assistant" {
		part = "output_text"
	}
	return fmt.Sprintf(`"type":"response_item","payload":{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}`, role, part, text)
}

func event(fields string) string { return `"type":"event_msg","payload":{` + fields + `}` }

func spoke(kind, text string) string { return event(fmt.Sprintf(`"type":%q,"message":%q`, kind, text)) }

func item(fields string) string { return `"type":"response_item","payload":{` + fields + `}` }

// rollout makes a file of lines, each a second later than the one before.
func rolloutOf(lines ...string) []byte {
	var b strings.Builder
	for i, line := range lines {
		if strings.HasPrefix(line, "{") {
			b.WriteString(line + "\n")
			continue
		}
		fmt.Fprintf(&b, "{\"timestamp\":\"2026-08-01T10:%02d:%02d.000Z\",%s}\n", i/60, i%60, line)
	}
	return []byte(b.String())
}

// brief lists turns as "CLASS text".
func brief(turns []turn.Turn) []string {
	var list []string
	for _, t := range turns {
		list = append(list, string(t.Class)+" "+t.Text)
	}
	return list
}

func TestBugs(t *testing.T) {
	image := "data:image/png;base64," + strings.Repeat("iVBORw0K", 1000)
	for _, c := range []struct {
		bug   string
		lines []string
		want  []string
		meta  func(session.Meta) bool
	}{
		{"B1 partial record, retried on a line of its own", []string{own,
			`{"timestamp":"2026-08-01T10:00:01.000Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"thin`,
			item(`"type":"reasoning","summary":[{"type":"summary_text","text":"thinking"}]`),
		}, []string{"THOUGHT thinking"}, nil},
		{"B6 picture in a message and in a result", []string{own, turn1,
			item(`"type":"message","role":"user","content":[{"type":"input_image","image_url":"` + image + `"}]`),
			item(`"type":"function_call","name":"view","arguments":"{}","call_id":"c"`),
			item(`"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"` + image + `"}]`),
			item(`"type":"function_call_output","call_id":"d","output":"see ` + image + ` end"`),
		}, []string{"USER [image]", "TOOL function_call view {}", "TOOL [image]", "TOOL see [image] end"}, nil},
		{"B7 replacement_history is no turns", []string{own, turn1,
			`"type":"compacted","payload":{"message":"sum","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"old"}]}]}`,
			event(`"type":"context_compacted"`),
		}, []string{"OTHER sum"}, func(m session.Meta) bool { return m.Compactions == 1 }},
		{"B7 the event before the record", []string{own, turn1,
			event(`"type":"context_compacted"`), `"type":"compacted","payload":{"message":""}`,
		}, []string{"OTHER (context compacted)"}, func(m session.Meta) bool { return m.Compactions == 1 }},
		{"B10 stdout three times", []string{own, turn1,
			item(`"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"c"`),
			event(`"type":"item_completed","turn_id":"t1","item":{"type":"CommandExecution","id":"c","command":["ls"],"stdout":"a","aggregated_output":"a","formatted_output":"a","exit_code":0,"status":"completed"}`),
			item(`"type":"function_call_output","call_id":"c","output":"a"`),
		}, []string{`TOOL function_call exec_command {"cmd":"ls"}`, "TOOL a"}, nil},
		{"B10 the event before both", []string{own, turn1,
			event(`"type":"exec_command_end","call_id":"c","command":["ls"],"aggregated_output":"a","exit_code":0`),
			item(`"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"c"`),
			item(`"type":"function_call_output","call_id":"c","output":"a"`),
		}, []string{`TOOL function_call exec_command {"cmd":"ls"}`, "TOOL a"}, nil},
		{"B12 item_completed and legacy event and item", []string{own, turn1,
			says("user", "hi"),
			event(`"type":"item_completed","turn_id":"t1","item":{"type":"UserMessage","id":"u","content":[{"type":"text","text":"hi"}]}`),
			spoke("user_message", "hi"),
			spoke("agent_message", "yo"),
			event(`"type":"item_completed","turn_id":"t1","item":{"type":"AgentMessage","id":"a","content":[{"type":"Text","text":"yo"}]}`),
			says("assistant", "yo"),
		}, []string{"USER hi", "AGENT yo"}, nil},
		{"B12 no item at all", []string{own, turn1,
			event(`"type":"item_completed","turn_id":"t1","item":{"type":"UserMessage","id":"u","content":[{"type":"text","text":"hi"}]}`),
			spoke("user_message", "hi"),
			event(`"type":"item_completed","turn_id":"t1","item":{"type":"AgentMessage","id":"a","content":[{"type":"Text","text":"yo"}]}`),
		}, []string{"USER hi", "AGENT yo"}, nil},
		{"B13 only items", []string{own, turn1, says("user", "hi"), says("assistant", "yo")},
			[]string{"USER hi", "AGENT yo"}, nil},
		{"B15 no header", []string{`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`},
			[]string{"USER hi"}, func(m session.Meta) bool { return m.ID == "" && m.FirstTS == "" }},
		{"B21 reasoning in content", []string{own, turn1,
			item(`"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"deep"}]`),
			item(`"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"content":[{"type":"text","text":"s"},{"type":"text","text":"more"}]`),
			item(`"type":"reasoning","summary":[],"encrypted_content":"gAAA"`),
		}, []string{"THOUGHT deep", "THOUGHT s\n\nmore"}, nil},
		{"B22 no turn_context", []string{
			`"type":"session_meta","payload":{"id":"x","cwd":"/g","originator":"grok"}`, says("user", "hi"), spoke("user_message", "hi"),
		}, []string{"USER hi"}, func(m session.Meta) bool { return m.Model == "" && m.ID == "x" }},
		{"B23 imported session", []string{own,
			event(`"type":"task_started","turn_id":"external-import-turn-1"`), says("user", "hi"),
		}, []string{"USER hi"}, func(m session.Meta) bool { return m.Kind == "import" }},
		{"B24 a turn fails", []string{own, turn1, says("user", "hi"),
			event(`"type":"task_complete","turn_id":"t1","last_agent_message":null,"error":"stream disconnected"`),
		}, []string{"USER hi", "OTHER [turn failed: stream disconnected]"}, nil},
		{"B27 event before its item", []string{own, turn1,
			spoke("user_message", "hi"), says("user", "hi"), spoke("agent_message", "yo"), says("assistant", "yo"),
		}, []string{"USER hi", "AGENT yo"}, nil},
		{"B27 prompt before its turn starts", []string{own, turn1, says("user", "a"), says("assistant", "b"),
			says("user", "again"), event(`"type":"task_started","turn_id":"t2"`), spoke("user_message", "again"), turn2,
		}, []string{"USER a", "AGENT b", "USER again"}, nil},
		{"B27 event before its turn starts", []string{own, turn1, says("user", "a"), says("assistant", "b"),
			spoke("user_message", "again"), event(`"type":"task_started","turn_id":"t2"`), says("user", "again"), turn2,
		}, []string{"USER a", "AGENT b", "USER again"}, nil},
		{"the same prompt in every turn stays", []string{own, turn1,
			says("user", "continue"), spoke("user_message", "continue"), event(`"type":"task_complete","turn_id":"t1"`), turn2,
			says("user", "continue"), spoke("user_message", "continue"),
			says("user", "continue"), spoke("user_message", "continue"),
		}, []string{"USER continue", "USER continue", "USER continue"}, nil},
		{"the same answer twice in a turn stays", []string{own, turn1,
			spoke("agent_message", "ok"), says("assistant", "ok"), spoke("agent_message", "ok"), says("assistant", "ok"),
			spoke("agent_message", "no"), `"type":"world_state","payload":{}`, spoke("agent_message", "no"), says("assistant", "no"), says("assistant", "no"),
		}, []string{"AGENT ok", "AGENT ok", "AGENT no", "AGENT no"}, nil},
		{"an event that stands alone keeps its place", []string{own, turn1, says("user", "go"),
			spoke("agent_message", "half a sen"), says("assistant", "other"), event(`"type":"turn_aborted","turn_id":"t1","reason":"interrupted"`),
		}, []string{"USER go", "AGENT half a sen", "AGENT other", "OTHER [turn aborted: interrupted]"}, nil},
		{"H10 fields of other types", []string{own, turn1,
			item(`"type":"message","role":"assistant","content":null`),
			item(`"type":"message","role":"assistant","content":"text"`),
			item(`"type":"message","role":7,"content":{"a":1}`),
			item(`"type":"function_call","name":null,"arguments":null,"call_id":5`),
			item(`"type":"function_call_output","call_id":5,"output":null`),
			item(`"type":"reasoning","summary":"none","content":17`),
			event(`"type":"user_message","message":{"a":1},"images":"x"`),
			event(`"type":"token_count","info":"none"`),
			`"type":"session_meta","payload":null`, `"type":"event_msg","payload":[1]`,
		}, []string{"AGENT text", "TOOL function_call unknown", "TOOL (empty)"}, nil},
	} {
		t.Run(c.bug, func(t *testing.T) {
			s := harnesstest.Sample{Data: rolloutOf(c.lines...)}
			r := harnesstest.Read(Rollout{}, harness.Env{}, s)
			if got := brief(r.All()); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if c.meta != nil && !c.meta(r.End) {
				t.Errorf("meta %+v", r.End)
			}
			harnesstest.Check(t, Rollout{}, r)
			harnesstest.Cuts(t, Rollout{}, harness.Env{}, s)
		})
	}
}

// TestBounds checks that what waits for the end of a turn is bounded, and
// that the bounds lose and double nothing.
func TestBounds(t *testing.T) {
	lines := []string{own, turn1, spoke("agent_message", "event only")}
	want := []string{"AGENT event only"}
	for i := range 150 {
		text := fmt.Sprintf("step %d %s", i, strings.Repeat("x", 3000))
		lines = append(lines, item(fmt.Sprintf(`"type":"function_call_output","call_id":"c%d","output":%q`, i, text)))
		want = append(want, "TOOL "+text)
	}
	lines = append(lines, says("assistant", "event only"))
	s := harnesstest.Sample{Data: rolloutOf(lines...)}
	r := harnesstest.Read(Rollout{}, harness.Env{}, s)
	if got := brief(r.All()); !slices.Equal(got, want) {
		t.Errorf("%d turns, want %d", len(got), len(want))
	}
	if len(r.Provisional) > maxHeld {
		t.Errorf("%d turns wait", len(r.Provisional))
	}
	harnesstest.Cuts(t, Rollout{}, harness.Env{}, s)
}

func TestReplay(t *testing.T) {
	const parentID, childID = "019faaaa-0000-7000-8000-0000000000aa", "019faaaa-0000-7000-8000-0000000000bb"
	header := func(id, rest string) string {
		return fmt.Sprintf(`"type":"session_meta","payload":{"id":%q,"cwd":"/p","cli_version":"0.145.0"%s}`, id, rest)
	}
	env := says("user", "<environment_context>\n<cwd>/p</cwd>\n</environment_context>")
	call := item(`"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"c"`)
	output := item(`"type":"function_call_output","call_id":"c","output":"a"`)
	past := []string{env, turn1, says("user", "parent prompt"), call, output, says("assistant", "parent answer"), turn2, says("user", "second")}
	parent := harnesstest.Read(Rollout{}, harness.Env{}, harnesstest.Sample{Data: rolloutOf(append([]string{header(parentID, "")}, past...)...)})
	known := harnesstest.Known(map[string][]turn.Turn{parentID: parent.All()})
	forked := fmt.Sprintf(`,"forked_from_id":%q`, parentID)
	spawned := fmt.Sprintf(`,"source":{"subagent":{"thread_spawn":{"parent_thread_id":%q,"depth":1}}}`, parentID)
	const envTurn = "OTHER <environment_context>\n<cwd>/p</cwd>\n</environment_context>"
	tail := []string{`"type":"turn_context","payload":{"turn_id":"t9"}`, says("user", "own prompt"), says("assistant", "parent answer")}
	for _, c := range []struct {
		name      string
		lines     []string
		env       harness.Env
		want      []string
		inherited int
		kind      string
	}{
		{"B16 fork replays all", slices.Concat([]string{header(childID, forked)}, past, tail), known,
			[]string{"USER own prompt", "AGENT parent answer"}, 6, "fork"},
		{"B16 parent unknown", slices.Concat([]string{header(childID, forked)}, past[:3], tail), harness.Env{},
			[]string{envTurn, "USER parent prompt", "USER own prompt", "AGENT parent answer"}, 0, "fork"},
		{"fork from the middle", slices.Concat([]string{header(childID, forked)}, past[:3], tail), known,
			[]string{"USER own prompt", "AGENT parent answer"}, 2, "fork"},
		{"B18 parent id in the source only, calls left out", slices.Concat([]string{header(childID, spawned)}, past[:3], past[5:], tail), known,
			[]string{"USER own prompt", "AGENT parent answer"}, 4, "subagent"},
		{"B17 no replay, only the same context", slices.Concat([]string{header(childID, spawned), env}, tail), known,
			[]string{envTurn, "USER own prompt", "AGENT parent answer"}, 0, "subagent"},
		{"0.36 resume copies the parent's header", slices.Concat([]string{header(childID, ""), header(parentID, "")}, past, tail), known,
			[]string{"USER own prompt", "AGENT parent answer"}, 6, "fork"},
		{"resume into the same file", slices.Concat([]string{header(childID, "")}, past[:3], []string{header(childID, "")}, tail), known,
			[]string{envTurn, "USER parent prompt", "USER own prompt", "AGENT parent answer"}, 0, ""},
		{"what differs ends the replay", slices.Concat([]string{header(childID, forked)}, past[:3], []string{says("developer", "mine")}, past[5:6]), known,
			[]string{"OTHER mine", "AGENT parent answer"}, 2, "fork"},
		{"a replay and nothing else", slices.Concat([]string{header(childID, forked)}, past), known, nil, 6, "fork"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := harnesstest.Sample{Data: rolloutOf(c.lines...)}
			r := harnesstest.Read(Rollout{}, c.env, s)
			if got := brief(r.All()); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if r.End.ID != childID || r.End.Inherited != c.inherited || r.End.Kind != c.kind {
				t.Errorf("meta %+v", r.End)
			}
			harnesstest.Cuts(t, Rollout{}, c.env, s)
		})
	}
}

// TestUsage checks that a fork's totals leave out the parent's (B19).
func TestUsage(t *testing.T) {
	count := func(in, cached, out, last int) string {
		return event(fmt.Sprintf(`"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d},"last_token_usage":{"total_tokens":%d},"model_context_window":1000}`, in, cached, out, last))
	}
	known := harnesstest.Known(map[string][]turn.Turn{"p": {{Class: turn.User, Text: "old"}, {Class: turn.Agent, Text: "answer"}}})
	s := harnesstest.Sample{Data: rolloutOf(
		`"type":"session_meta","payload":{"id":"c","forked_from_id":"p"}`,
		turn1, says("user", "old"), count(1000, 900, 50, 1050), says("assistant", "answer"), event(`"type":"token_count","info":null`),
		turn2, says("user", "new"), count(2300, 2100, 60, 1310),
	)}
	harnesstest.Cuts(t, Rollout{}, known, s)
	r := harnesstest.Read(Rollout{}, known, s)
	want := session.Tokens{Input: 100, CacheRead: 1200, Output: 10, Context: 1310, Window: 1000}
	if r.End.Tokens != want {
		t.Errorf("tokens %+v, want %+v", r.End.Tokens, want)
	}
}

func TestPlaces(t *testing.T) {
	const id = "019f5c5a-eb02-7ff0-90af-653b66eba9f4"
	const stem = "rollout-2026-07-13T18-41-30-" + id
	for p, want := range map[string][2]bool{ // the JSONL format, the document
		"/h/.codex/sessions/2026/07/13/" + stem + ".jsonl":     {true, false},
		"/h/.codex/sessions/2026/07/13/" + stem + ".jsonl.zst": {true, false},
		"/h/.codex/archived_sessions/" + stem + ".jsonl":       {true, false},
		"/h/.codex/sessions/" + stem + ".json":                 {false, true},
		"/h/.codex/sessions/x/" + stem + " (1).jsonl":          {false, false}, // B20
		"/h/.codex/sessions/x/" + stem + ".jsonl.tmp":          {false, false},
		"/h/.codex/sessions/rollout-compression.lock":          {false, false},
		"/h/.codex/history.jsonl":                              {false, false},
		"/h/.codex/auth.json":                                  {false, false},
		"/h/.codex/" + stem + ".jsonl":                         {false, false},
	} {
		if got := [2]bool{Rollout{}.Place(p), Document{}.Place(p)}; got != want {
			t.Errorf("Place(%q) = %v, want %v", p, got, want)
		}
		for i, f := range []harness.Format{Rollout{}, Document{}} {
			store := f.Stores("/h", func(string) string { return "" })[0]
			rel := strings.TrimPrefix(p, "/h/.codex/")
			if store.Root != "/h/.codex" || store.Keep(rel, false) != want[i] {
				t.Errorf("%s keeps %q: %v, want %v", f.Traits().Key, rel, !want[i], want[i])
			}
		}
		var m session.Meta
		if (Rollout{}).About(p, &m); (want[0] || want[1]) && m.ID != id { // B26
			t.Errorf("About(%q) gives id %q", p, m.ID)
		}
	}
	if root := (Rollout{}).Stores("/h", func(string) string { return "/elsewhere" })[0].Root; root != "/elsewhere" {
		t.Errorf("CODEX_HOME is ignored: %s", root)
	}
}
