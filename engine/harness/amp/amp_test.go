package amp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Thread{}, harnesstest.Samples(t, "*.json")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Thread{}, harnesstest.Samples(t, "*.json")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Thread{}, harnesstest.Fixtures(t, "amp", ".json")...)
}

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Thread{}, harnesstest.Samples(f, "*.json")...)
}

const id = "T-0190dddd-0001-7000-8000-000000000001"

// document is a thread with the given messages.
func document(messages ...string) []byte {
	return []byte(`{"v":1,"id":"` + id + `","created":1770000000000,"messages":[` + strings.Join(messages, ",") + `]}`)
}

const (
	asked   = `{"role":"user","messageId":0,"content":[{"type":"text","text":"go"}],"meta":{"sentAt":1770000001000}}`
	called  = `{"role":"assistant","messageId":1,"content":[{"type":"text","text":"I will"},{"type":"tool_use","id":"c","name":"Bash","input":{"cmd":"ls"}}],"state":{"type":"complete","stopReason":"tool_use"},"usage":{"model":"m","inputTokens":4,"outputTokens":2,"timestamp":"2026-02-02T02:40:02.000Z"}}`
	coming  = `{"role":"assistant","messageId":1,"content":[{"type":"text","text":"I w"}],"state":{"type":"streaming"}}`
	waiting = `{"role":"user","messageId":2,"content":[{"type":"tool_result","toolUseID":"c","run":{"status":"in-progress"}}]}`
	given   = `{"role":"user","messageId":2,"content":[{"type":"tool_result","toolUseID":"c","run":{"status":"done","result":{"output":"a.go","exitCode":0}}}]}`
	ended   = `{"role":"assistant","messageId":3,"content":[{"type":"text","text":"a.go is there"}],"state":{"type":"complete","stopReason":"end_turn"}}`
)

// TestGrows reads a thread whenever it was written: what comes in is
// provisional until it is there.
func TestGrows(t *testing.T) {
	var states []harnesstest.Sample
	for _, list := range [][]string{
		{asked}, {asked, coming}, {asked, called}, {asked, called, waiting}, {asked, called, given}, {asked, called, given, ended},
	} {
		states = append(states, harnesstest.Sample{Data: document(list...)})
	}
	harnesstest.States(t, Thread{}, states...)
}

// TestDecided says how many of the turns are decided.
func TestDecided(t *testing.T) {
	info := `{"role":"info","messageId":7,"content":[{"type":"manual_bash_invocation","args":{"cmd":"ls"},"run":{"status":"done"}}]}`
	aside := `{"role":"assistant","messageId":8,"parentToolUseId":"c","content":[{"type":"text","text":"aside"}],"state":{"type":"complete","stopReason":"end_turn"}}`
	again := strings.Replace(asked, `"messageId":0`, `"messageId":9`, 1)
	state := func(s string) string { return strings.Replace(coming, `{"type":"streaming"}`, s, 1) }
	for name, c := range map[string]struct {
		messages               []string
		decided, provisional   int
		inDecided, inEndTokens int64
	}{
		"asked":                      {[]string{asked}, 1, 0, 0, 0},
		"streaming":                  {[]string{asked, coming}, 1, 1, 0, 0},
		"no reason to stop yet":      {[]string{asked, state(`{"type":"complete","stopReason":null}`)}, 1, 1, 0, 0},
		"a state of another version": {[]string{asked, state(`{"type":"pausing"}`)}, 1, 1, 0, 0},
		"cancelled":                  {[]string{asked, state(`{"type":"cancelled"}`)}, 2, 0, 0, 0},
		"no state at all":            {[]string{asked, state(`null`)}, 2, 0, 0, 0},
		"left streaming":             {[]string{asked, coming, again}, 3, 0, 0, 0},
		"a tool runs":                {[]string{asked, called, waiting}, 3, 1, 4, 4},
		"the user runs one too":      {[]string{asked, called, waiting, info}, 3, 2, 4, 4},
		"a subagent speaks":          {[]string{asked, called, waiting, aside}, 3, 2, 4, 4},
		"the user went on":           {[]string{asked, called, waiting, again}, 5, 0, 4, 4},
		"done":                       {[]string{asked, called, given, ended}, 5, 0, 4, 4},
		"usage of what comes in":     {[]string{asked, strings.Replace(called, `"complete","stopReason":"tool_use"`, `"streaming"`, 1)}, 1, 2, 0, 4},
	} {
		r := harnesstest.Read(Thread{}, harness.Env{}, harnesstest.Sample{Data: document(c.messages...)})
		if len(r.Decided) != c.decided || len(r.Provisional) != c.provisional {
			t.Errorf("%s: %d decided, %d provisional, want %d and %d", name, len(r.Decided), len(r.Provisional), c.decided, c.provisional)
		}
		if r.Meta.Tokens.Input != c.inDecided || r.End.Tokens.Input != c.inEndTokens {
			t.Errorf("%s: tokens %d and %d, want %d and %d", name, r.Meta.Tokens.Input, r.End.Tokens.Input, c.inDecided, c.inEndTokens)
		}
	}
}

// TestRecognizeCut cuts heads: a thread is known as soon as it says that it is
// one, wherever its members stand.
func TestRecognizeCut(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "thread.json"))
	if err != nil {
		t.Fatal(err)
	}
	from := strings.Index(string(data), `"messages": [`) + len(`"messages": [`)
	for n := from; n <= len(data); n += 7 {
		if got := (Thread{}).Recognize(data[:n]); got != harness.Certain {
			t.Fatalf("cut at %d: %v", n, got)
		}
	}
	for doc, want := range map[string]harness.Confidence{
		"\ufeff\n" + string(document(asked)):             harness.Certain,
		string(document()):                               harness.Certain,
		`{"messages":[` + asked + `],"id":"T-1"}`:        harness.Certain,
		`{"messages":[` + asked + `],"i`:                 harness.Perhaps,
		`{"id":"T-1","messages":[]}`:                     harness.Perhaps,
		`{"id":"x","created":1,"messages":[{"role":1}]}`: harness.No,
		"\x00\x00" + string(document(asked)) + "\n\x00":  harness.Certain,
		`{"id":"T-1","v":1}`:                             harness.No,
		`[` + asked + `]`:                                harness.No,
	} {
		if got := (Thread{}).Recognize([]byte(doc)); got != want {
			t.Errorf("%s: %v, want %v", doc, got, want)
		}
	}
}

func TestPlace(t *testing.T) {
	for path, want := range map[string]bool{
		"/h/.local/share/amp/threads/" + id + ".json":                                               true,
		"/h/.config/Code/User/globalStorage/sourcegraph.amp/threads3/" + id + ".json":               true,
		"/h/.local/share/amp/history.jsonl":                                                         false,
		"/h/.local/share/amp/secrets.json":                                                          false,
		"/h/.local/share/amp/threads/" + id + ".json.tmp":                                           false,
		"/h/.local/share/amp/threads/old/" + id + ".json":                                           false,
		"/h/.local/share/amp/threads/T-.json":                                                       false,
		"/h/threads/" + id + ".json":                                                                false,
		"/h/.config/Code/User/globalStorage/sourcegraph.amp/threads3/attachments/" + id + ".json":   false,
		"/h/.config/Code/User/globalStorage/sourcegraph.amp/file-changes/" + id + "/toolu_1.abcdef": false,
	} {
		if got := (Thread{}).Place(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestStores(t *testing.T) {
	for value, want := range map[string]string{
		"":      filepath.Join("/h", ".local", "share", "amp", "threads"),
		"rel":   filepath.Join("/h", ".local", "share", "amp", "threads"),
		"/data": filepath.Join("/data", "amp", "threads"),
	} {
		list := Thread{}.Stores("/h", func(name string) string {
			if name == "XDG_DATA_HOME" {
				return value
			}
			return ""
		})
		if list[0].Root != want {
			t.Errorf("XDG_DATA_HOME=%q: %s", value, list[0].Root)
		}
		for rel, want := range map[string]bool{id + ".json": true, "sub/" + id + ".json": false, "x.json": false, id + ".json.bak": false} {
			if list[0].Keep(rel, false) != want {
				t.Errorf("%s is kept: %v", rel, !want)
			}
		}
		if list[0].Keep("T-x.json", true) {
			t.Error("a directory is entered")
		}
	}
}

func TestAbout(t *testing.T) {
	for path, want := range map[string]string{
		"/x/" + id + ".json":     id,
		"/x/" + id + " (1).json": "",
		"/x/thread.json":         "",
	} {
		var m session.Meta
		if (Thread{}).About(path, &m); m != (session.Meta{ID: want}) {
			t.Errorf("%s: %+v", path, m)
		}
	}
}

// turns reads messages and returns what they say.
func turns(t *testing.T, messages ...string) []turn.Turn {
	t.Helper()
	r := harnesstest.Read(Thread{}, harness.Env{}, harnesstest.Sample{Data: document(messages...)})
	harnesstest.Check(t, Thread{}, r)
	return r.All()
}

func TestDirectory(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///home/dev/p":          "/home/dev/p",
		"file:///home/dev/my%20p":     "/home/dev/my p",
		"file:///home/100%":           "/home/100%",
		"file:///c%3A/Users/dev":      "c:/Users/dev",
		"file://localhost/home/dev":   "/home/dev",
		"/home/dev":                   "/home/dev",
		"vscode-remote://host/home":   "",
		"":                            "",
		"https://example.org/project": "",
	} {
		if got := directory(uri); got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}
