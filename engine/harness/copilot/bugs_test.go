package copilot

import (
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

func event1(id, kind, data string) string {
	return fmt.Sprintf(`{"type":%q,"data":%s,"id":%q,"timestamp":"2026-05-04T10:00:00.000Z","parentId":null}`, kind, data, id)
}

func user(id, text string) string { return event1(id, "user.message", `{"content":"`+text+`"}`) }

func brief(turns []turn.Turn) []string {
	var list []string
	for _, t := range turns {
		list = append(list, string(t.Class)+" "+t.Text)
	}
	return list
}

func TestBugs(t *testing.T) {
	done := func(text string) string {
		return event1("r", "tool.execution_complete", `{"toolCallId":"c","success":true,"result":{"content":"`+text+`"}}`)
	}
	nuls := strings.Repeat("\x00", 1206)
	start := event1("s", "session.start", `{"sessionId":"x","copilotVersion":"1.0.1","context":{"cwd":"/p"}}`)
	for _, c := range []struct {
		bug     string
		data    string
		want    []string
		rejects int
		unknown []string
	}{
		{"G1 raw line separators", start + "\n" + user("a", "one\u2028two\u2029three\u0085four") + "\n" + user("b", "next") + "\n",
			[]string{"USER one\u2028two\u2029three\u0085four", "USER next"}, 0, nil},
		{"G1 a large event", start + "\n" + done(strings.Repeat("\u2028x", 400_000)) + "\n" + user("b", "next") + "\n",
			[]string{"TOOL " + strings.Repeat("\u2028x", 400_000), "USER next"}, 0, nil},
		{"G2 a truncated event and the whole one on its line", start + "\n" + user("a", "the whole prompt")[:60] + user("a", "the whole prompt") + "\n" + user("b", "next") + "\n",
			[]string{"USER the whole prompt", "USER next"}, 1, nil},
		{"G2 cut inside an escape", start + "\n" + strings.Split(user("a", `say \"hi\" now`), `hi`)[0] + user("a", `say \"hi\" now`) + "\n",
			[]string{`USER say "hi" now`}, 1, nil},
		{"G3 raw newlines inside a string", start + "\n" + done("line one\nline two\nline three") + "\n" + user("b", "next") + "\n",
			[]string{"TOOL line one\nline two\nline three", "USER next"}, 0, nil},
		{"G3 raw newlines around empty lines and braces", start + "\n" + done("{\n\n  {}\n}\nend") + "\n" + user("b", "next") + "\n",
			[]string{"TOOL {\n\n  {}\n}\nend", "USER next"}, 0, nil},
		{"G3 never completed", start + "\n" + done("line one\nline two")[:150] + "\n" + user("b", "next") + "\n",
			[]string{"USER next"}, 2, nil},
		{"G4 NULs at the end, then later events", start + "\n" + user("a", "one") + "\n" + nuls + user("b", "two") + "\n",
			[]string{"USER one", "USER two"}, 1, nil},
		{"G4 NULs on a line of their own", start + "\n" + user("a", "one") + "\n" + nuls + "\n" + user("b", "two") + "\n",
			[]string{"USER one", "USER two"}, 1, nil},
		{"G4 NULs at the very end", start + "\n" + user("a", "one") + "\n" + nuls, []string{"USER one"}, 0, nil},
		{"G5 several segments", start + "\n" + user("a", "one") + "\n" + event1("q", "session.shutdown", `{"shutdownType":"routine"}`) + "\n" +
			event1("s2", "session.start", `{"sessionId":"y","context":{"cwd":"/q","branch":"b2"}}`) + "\n" + user("b", "two") + "\n" +
			event1("s3", "session.resume", `{"context":{"branch":"b3"}}`) + "\n" + user("c", "three") + "\n",
			[]string{"USER one", "USER two", "USER three"}, 0, nil},
		{"G6 unknown types and fields", start + "\n" + event1("a", "session.something_new", `{"x":[1]}`) + "\n" + event1("b", "galaxy.brain", `{}`) + "\n" +
			event1("c", "user.message", `{"content":"one","novel":{"a":[]}}`) + "\n" + event1("d", "assistant.message", `{"content":"two","toolRequests":null}`) + "\n",
			[]string{"USER one", "AGENT two"}, 0, []string{"galaxy.brain"}},
		{"H7 a byte order mark", "\ufeff" + start + "\n" + user("a", "one") + "\n", []string{"USER one"}, 0, nil},
		{"H10 fields of other types", start + "\n" + event1("a", "user.message", `{"content":7,"attachments":"x"}`) + "\n" +
			event1("b", "assistant.message", `{"content":{"a":1},"toolRequests":[null,{"arguments":"{\"command\":\"ls\"}","name":"bash"}],"outputTokens":"12"}`) + "\n" +
			event1("c", "tool.execution_complete", `{"success":"yes","result":null}`) + "\n" + event1("d", "session.shutdown", `{"modelMetrics":{"m":{"usage":7}}}`) + "\n",
			[]string{"USER 7", `TOOL tool_call bash {"command":"ls"}`, "TOOL (empty)"}, 0, nil},
	} {
		t.Run(c.bug, func(t *testing.T) {
			s := harnesstest.Sample{Data: []byte(c.data)}
			r := harnesstest.Read(Events{}, harness.Env{}, s)
			if got := brief(r.All()); !slices.Equal(got, c.want) {
				t.Errorf("got  %.300q\nwant %.300q", got, c.want)
			}
			if len(r.Rejects) != c.rejects || !slices.Equal(r.Unknown, c.unknown) {
				t.Errorf("%d rejected, unknown %q", len(r.Rejects), r.Unknown)
			}
			harnesstest.Check(t, Events{}, r)
			if len(c.data) < 1<<16 {
				harnesstest.Cuts(t, Events{}, harness.Env{}, s)
			}
		})
	}
}

// TestSegments checks what several runs of one session say of it.
func TestSegments(t *testing.T) {
	_, m := harnesstest.Turns(Events{}, harnesstest.Samples(t, "session.jsonl")[0].Data, "/h/.copilot/session-state/6b0e/events.jsonl")
	want := session.Meta{
		ID: "6b0e", CWD: "/home/dev/greeter", Branch: "fix", Model: "claude-opus-4.8", Version: "1.0.64", Compactions: 1,
		FirstTS: "2026-05-04T10:00:00.250Z", LastTS: "2026-05-04T10:01:05.250Z",
		Tokens: session.Tokens{Input: 300, Output: 150, CacheRead: 800, CacheWrite: 50, Context: 510, Window: 128000},
	}
	if m != want {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
}

func TestTitle(t *testing.T) {
	env := harness.Env{Beside: func(rel string) ([]byte, error) {
		if rel != "workspace.yaml" {
			return nil, fs.ErrNotExist
		}
		return []byte("id: x\nsummary: \"Fix the: greeting\"\r\nsummary_count: 1\ncwd: /p\nname: |-\n  block\n"), nil
	}}
	r := harnesstest.Read(Events{}, env, harnesstest.Sample{Data: []byte(user("a", "one") + "\n")})
	if r.End.Title != "Fix the: greeting" {
		t.Errorf("title %q", r.End.Title)
	}
}

func TestPlaces(t *testing.T) {
	for p, want := range map[string]string{
		"/h/.copilot/session-state/6b0e/events.jsonl":        "6b0e",
		"/h/.copilot/session-state/6b0e.jsonl":               "6b0e",
		"/h/.copilot/session-state/6b0e/plan.md":             "",
		"/h/.copilot/session-state/6b0e/workspace.yaml":      "",
		"/h/.copilot/session-state/6b0e/files/events.jsonl":  "",
		"/h/.copilot/session-state/6b0e/checkpoints/x.jsonl": "",
		"/h/.copilot/command-history.jsonl":                  "",
		"/elsewhere/events.jsonl":                            "",
	} {
		var m session.Meta
		Events{}.About(p, &m)
		if (Events{}).Place(p) != (want != "") || m.ID != want {
			t.Errorf("%s: place %v, id %q", p, Events{}.Place(p), m.ID)
		}
	}
	env := func(string) string { return "/elsewhere" }
	if got := (Events{}).Stores("/h", env)[0].Root; got != "/elsewhere/session-state" {
		t.Errorf("COPILOT_HOME is ignored: %s", got)
	}
	keep := Events{}.Stores("/h", func(string) string { return "" })[0].Keep
	if !keep("6b0e", true) || keep("6b0e/files", true) || !keep("6b0e/events.jsonl", false) || keep("6b0e/session.db", false) {
		t.Error("the store keeps other files")
	}
}
