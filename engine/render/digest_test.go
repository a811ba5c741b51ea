package render

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"handoffd/engine/turn"
)

// pieces are what hostile and ordinary texts are made of.
var pieces = []string{
	"```", "````", "~~~", "`", "\n", "\n", "\r\n", " ", "# x", "## Provenance", contractHeading, contractHint,
	"RESULT: DONE", "EVIDENCE:", "EVIDENCE: x", footer(strings.Repeat("a", 64)), stampStart + strings.Repeat("0", 64), dataLine,
	"todo: a", "Next step", "- [x] todo: a", "- [ ] todo: a", "blocked", "why?", "http://x/?a=b", "really？", "😀", "é", "\u202e", "\x1b[31m",
	"\x00", "|", "\\", "\"", "<!-- -->", "]", "API error", "Caveat: ", "/clear", "\xff", "\xed\xa0\xbd", "word", "long word ",
	strings.Repeat("x", 130), strings.Repeat("😀", 400), strings.Repeat("`", 40), "$&", "\u2028", "\u200d",
}

func texts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
	})
}

func turns() *rapid.Generator[turn.Turn] {
	classes := []turn.Class{turn.User, turn.Agent, turn.Thought, turn.ToolUse, turn.ToolUse, turn.ToolUse, turn.Other, "X\nY"}
	ids := []string{"", "", "a", "b", "c", "d\n", strings.Repeat("i", 99)}
	return rapid.Custom(func(t *rapid.T) turn.Turn {
		u := turn.Turn{
			Seq: rapid.Int64Range(0, 99).Draw(t, "seq"), TS: rapid.SampledFrom([]string{"", "2026", "\n"}).Draw(t, "ts"),
			Class: rapid.SampledFrom(classes).Draw(t, "class"), Text: texts().Draw(t, "text"),
			Agent: rapid.SampledFrom([]string{"", "", "", "sub", "x\n"}).Draw(t, "agent"),
			Mark:  rapid.SampledFrom([]string{"", "", "", "summary", "rewound", "conflict"}).Draw(t, "mark"),
		}
		if u.Class == turn.ToolUse && rapid.Bool().Draw(t, "known") {
			u.Tool = &turn.Tool{
				Phase:  rapid.SampledFrom([]turn.Phase{turn.Call, turn.Result}).Draw(t, "phase"),
				Name:   rapid.SampledFrom([]string{"", "Bash", "Edit", "Task", "Agent", "spawn_agent", "a|b\n"}).Draw(t, "name"),
				CallID: rapid.SampledFrom(ids).Draw(t, "id"),
				Error:  rapid.Bool().Draw(t, "error"),
			}
			if rapid.Bool().Draw(t, "exits") {
				u.Tool.Exit = exit(rapid.IntRange(0, 2).Draw(t, "exit"))
			}
			if u.Tool.Phase == turn.Call {
				u.Tool.Command = texts().Draw(t, "command")
				u.Tool.Edits = rapid.SliceOfN(texts(), 0, 3).Draw(t, "edits")
			}
		}
		return u
	})
}

func sessions() *rapid.Generator[[]turn.Turn] { return rapid.SliceOfN(turns(), 0, 60) }

func encoded(t interface{ Fatal(...any) }, d *Digest) []byte {
	raw, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The digest depends on the turns alone, however they are divided among builds.
func TestDigestDoesNotDependOnBuilds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := sessions().Draw(t, "turns")
		whole, parts := &Digest{}, &Digest{}
		for i := range all {
			whole.Add(&all[i])
			if rapid.Bool().Draw(t, "save") {
				d, err := DecodeDigest(encoded(t, parts))
				if err != nil {
					t.Fatal(err)
				}
				parts = d
			}
			if rapid.Bool().Draw(t, "peek") {
				ahead := parts.Clone()
				for j := i; j < len(all); j++ {
					ahead.Add(&all[j])
				}
			}
			parts.Add(&all[i])
		}
		if a, b := encoded(t, whole), encoded(t, parts); !bytes.Equal(a, b) {
			t.Fatalf("whole  %s\nparts  %s", a, b)
		}
		if !utf8.Valid(encoded(t, whole)) {
			t.Fatal("invalid UTF-8")
		}
	})
}

func TestDigestIsBounded(t *testing.T) {
	d := &Digest{}
	wide := strings.Repeat("😀", 500)
	for i := range 20_000 {
		s := fmt.Sprint(i, wide)
		u := turn.Turn{Seq: int64(i), Class: turn.ToolUse, Text: s + "\ntodo " + s + "?", Agent: s[:8], Mark: fmt.Sprint("m", i), Tool: &turn.Tool{
			Phase: turn.Call, Name: s, CallID: s, Command: s, Edits: []string{s},
		}}
		d.Add(&u)
		u.Tool.Phase, u.Tool.Error = turn.Result, i%2 == 0
		d.Add(&u)
		d.Add(&turn.Turn{Class: turn.Agent, Text: u.Text})
	}
	if n := len(encoded(t, d)); n > 500<<10 {
		t.Errorf("worst digest has %d bytes", n)
	}
	if n := len(Brief(Input{M: manifest(nil), D: d})); n > 128<<10 {
		t.Errorf("worst brief has %d bytes", n)
	}

	d = &Digest{}
	for i := range 5000 {
		for _, u := range small() {
			u.Text = fmt.Sprint(i, u.Text)
			d.Add(&u)
		}
	}
	if n := len(encoded(t, d)); n > 64<<10 {
		t.Errorf("usual digest has %d bytes", n)
	}
}

func TestFindLoopAgreesWithPattern(t *testing.T) {
	pattern := regexp.MustCompile(`(?i)next step|todo|blocked|open loop|remaining work`)
	words := append([]string{"NEXT", " step", "ToDo", "to", "do", "block", "ed", "open", " loop", "remaining ", "work", "\n", "é", "x"}, loopPhrases[:]...)
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "words"), "")
		want := -1
		if at := pattern.FindStringIndex(s); at != nil {
			want = at[0]
		}
		if got := findLoop(s); got != want {
			t.Fatalf("%q: %d, want %d", s, got, want)
		}
	})
}

func TestLoops(t *testing.T) {
	d := &Digest{}
	say := func(text string) { d.Add(&turn.Turn{Class: turn.Agent, Text: text}) }
	for i := range 30 {
		say(fmt.Sprintf("intro\n  todo: item %d  \nend", i))
	}
	if n := len(d.f.Loops); n != loopLimit || d.f.Loops[0].Line != "todo: item 10" || d.f.Loops[19].Line != "todo: item 29" {
		t.Fatalf("%d loops: %v", n, d.f.Loops)
	}
	say("todo: item 12")
	if got := d.f.Loops[19].Line; got != "todo: item 12" || d.f.Loops[2].Line != "todo: item 13" {
		t.Errorf("a line said again is not the newest: %q", got)
	}
	say("- [ ] todo: box")
	say("* [X] todo: box")
	if got := d.f.Loops[len(d.f.Loops)-1].Line; got != "todo: item 12" {
		t.Errorf("a ticked box does not close its loop: %q", got)
	}
	n := len(d.f.Loops)
	d.Add(&turn.Turn{Class: turn.ToolUse, Text: "todo: tool"})
	d.Add(&turn.Turn{Class: turn.Agent, Agent: "sub", Text: "todo: subagent"})
	d.Add(&turn.Turn{Class: turn.Agent, Mark: "summary", Text: "todo: summary"})
	if len(d.f.Loops) != n {
		t.Errorf("loops of others: %v", d.f.Loops[n:])
	}
}

func TestObjective(t *testing.T) {
	user := func(s string) turn.Turn { return turn.Turn{Class: turn.User, Text: s} }
	for _, c := range []struct {
		name, want string
		turns      []turn.Turn
	}{
		{"nothing", "(none)", nil},
		{"agent only", "hello", []turn.Turn{{Class: turn.Agent, Text: "hello"}}},
		{"short user", "hi", []turn.Turn{{Class: turn.Agent, Text: "hello"}, user("hi"), user("ho")}},
		{"long enough", "please fix this bug now", []turn.Turn{user("hi"), user("please fix this bug now")}},
		{"notice", "please fix this bug now", []turn.Turn{user("Caveat: The messages below were generated"), user("/model a-very-long-model-name"), user("please fix this bug now")}},
		{"subagent", "please fix this bug now", []turn.Turn{{Class: turn.User, Agent: "a", Text: "you are a subagent, do this"}, user("please fix this bug now")}},
		{"summary", "please fix this bug now", []turn.Turn{{Class: turn.User, Mark: "summary", Text: "a summary of what was said"}, user("please fix this bug now")}},
		{"path", "/etc/hosts is broken, repair it", []turn.Turn{user("/etc/hosts is broken, repair it")}},
		{"whole runes", strings.Repeat("😀", 400), []turn.Turn{user(strings.Repeat("😀", 401))}},
	} {
		if got := Objective(manifest(nil), inputOf(c.turns).D); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestQuestions(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"Done. Shall I go on?":              "Shall I go on?",
		"See http://x/?a=b and a ? b : c.":  "See http://x/?a=b and a ?",
		"One?\n- Two?\n**Three?** (four?)":  "One?|- Two?|**Three?** (four?)",
		"1?\n2 a?\n3 a?\n4 a?\n5 a?\n6 a?":  "2 a?|3 a?|4 a?|5 a?|6 a?",
		"続けますか？\n":                          "続けますか？",
		"??? !!!":                           "",
		"？":                                 "",
		"a? 続？ b":                           "a?|続？",
		"続？ a? b":                           "続？ a?",
		"Use e.g. this? No. Not a question": "this?",
	} {
		if got := strings.Join(questions(nil, text), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	d := inputOf([]turn.Turn{{Class: turn.Agent, Text: "May I?"}}).D
	if len(d.f.openQuestions()) != 1 {
		t.Error("question lost")
	}
	d.Add(&turn.Turn{Class: turn.User, Text: "yes"})
	if len(d.f.openQuestions()) != 0 {
		t.Error("answered question is still open")
	}
}

func TestEnding(t *testing.T) {
	user, agent := turn.Turn{Class: turn.User, Text: "do it"}, turn.Turn{Class: turn.Agent, Text: "done"}
	bad := resulted("1", "no")
	bad.Tool.Error = true
	for _, c := range []struct {
		want  ending
		turns []turn.Turn
	}{
		{endEmpty, nil},
		{endAnswered, []turn.Turn{user, agent}},
		{endUnanswered, []turn.Turn{agent, user}},
		{endUnanswered, []turn.Turn{agent, user, {Class: turn.Other, Text: "x"}}},
		{endOther, []turn.Turn{user, agent, {Class: turn.Other, Text: "x"}}},
		{endOther, []turn.Turn{user, agent, {Class: turn.ToolUse, Text: "x"}}},
		{endOpenCall, []turn.Turn{user, called("1", "Bash", "x")}},
		{endAfterTool, []turn.Turn{user, called("1", "Bash", "x"), resulted("1", "y")}},
		{endError, []turn.Turn{user, called("1", "Bash", "x"), bad}},
		{endError, []turn.Turn{user, {Class: turn.Other, Text: "API Error: 500"}}},
		{endThought, []turn.Turn{user, {Class: turn.Thought, Text: "hm"}}},
	} {
		if got, _ := inputOf(c.turns).D.f.ended(); got != c.want {
			t.Errorf("%v: %s, want %s", c.turns, got, c.want)
		}
	}
}

func TestFilesWhenFull(t *testing.T) {
	d := &Digest{}
	edit := func(path string) {
		u := called("", "Edit", "x")
		u.Tool.Edits = []string{path}
		d.Add(&u)
	}
	edit("often")
	edit("often")
	for i := range fileLimit + 10 {
		edit(fmt.Sprint("f", i))
	}
	edit("f0")
	byPath := map[string]file{}
	for _, e := range d.f.Files {
		byPath[e.Path] = e
	}
	if len(byPath) != fileLimit || byPath["often"].Edits != 2 || byPath["often"].Partial {
		t.Errorf("%d files, often: %+v", len(byPath), byPath["often"])
	}
	if e := byPath["f0"]; e.Edits != 1 || !e.Partial {
		t.Errorf("a file that was dropped is counted as if it had not been: %+v", e)
	}
	if d.f.Edits != fileLimit+13 {
		t.Errorf("%d edits", d.f.Edits)
	}
}
