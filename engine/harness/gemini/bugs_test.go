package gemini

import (
	"crypto/sha256"
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

const first = `{"sessionId":"s-1","projectHash":"h","startTime":"2026-05-01T09:30:00.000Z","lastUpdated":"2026-05-01T09:30:00.000Z"}`

func message(id, kind, content, rest string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":"2026-05-01T09:31:00.000Z","type":%q,"content":%q%s}`, id, kind, content, rest)
}

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

func TestBugs(t *testing.T) {
	const call = `,"toolCalls":[{"id":"c","name":"ls","args":{},"status":%q,"timestamp":"2026-05-01T09:31:01.000Z"%s}]`
	running := fmt.Sprintf(call, "executing", "")
	done := fmt.Sprintf(call, "success", `,"result":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"a"}}}]`)
	masked := fmt.Sprintf(call, "success", `,"result":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"[masked]"}}}]`)
	const touched = `{"$set":{"lastUpdated":"2026-05-01T09:32:00.000Z"}}`
	for _, c := range []struct {
		bug   string
		lines []string
		want  []string
		meta  func(session.Meta) bool
	}{
		{"C1 only metadata", []string{first, touched}, nil, func(m session.Meta) bool { return m.ID == "s-1" && m.LastTS == "2026-05-01T09:32:00.000Z" }},
		{"one message, growing, with metadata between", []string{first, message("g", "gemini", "", ""), touched, message("g", "gemini", "hi", ""), touched, message("g", "gemini", "hi there", running), message("g", "gemini", "hi there", done)},
			[]string{"AGENT hi there", "TOOL tool_call ls {}", "TOOL a"}, nil},
		{"a message grows after another", []string{first, message("g", "gemini", "hi", running), message("i", "info", "note", ""), message("g", "gemini", "hi", done)},
			[]string{"AGENT hi", "TOOL tool_call ls {}", "OTHER note", "TOOL a"}, nil},
		{"a message changes after another", []string{first, message("g", "gemini", "hi", done), message("i", "info", "note", ""), message("g", "gemini", "ho", masked), message("g", "gemini", "ho", masked), message("j", "info", "end", ""), message("g", "gemini", "ho", masked)},
			[]string{"AGENT hi", "TOOL tool_call ls {}", "TOOL a", "OTHER note", "conflict AGENT ho", "conflict TOOL [masked]", "OTHER end"}, nil},
		{"C3 a checkpoint repeats and masks", []string{first, message("u", "user", "go", ""), message("g", "gemini", "hi", done),
			`{"$set":{"messages":[` + message("n", "user", "new", "") + "," + message("u", "user", "go", "") + "," + message("g", "gemini", "hi", masked) + `]}}`},
			[]string{"USER go", "AGENT hi", "TOOL tool_call ls {}", "TOOL a", "USER new"}, nil},
		{"C6 a batch, then the same bare", []string{first, `{"$set":{"messages":[` + message("u", "user", "go", "") + `]}}`, message("u", "user", "go", ""), message("g", "gemini", "hi", "")},
			[]string{"USER go", "AGENT hi"}, nil},
		{"C7 compressed twice", []string{first, message("s", "user", "<state_snapshot>x</state_snapshot>", ""), message("u", "user", "go", ""), message("s", "user", "<state_snapshot>x</state_snapshot>", "")},
			[]string{"summary OTHER <state_snapshot>x</state_snapshot>", "USER go"}, func(m session.Meta) bool { return m.Compactions == 1 }},
		{"tokens are counted once, and not erased", []string{first, message("g", "gemini", "hi", `,"tokens":{"input":10,"cached":4,"output":2,"thoughts":1}`), message("g", "gemini", "hi", `,"tokens":null`), message("u", "user", "go", ""), message("g", "gemini", "hi", `,"tokens":{"input":10,"cached":4,"output":2}`)},
			[]string{"AGENT hi", "USER go"}, func(m session.Meta) bool {
				return m.Tokens == session.Tokens{Input: 6, CacheRead: 4, Output: 3, Context: 10}
			}},
		{"a rewind to nowhere", []string{first, message("u", "user", "go", ""), `{"$rewindTo":"zzz"}`},
			[]string{"USER go", "approximate-time OTHER [rewound to before message zzz, which is not here: all 1 turns before are taken back]"}, nil},
		{"rewound twice, and once more what is gone", []string{first, message("u", "user", "go", ""), message("g", "gemini", "hi", done), message("v", "user", "no", ""), `{"$rewindTo":"v"}`,
			message("w", "user", "so", ""), `{"$rewindTo":"g"}`, message("x", "user", "or", ""), `{"$rewindTo":"g"}`},
			[]string{"USER go", "AGENT hi", "TOOL tool_call ls {}", "TOOL a", "USER no", "approximate-time OTHER [rewound to before message v: the 1 turns from v#... on are taken back]",
				"USER so", "approximate-time OTHER [rewound to before message g: the 4 turns from g#... on are taken back]",
				"USER or", "approximate-time OTHER [rewound to before message g: the turns from it on are taken back]"}, nil},
		{"a patch masks a result and removes a message", []string{first, message("u", "user", "go", ""), message("g", "gemini", "hi", done),
			`{"$patch":{"id":"g","toolCalls":[{"id":"c","result":null}]}}`, `{"$patch":{"removeIds":["u"],"orderIds":["g"]}}`},
			[]string{"USER go", "AGENT hi", "TOOL tool_call ls {}", "TOOL a", "approximate-time OTHER [removed from the conversation: 1 messages, 1 turns: u]"}, nil},
		{"a result repeated as a user message", []string{first, message("g", "gemini", "", done),
			`{"id":"u","timestamp":"2026-05-01T09:33:00.000Z","type":"user","content":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"a, again"}}}]}`},
			[]string{"TOOL tool_call ls {}", "TOOL a"}, nil},
		{"H10 fields of other types", []string{first,
			`{"id":"a","timestamp":5,"type":"gemini","content":null,"thoughts":"x","toolCalls":{"a":1},"tokens":7}`,
			`{"id":"b","type":"user","content":{"text":"one part"}}`, `{"id":"c","type":"user","content":17}`, `{"$set":null}`, `{"$rewindTo":{}}`,
			`{"id":"d","timestamp":"2026-05-01T09:33:00.000Z","type":"gemini","content":["a",{"text":"b"},null],"toolCalls":[null,{"args":[1],"status":"error"}]}`},
			[]string{"approximate-time USER one part", "AGENT a\nb", "TOOL tool_call unknown [1]", "TOOL (empty)"}, nil},
	} {
		t.Run(c.bug, func(t *testing.T) {
			s := harnesstest.Sample{Data: []byte(strings.Join(c.lines, "\n") + "\n")}
			r := harnesstest.Read(Log{}, harness.Env{}, s)
			if got := brief(r.All()); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if c.meta != nil && !c.meta(r.End) {
				t.Errorf("meta %+v", r.End)
			}
			harnesstest.Check(t, Log{}, r)
			harnesstest.Cuts(t, Log{}, harness.Env{}, s)
		})
	}
}

// TestMigrated checks that an old file and the log that a resume writes beside
// it name the same turns alike.
func TestMigrated(t *testing.T) {
	doc := harnesstest.Samples(t, "document.json")[0]
	old := harnesstest.Read(Document{}, harness.Env{}, doc)
	var list []string
	var d document
	if _, err := d.value.Walk(doc.Data, func(v *harness.Value) {
		list = nil
		v.Fields(func(name string) {
			if name == "messages" {
				v.Items(func() { list = append(list, strings.Join(strings.Fields(string(v.Raw())), " ")) })
			}
		})
	}); err != nil {
		t.Fatal(err)
	}
	log := harnesstest.Read(Log{}, harness.Env{}, harnesstest.Sample{Data: []byte(first + "\n" + strings.Join(list, "\n") + "\n")})
	for i, want := range old.All() {
		got := log.All()[i]
		if got.ID != want.ID || strings.ReplaceAll(got.Text, " ", "") != strings.ReplaceAll(want.Text, " ", "") {
			t.Errorf("turn %d: %s, was %s", i, harnesstest.Line(got), harnesstest.Line(want))
		}
	}
}

// TestBounds checks a message above the limit and a memory that overflows.
func TestBounds(t *testing.T) {
	big := strings.Repeat("x", maxHeld+1)
	lines := []string{first, message("big", "gemini", big, ""), message("big", "gemini", big, `,"thoughts":[{"subject":"late","description":""}]`)}
	for i := range maxSeen {
		lines = append(lines, message(fmt.Sprintf("m%d", i), "user", "go", ""))
	}
	d, err := newDecoder(nil, harness.Env{})
	if err != nil {
		t.Fatal(err)
	}
	out := harness.Out{Meta: &session.Meta{}}
	for i, line := range lines {
		if err := d.Decode([]byte(line), harness.Position{}, &out); err != nil {
			t.Fatal(err)
		}
		if i == 1 && d.Pending() {
			t.Error("a message above the limit is held")
		}
	}
	d.Flush(&out)
	if len(out.Turns) != 2+maxSeen || out.Turns[1].Class != turn.Thought {
		t.Errorf("%d turns, want %d", len(out.Turns), 2+maxSeen)
	}
	state, err := d.State()
	if err != nil || len(state) > 100<<10 {
		t.Errorf("state has %d bytes (%v)", len(state), err)
	}
}

func TestPlaces(t *testing.T) {
	for p, want := range map[string][2]bool{ // the log, the document
		"/h/.gemini/tmp/proj/chats/session-2026-05-01T09-30-4f9c1e2a.jsonl": {true, false},
		"/h/.gemini/tmp/proj/chats/session-2026-05-01T09-30-4f9c1e2a.json":  {false, true},
		"/h/.gemini/tmp/proj/chats/4f9c1e2a-parent/child.jsonl":             {true, false},
		"/h/.gemini/tmp/proj/logs.json":                                     {false, false},
		"/h/.gemini/tmp/proj/checkpoint-x.json":                             {false, false},
		"/h/.gemini/tmp/proj/chats/notes.jsonl":                             {false, false},
		"/h/.gemini/projects.json":                                          {false, false},
	} {
		if got := [2]bool{Log{}.Place(p), Document{}.Place(p)}; got != want {
			t.Errorf("Place(%q) = %v, want %v", p, got, want)
		}
		rel, below := strings.CutPrefix(p, "/h/.gemini/tmp/")
		for i, f := range []harness.Format{Log{}, Document{}} {
			if store := f.Stores("/h", func(string) string { return "" })[0]; below && store.Keep(rel, false) != want[i] {
				t.Errorf("%s keeps %q: %v", f.Traits().Key, rel, !want[i])
			}
		}
	}
	var m session.Meta
	Log{}.About("/h/.gemini/tmp/proj/chats/par/child.jsonl", &m)
	if m.ID != "child" || m.Parent != "par" || m.Kind != "subagent" {
		t.Errorf("subagent: %+v", m)
	}
	if m = (session.Meta{}); m.ID != "" { // C4: the name is no id
		t.Error(m.ID)
	}
	Log{}.About("/h/.gemini/tmp/proj/chats/session-2026-05-01T09-30-4f9c1e2a.jsonl", &m)
	if m != (session.Meta{}) {
		t.Errorf("main session: %+v", m)
	}
}

// TestWorkDir checks that the working directory is found in the files that
// Gemini CLI keeps beside the sessions, and that nothing depends on them.
func TestWorkDir(t *testing.T) {
	const dir = "/home/dev/greeter"
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))
	list := `{"projects":{"/home/dev/other":"other","` + dir + `":"greeter"}}`
	head := func(project string) string {
		return `{"sessionId":"s","projectHash":"` + project + `","startTime":"2026-05-01T09:30:00.000Z","lastUpdated":"2026-05-01T09:30:00.000Z","directories":["/home/dev/listed"]}` + "\n"
	}
	for _, c := range []struct {
		name, path, hash string
		files            map[string]string
		want             string
	}{
		{"the mark", "/h/.gemini/tmp/p/chats/session-x.jsonl", "h", map[string]string{"../.project_root": dir + "\n", "../../../projects.json": list}, dir},
		{"the mark, a subagent", "/h/.gemini/tmp/p/chats/par/child.jsonl", "h", map[string]string{"../../.project_root": dir}, dir},
		{"the list, by name", "/h/.gemini/tmp/greeter/chats/session-x.jsonl", "h", map[string]string{"../../../projects.json": list}, dir},
		{"the list, by the directory's hash", "/h/.gemini/tmp/" + hash + "/chats/session-x.jsonl", "h", map[string]string{"../../../projects.json": list}, dir},
		{"the list, by the session's hash", "/h/.gemini/tmp/p/chats/par/child.jsonl", hash, map[string]string{"../../../../projects.json": list}, dir},
		{"neither", "/h/.gemini/tmp/p/chats/session-x.jsonl", "h", map[string]string{"../../../projects.json": list}, "/home/dev/listed"},
		{"half written", "/h/.gemini/tmp/greeter/chats/session-x.jsonl", "h", map[string]string{"../../../projects.json": list[:60]}, "/home/dev/listed"},
		{"stored elsewhere", "/x/session-x.jsonl", hash, map[string]string{"../.project_root": dir}, "/home/dev/listed"},
	} {
		env := harness.Env{Path: c.path, Beside: func(rel string) ([]byte, error) {
			data, ok := c.files[rel]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return []byte(data), nil
		}}
		s := harnesstest.Sample{Data: []byte(head(c.hash) + message("u", "user", "go", "") + "\n")}
		if got := harnesstest.Read(Log{}, env, s).End.CWD; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		doc := harnesstest.Sample{Data: []byte(strings.TrimSuffix(head(c.hash), "}\n") + `,"messages":[]}`)}
		if got := harnesstest.Read(Document{}, env, doc).End.CWD; got != c.want {
			t.Errorf("%s, a document: %q, want %q", c.name, got, c.want)
		}
	}
}
