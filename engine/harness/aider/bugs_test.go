package aider

import (
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
	"handoffd/engine/session"
)

func read(text string) (list []string) {
	r := harnesstest.Read(History{}, harness.Env{}, harnesstest.Sample{Data: []byte(text)})
	for _, t := range r.All() {
		list = append(list, string(t.Class)+" "+t.Text)
	}
	return list
}

const begun = "\n# aider chat started at 2025-03-01 09:00:00\n\n> Aider v0.83.1  \n\n#### go  \n\n"

// What looks like a mark is one only where Aider writes marks.
func TestMarks(t *testing.T) {
	for answer, want := range map[string][]string{
		"# Plan\n\n#### One\n\n> wise words\n\n> - somebody\n":                {"AGENT # Plan\n\n#### One\n\n> wise words\n\n> - somebody"},
		"> wise words\n\nIndeed.\n":                                           {"AGENT > wise words\n\nIndeed."},
		"#### One\n\nText.\n":                                                 {"AGENT #### One\n\nText."},
		"```md\n#### a  \n> b  \n```\n":                                       {"AGENT ```md\n#### a  \n> b  \n```"},
		"# aider chat started at noon\n":                                      {"AGENT # aider chat started at noon"},
		"So:\n# aider chat started at 2025-03-01 09:00:00\n":                  {"AGENT So:\n# aider chat started at 2025-03-01 09:00:00"},
		"####x  \n\n>y  \n":                                                   {"AGENT ####x  \n\n>y"},
		"```py\nnever closed\n\n> Tokens: 1k sent, 2 received.  \n":           {"AGENT ```py\nnever closed", "OTHER Tokens: 1k sent, 2 received."},
		"```py\nnever closed\n\n#### next  \n":                                {"AGENT ```py\nnever closed", "USER next"},
		"Yes.\n\n\n> Tokens: 9 sent  \n> ^C  \n\n#### next  \n#### line  \n":  {"AGENT Yes.", "OTHER Tokens: 9 sent\n^C", "USER next\nline"},
		"Yes.\n\n\n> Tokens: 9 sent  \n> a\n\nb  \n\nAnd more.\n":             {"AGENT Yes.", "OTHER Tokens: 9 sent\na\n\nb", "AGENT And more."},
		"Yes.\n\n# aider chat started at 2025-03-02 09:00:00\n\n> Aider v1  ": {"AGENT Yes.", "OTHER [aider chat started at 2025-03-02 09:00:00]", "OTHER Aider v1"},
	} {
		for _, text := range []string{begun + answer, strings.ReplaceAll(begun+answer, "\n", "\r\n")} {
			got := read(text)
			if !slices.Equal(got[min(3, len(got)):], want) {
				t.Errorf("%q:\n got %q\nwant %q", answer, got, want)
			}
		}
	}
}

// A block that changes a file names it, however models write names.
func TestNames(t *testing.T) {
	const block = "```go\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n"
	for name, want := range map[string]string{
		"cmd/a.go": "cmd/a.go", "**cmd/a.go**": "cmd/a.go", "`a.go`:": "a.go", "**`a.go`**": "a.go", "# a.go": "a.go", "Makefile": "Makefile",
		`src\a.go`: `src\a.go`, "some dir/a.go": "some dir/a.go", "Here is the change.": "", "Change the file now": "", "": "", "}": "",
	} {
		r := harnesstest.Read(History{}, harness.Env{}, harnesstest.Sample{Data: []byte(begun + "Sure.\n\n" + name + "\n" + block)})
		var got []string
		for _, t := range r.All() {
			if t.Tool != nil {
				got = append(got, t.Tool.Edits...)
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q names %q, want %q", name, got, want)
		}
		if all := strings.Join(read(begun+"Sure.\n\n"+name+"\n"+block), "\n"); !strings.Contains(all, "=======\nb\n") {
			t.Errorf("%q: the block is gone: %q", name, all)
		}
	}
}

func TestRounded(t *testing.T) {
	for text, want := range map[string]int64{"812": 812, "3.7k": 3700, "11k": 11000, "1.2M": 1200000, "": 0, "k": 0, "-3": 0, "NaN": 0, "1e300k": 0, "Inf": 0} {
		if got := rounded(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

// Two repositories whose directories have one name are two sessions.
func TestPlaces(t *testing.T) {
	ids := map[string]string{}
	for p, want := range map[string]string{
		"/h/one/app/.aider.chat.history.md": "app-aider-", "/h/two/app/.aider.chat.history.md": "app-aider-", "/h/two/app/notes.md": "app-notes-",
		".aider.chat.history.md": "aider-", "/.aider.chat.history.md": "aider-",
	} {
		var m session.Meta
		History{}.About(p, &m)
		if len(m.ID) != len(want)+8 || !strings.HasPrefix(m.ID, want) || ids[m.ID] != "" {
			t.Errorf("%s is called %q, as is %q", p, m.ID, ids[m.ID])
		}
		ids[m.ID] = p
		if (History{}).Place(p) != strings.HasSuffix(p, file) {
			t.Errorf("place of %s", p)
		}
	}
	env := harness.Env{Path: "/h/one/app/.aider.chat.history.md"}
	if m := harnesstest.Read(History{}, env, harnesstest.Sample{Data: []byte(begun)}).End; m.CWD != "/h/one/app" || m.Version != "0.83.1" || m.Title != "go" {
		t.Errorf("%+v", m)
	}
	if m := harnesstest.Read(History{}, harness.Env{Path: "/h/notes.md"}, harnesstest.Sample{Data: []byte(begun)}).End; m.CWD != "" {
		t.Errorf("the directory of a copy is taken for a repository: %+v", m)
	}
}

func TestStores(t *testing.T) {
	list := History{}.Stores("/h", func(string) string { return "" })
	if len(list) != 1 || list[0].Root != "/h/.aider" {
		t.Fatalf("%+v", list)
	}
	for rel, want := range map[string]bool{
		"app/": true, "a/b/": true, ".git/": false, "app/.git/": false, "app/node_modules/": false,
		"app/.aider.chat.history.md": true, ".aider.chat.history.md": true, "app/README.md": false, "app/.aider.input.history": false,
	} {
		name, dir := strings.CutSuffix(rel, "/")
		if list[0].Keep(name, dir) != want {
			t.Errorf("%s: %v", rel, !want)
		}
	}
	for env, want := range map[string]int{"/x/chat.md": 2, "chat.md": 1} {
		list := History{}.Stores("/h", func(string) string { return env })
		if len(list) != want || want == 2 && (list[1].Root != "/x" || !list[1].Keep("chat.md", false) || list[1].Keep("other.md", false) || list[1].Keep("chat.md", true)) {
			t.Errorf("%s: %+v", env, list)
		}
	}
}
