package cline

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// decode reads one state of a task, what is still coming in included.
func decode(env harness.Env, data string) (harness.Out, error) {
	d, _ := Cline.Decoder(nil, env)
	out := harness.Out{Meta: &session.Meta{}}
	err := d.Decode([]byte(data), harness.Position{}, &out)
	if err == nil && d.Pending() {
		d.Flush(&out)
	}
	return out, err
}

func texts(out harness.Out) (list []string) {
	for _, t := range out.Turns {
		list = append(list, string(t.Class)+" "+t.Text)
	}
	return list
}

const head = `{"ts":1777073160000,"type":"say","say":"task","text":"do it"}`

// A message that comes in is written again under its time until it is whole. It
// counts when it is, or when another follows it.
func TestPartial(t *testing.T) {
	state := func(messages ...string) harnesstest.Sample {
		return harnesstest.Sample{Data: []byte("[" + strings.Join(append([]string{head}, messages...), ",") + "]")}
	}
	at := func(kind, text, rest string) string {
		return `{"ts":1777073160500,"type":"say","say":"` + kind + `","text":"` + text + `"` + rest + `}`
	}
	states := []harnesstest.Sample{
		state(), state(at("text", "I", `,"partial":true`)), state(at("text", "I wi", `,"partial":true`)),
		state(at("text", "I will", `,"partial":false`)),
		state(at("text", "I will", ""), `{"ts":1777073161000,"type":"ask","ask":"tool","text":"{\"tool\":\"rea","partial":true}`),
		state(at("text", "I will", ""), `{"ts":1777073161000,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\"}","partial":false}`),
		state(at("text", "I will", ""), `{"ts":1777073161000,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\"}"}`,
			`{"ts":1777073162000,"type":"say","say":"reasoning","text":"stop","partial":true}`, `{"ts":1777073163000,"type":"ask","ask":"resume_task"}`),
	}
	harnesstest.States(t, Cline, states...)
	for i, want := range [][]string{
		{"USER do it"}, {"USER do it", "AGENT I"}, {"USER do it", "AGENT I wi"}, {"USER do it", "AGENT I will"},
	} {
		out, err := decode(harness.Env{}, string(states[i].Data))
		if err != nil || !slices.Equal(texts(out), want) {
			t.Errorf("state %d: %q %v", i, texts(out), err)
		}
	}
	if r := harnesstest.Read(Cline, harness.Env{}, states[2]); len(r.Decided) != 1 {
		t.Errorf("decided while it comes in: %+v", r.Decided)
	}
}

// What is torn is no document, so that what was captured stays; an array that
// lacks only its end is read (cline/cline#2321, RooCodeInc/Roo-Code#4311).
func TestTorn(t *testing.T) {
	whole := "[" + head + `,{"ts":1777073160500,"type":"say","say":"text","text":"a } b","x":{"y":[1]}}]`
	for n := range whole {
		out, err := decode(harness.Env{}, whole[:n])
		want := 0
		switch {
		case n == len(whole)-1:
			want = 2
		case n == len("[")+len(head), n == len("[")+len(head)+1:
			want = 1
		}
		if len(out.Turns) != want || (err == nil) != (want > 0) {
			t.Errorf("cut at %d: %q, %v", n, texts(out), err)
		}
		if err != nil && !harness.Syntax(err) {
			t.Errorf("cut at %d, which can still be mended: %v", n, err)
		}
	}
	for data, want := range map[string]int{"[]": 0, "\ufeff" + whole + "\n": 2, whole + "\x00\x00": 2} {
		if out, err := decode(harness.Env{}, data); err != nil || len(out.Turns) != want {
			t.Errorf("%.20q: %q %v", data, texts(out), err)
		}
	}
	for _, data := range []string{"{}", "[1]", `[{"a":1}]`, `[{"id":"1","ts":1777073160000,"task":"x"}]`} {
		var r *harness.Rejection
		if _, err := decode(harness.Env{}, data); !errors.As(err, &r) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// beside is an Env of a file with others beside it.
func beside(name string, files map[string]string) harness.Env {
	return harness.Env{Path: filepath.Join("/h", "tasks", "0190", name), Beside: func(rel string) ([]byte, error) {
		switch text, ok := files[rel]; {
		case !ok:
			return nil, fs.ErrNotExist
		case text == "too large":
			return nil, errors.New(text)
		default:
			return []byte(text), nil
		}
	}}
}

// The two files of a task are one session.
func TestTwin(t *testing.T) {
	const spoken = `[{"role":"user","ts":1777073160000,"content":[{"type":"text","text":"<task>\ndo it\n</task>"}]}]`
	for name, c := range map[string]struct {
		own     string
		files   map[string]string
		refused bool
	}{
		"alone":               {historyFile, nil, false},
		"beside messages":     {historyFile, map[string]string{messagesFile: "[" + head + "]"}, true},
		"beside old messages": {historyFile, map[string]string{oldMessagesFile: "[" + head + "]"}, true},
		"beside large ones":   {historyFile, map[string]string{messagesFile: "too large"}, true},
		"beside none":         {historyFile, map[string]string{messagesFile: "[]"}, false},
		"a copy":              {"copy.json", map[string]string{messagesFile: "[" + head + "]"}, false},
	} {
		out, err := decode(beside(c.own, c.files), spoken)
		if c.refused != (err != nil) || c.refused != (len(out.Turns) == 0) {
			t.Errorf("%s: %q %v", name, texts(out), err)
		}
		if err != nil && (!fault.Is(err, fault.Unsupported) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nor is it read when the messages were captured and are gone.
func TestTwinCaptured(t *testing.T) {
	const spoken = `[{"role":"user","ts":1777073160000,"content":[{"type":"text","text":"<task>\ndo it\n</task>"}]}]`
	messages, _ := harnesstest.Turns(Cline, []byte("["+head+"]"), "")
	history, _ := harnesstest.Turns(Cline, []byte(spoken), "")
	for name, c := range map[string]struct {
		id      string
		turns   []turn.Turn
		refused bool
	}{
		"from its messages": {"0190", messages, true}, "from the same": {"0190", history, false}, "another task": {"0191", messages, false},
	} {
		env := beside(historyFile, nil)
		env.Session = harnesstest.Known(map[string][]turn.Turn{c.id: c.turns}).Session
		if _, err := decode(env, spoken); (err != nil) != c.refused || err != nil && !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBeside(t *testing.T) {
	const list = `[{"id":"0190","ts":1,"task":"listed","cwdOnTaskInitialization":"/cwd","modelId":"m"},{"id":"0191","task":"other","cwdOnTaskInitialization":"/other"}]`
	for name, c := range map[string]struct {
		files map[string]string
		want  session.Meta
	}{
		"nothing":      {nil, session.Meta{Title: "do it"}},
		"own item":     {map[string]string{"history_item.json": `{"id":"0190","workspace":"/ws","parentTaskId":"0180","task":"x"}`, "../../state/taskHistory.json": list}, session.Meta{Title: "do it", CWD: "/ws", Kind: "subagent", Parent: "0180"}},
		"another's":    {map[string]string{"history_item.json": `{"id":"0999","workspace":"/ws"}`}, session.Meta{Title: "do it"}},
		"list":         {map[string]string{"../../state/taskHistory.json": list, "task_metadata.json": `{"model_usage":[{"model_id":"a"},{"model_id":"b"}]}`}, session.Meta{Title: "do it", CWD: "/cwd", Model: "b"}},
		"half written": {map[string]string{"../../state/taskHistory.json": list[:60], "task_metadata.json": `{"model_usage":[{"model_id":"a"}`}, session.Meta{Title: "do it"}},
	} {
		out, err := decode(beside(messagesFile, c.files), "["+head+"]")
		got := *out.Meta
		got.FirstTS, got.LastTS = "", ""
		if err != nil || got != c.want {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

// The request of a turn is told in full by the messages around it.
func TestRequests(t *testing.T) {
	request, _ := json.Marshal(map[string]any{"request": strings.Repeat("SECRET ", 9), "tokensIn": 7, "tokensOut": "x", "cacheReads": -3})
	text, _ := json.Marshal(string(request))
	out, err := decode(harness.Env{}, `[`+head+`,{"ts":1777073160100,"type":"say","say":"api_req_started","text":`+string(text)+`},{"ts":1777073160200,"type":"say","say":"api_req_started","text":"{torn"}]`)
	if err != nil || strings.Contains(strings.Join(texts(out), ""), "SECRET") || len(out.Turns) != 1 {
		t.Errorf("%q %v", texts(out), err)
	}
	if out.Meta.Tokens != (session.Tokens{Input: 7, Context: 7}) {
		t.Errorf("tokens %+v", out.Meta.Tokens)
	}
}

// What asks about a result says the result again, unless it says more.
func TestResultAskedAbout(t *testing.T) {
	ask := func(text string) string {
		return `[` + head + `,{"ts":1777073160100,"type":"say","say":"completion_result","text":"done HAS_CHANGES"},{"ts":1777073160200,"type":"ask","ask":"completion_result","text":"` + text + `"}]`
	}
	for text, want := range map[string]int{"": 2, "done": 2, "doneHAS_CHANGES": 2, "also this": 3} {
		if out, err := decode(harness.Env{}, ask(text)); err != nil || len(out.Turns) != want {
			t.Errorf("%q: %q %v", text, texts(out), err)
		}
	}
}

func TestTypes(t *testing.T) {
	data := `[null,7,"x",` + head + `,
		{"ts":"1777073160100","type":"say","say":"text","text":["a"]},
		{"ts":1777073160200,"type":"say","say":{"a":1},"text":"b"},
		{"ts":1777073160300,"type":"ask","ask":"tool","text":"not JSON"},
		{"ts":1777073160400,"type":"ask","ask":"tool","text":"{\"tool\":7,\"path\":{}}","images":"x","files":3},
		{"ts":1777073160500,"type":"ask","ask":"followup","text":"{\"question\":null}"},
		{"ts":1777073160600,"type":"ask","ask":"use_mcp_server","text":"[]"},
		{"ts":1777073160700,"type":"say","say":"condense_context","contextCondense":"x"}]`
	out, err := decode(harness.Env{}, data)
	want := []string{"USER do it", "TOOL tool_call unknown not JSON", `TOOL tool_call 7 {"tool":7,"path":{}}`, `AGENT {"question":null}`, "TOOL tool_call unknown []", "OTHER (context condensed)"}
	if err != nil || !slices.Equal(texts(out), want) {
		t.Errorf("%q %v", texts(out), err)
	}
}

func TestPlaces(t *testing.T) {
	for p, want := range map[string]string{
		"/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1777/ui_messages.json":                "cline 1777",
		"/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1777/api_conversation_history.json":   "cline 1777",
		"/h/.cline/data/tasks/1777/ui_messages.json":                                                           "cline 1777",
		"/h/.vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline/tasks/0190-a/ui_messages.json":   "roo 0190-a",
		"/h/Library/Application Support/Cursor/User/globalStorage/kilocode.kilo-code/tasks/b/ui_messages.json": "kilo b",
		"/h/.kilocode/cli/global/tasks/b/ui_messages.json":                                                     "kilo b",
		"/elsewhere/c/ui_messages.json":                                                                        " c",
		"/h/.cline/data/tasks/1777/task_metadata.json":                                                         " ",
		"ui_messages.json": " ",
	} {
		var own string
		var m session.Meta
		for _, f := range []Format{Cline, Roo, Kilo} {
			if f.Place(p) {
				own = f.Traits().Harness
			}
			f.About(p, &m)
		}
		if got := own + " " + m.ID; got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
	roots := map[string]bool{}
	for _, f := range []Format{Cline, Roo, Kilo} {
		for _, s := range f.Stores("/h", func(name string) string {
			return map[string]string{"XDG_CONFIG_HOME": "/x", "APPDATA": "/a", "CLINE_DIR": "/c"}[name]
		}) {
			roots[filepath.ToSlash(s.Root)] = true
			if !s.Keep("1777", true) || s.Keep("1777/checkpoints", true) || !s.Keep("1777/ui_messages.json", false) ||
				s.Keep("1777/api_conversation_history.json", false) || s.Keep("1777/task_metadata.json", false) || s.Keep("ui_messages.json", false) {
				t.Errorf("%s keeps the wrong files", s.Root)
			}
		}
	}
	for _, want := range []string{
		"/x/Code/User/globalStorage/saoudrizwan.claude-dev/tasks", "/x/VSCodium/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
		"/a/Code - Insiders/User/globalStorage/kilocode.kilo-code/tasks", "/h/.cursor-server/data/User/globalStorage/kilocode.kilo-code/tasks",
		"/h/Library/Application Support/Windsurf/User/globalStorage/saoudrizwan.claude-dev/tasks", "/c/data/tasks", "/h/.kilocode/cli/global/tasks",
	} {
		if !roots[want] {
			t.Errorf("%s is not looked at", want)
		}
	}
}
