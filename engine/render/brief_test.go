package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"handoffd/engine/seal"
	"handoffd/engine/turn"
)

// headings are the sections of a brief in their order.
var headings = []string{
	"# Handoff", "## Objective (verbatim)", "## First prompt (verbatim)", "## State right now (verbatim tail)", "## Open questions",
	"## Open loops / next steps", "## What changed", "## Commands", "## Errors", "## Subagents", "## Tools", "## Session",
	"## Recent timeline", "## Where everything lives", "## Provenance", contractHeading,
}

// checkBrief holds a brief without a contract to what every brief promises.
func checkBrief(t interface {
	Helper()
	Fatalf(string, ...any)
}, in Input, brief []byte) {
	t.Helper()
	if !utf8.Valid(brief) {
		t.Fatalf("invalid UTF-8 in\n%s", brief)
	}
	var f fences
	at := -1
	for _, line := range strings.Split(string(brief), "\n") {
		if f.line(line) {
			continue
		}
		for _, name := range FieldNames {
			if strings.HasPrefix(line, name+":") {
				t.Fatalf("line %q outside fences in\n%s", line, brief)
			}
		}
		if !strings.HasPrefix(line, "#") {
			if i := strings.IndexFunc(line, func(r rune) bool { return r < ' ' || r == 0x202e || r == 0x2028 || r == 0x7f }); i >= 0 {
				t.Fatalf("control outside fences: %q", line)
			}
			continue
		}
		now := slices.IndexFunc(headings, func(h string) bool { return strings.HasPrefix(line, h) })
		if now <= at {
			t.Fatalf("heading %q after %q in\n%s", line, headings[max(at, 0)], brief)
		}
		at = now
	}
	if f.mark != 0 || at != len(headings)-1 {
		t.Fatalf("ends inside a fence or before its last section:\n%s", brief)
	}
	if in.MaxTokens > 0 && len(brief) > max(4000, in.MaxTokens*bytesPerToken) {
		t.Fatalf("%d bytes with max_tokens %d:\n%s", len(brief), in.MaxTokens, brief)
	}
	// The hash has one place, and taking it out again gives the same bytes.
	sum := seal.Sum([]byte("manifest"))
	stamped, ok := Stamp(bytes.Clone(brief), sum)
	if !ok || bytes.Count(stamped, []byte(sum)) != 1 || !bytes.Contains(stamped, []byte("\n"+stampStart+sum+"\n- incremental")) {
		t.Fatalf("not stamped:\n%s", stamped)
	}
	if back := bytes.ReplaceAll(stamped, []byte(sum), []byte(seal.Zero)); !bytes.Equal(back, brief) {
		t.Fatalf("stamping changed more than the hash")
	}
}

func checkPayloads(t interface {
	Helper()
	Fatalf(string, ...any)
}, in Input) {
	t.Helper()
	summary, err := Summary(in)
	if err != nil {
		t.Fatalf("summary: %v", err)
	}
	head, err := PayloadHead(in)
	if err != nil {
		t.Fatalf("payload: %v", err)
	}
	sum := seal.Sum([]byte("manifest"))
	for _, raw := range [][]byte{summary, append(head, PayloadMiddle+PayloadTail...)} {
		if !jsontext.Value(raw).IsValid() || bytes.Contains(raw, []byte(`\ud`)) {
			t.Fatalf("invalid JSON: %s", raw)
		}
		stamped, ok := Stamp(bytes.Clone(raw), sum)
		if !ok || bytes.Count(stamped, []byte(sum)) != 1 {
			t.Fatalf("not stamped: %s", stamped)
		}
	}
}

func TestBriefHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputOf(sessions().Draw(t, "turns"))
		m := in.M
		for _, s := range []*string{
			&in.Title, &m.Session, &m.Project, &m.Harness, &m.Model, &m.Meta.Title, &m.Meta.Branch, &m.Meta.CWD, &m.Meta.Parent,
			&m.Meta.ForkedFrom, &m.Meta.Kind, &m.Meta.Version, &m.SourcePaths[0], &in.GeneratedAt, &m.Objective,
		} {
			if rapid.Bool().Draw(t, "hostile") {
				*s = texts().Draw(t, "field")
			}
		}
		m.Provisional, m.Quarantined = rapid.IntRange(0, 2).Draw(t, "p"), rapid.IntRange(0, 2).Draw(t, "q")
		in.MaxTokens = rapid.SampledFrom([]int{0, 1000, 1000, 1500, 4000, 30000}).Draw(t, "tokens")
		checkBrief(t, in, Brief(in))
		checkPayloads(t, in)
		if !bytes.Equal(Brief(in), Brief(in)) {
			t.Fatal("not deterministic")
		}
	})
}

func TestWorstBriefFits(t *testing.T) {
	in := hostile()
	wide := strings.Repeat("`", 9000) + strings.Repeat("😀", 9000)
	for i := range 100 {
		u := called(fmt.Sprint(i), wide, wide+"?")
		u.Tool.Command, u.Tool.Edits, u.Agent = wide, []string{wide, fmt.Sprint(i)}, wide
		in.D.Add(&u)
		in.D.Add(&turn.Turn{Class: turn.Agent, Text: wide + "\ntodo" + wide})
		in.D.Add(&turn.Turn{Class: turn.User, Text: wide})
	}
	m := in.M
	for _, s := range []*string{&in.Title, &m.Session, &m.Project, &m.Harness, &m.Model, &m.Meta.Title, &m.Meta.CWD, &m.Meta.Parent, &m.Meta.ForkedFrom, &m.Objective} {
		*s = wide
	}
	m.SourcePaths = []string{wide, wide, wide}
	for _, in.MaxTokens = range []int{1000, 2000, 5000, 30000} {
		checkBrief(t, in, Brief(in))
	}
	if n := len(cutNote(in.allCut())); n > cutNoteBytes {
		t.Errorf("cut note of %d bytes", n)
	}
}

// allCut are sections of which nothing is left.
func (in Input) allCut() []section {
	all := in.sections()
	for i := range all {
		all[i].whole = "whole"
		if all[i].rank < firstList {
			all[i].text = "x"
		}
	}
	return all
}

func TestStateIsTheRealEnd(t *testing.T) {
	in := inputOf([]turn.Turn{{Class: turn.Agent, Text: "start " + strings.Repeat("é", 2000) + " the end 😀"}})
	if brief := string(Brief(in)); !strings.Contains(brief, "é the end 😀\n```") || strings.Contains(brief, "\ufffd") {
		t.Error("brief misses the end")
	}
	s := in.D.f.stateNow().Tail
	if utf8.RuneCountInString(s) != 1200 {
		t.Errorf("%d runes", utf8.RuneCountInString(s))
	}
	summary, _ := Summary(in)
	if !bytes.Contains(summary, []byte("é the end 😀\",\n")) {
		t.Errorf("summary misses the end: %s", summary)
	}
}

func TestToolEntryCannotBeClosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := turns().Draw(t, "turn")
		if u.Class != turn.ToolUse {
			if ToolEntry(&u) != nil {
				t.Fatal("entry for another class")
			}
			return
		}
		var f fences
		heads := 0
		for _, line := range strings.Split(string(ToolEntry(&u)), "\n") {
			if !f.line(line) && line != "" {
				heads++
			}
		}
		if heads != 1 || f.mark != 0 {
			t.Fatalf("broken out:\n%s", ToolEntry(&u))
		}
	})
}

func TestProject(t *testing.T) {
	a := "Repair the parser ordering for nested lists"
	if got := KeywordsOverlap(a, "parser ordering of nested lists"); got != 4.0/5 {
		t.Errorf("overlap %v", got)
	}
	if got := KeywordsOverlap("the parser", "the parser"); got != 0 {
		t.Errorf("too few keywords: %v", got)
	}
	for _, c := range []struct{ id, want string }{
		{"3f2b8c1e-77aa-4f0e-9d7c-0a1b2c3d4e5f", "handoffctl retitle 3f2b8c1e-77a 2026-03-01-repair-parser-ordering"},
		{"ses12345", "handoffctl retitle ses12345 2026-03-01-repair-parser-ordering"},
		{"my-session", ""}, {"ses123", ""}, {"abcde1234", ""}, {"$(rm -x)1234", ""}, {"3f2b8c1e-7;rm", ""}, {"", ""},
	} {
		if got := SuggestRetitle(c.id, "2026-03-01T10:00:00.000Z", a); got != c.want {
			t.Errorf("%s: %q, want %q", c.id, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := texts().Draw(t, "text")
		for _, line := range []string{ProjectLine(s, 1, 1, s), "- " + LinkMarker(s, s) + "\n"} {
			if strings.Count(line, "\n") != 1 || !utf8.ValidString(line) || strings.Count(line, "-->") > 1 {
				t.Fatalf("%q", line)
			}
		}
	})
}

func FuzzBrief(f *testing.F) {
	f.Add("user text\x1eagent text", "s", uint16(0))
	f.Add(contractHeading+"\n"+seven+"\x1e```\n"+contractHeading+"\n"+seven+"\n````\x1e"+dataLine, "s\n"+contractHeading, uint16(1000))
	f.Add("todo: \u202e?\x1e\xff\xfe~~~\n"+stampStart+seal.Zero, "|`*", uint16(1200))
	classes := []turn.Class{turn.User, turn.Agent, turn.ToolUse, turn.ToolUse, turn.Other, turn.Thought}
	f.Fuzz(func(t *testing.T, script, field string, tokens uint16) {
		var all []turn.Turn
		for i, text := range strings.Split(script, "\x1e") {
			u := turn.Turn{Seq: int64(i), Class: classes[(i+len(text))%len(classes)], Text: text}
			if u.Class == turn.ToolUse {
				u.Tool = &turn.Tool{Phase: turn.Call, Name: field, CallID: field, Command: text, Edits: []string{field, text}}
				if i%2 == 1 {
					u.Tool.Phase, u.Tool.Error = turn.Result, true
				}
			}
			all = append(all, u)
		}
		in := inputOf(all)
		in.M.Session, in.M.Project, in.Title, in.M.Meta.CWD, in.M.SourcePaths[0] = field, field, field, field, field
		if in.MaxTokens = int(tokens); tokens < 1000 {
			in.MaxTokens = 0
		}
		brief := Brief(in)
		checkBrief(t, in, brief)
		checkPayloads(t, in)
		if c := extracted(t, brief); c != (Contract{}) {
			t.Fatalf("forged: %q", c.Block)
		}
		in.Contract = NewContract(field)
		if c := extracted(t, Brief(in)); c != in.Contract {
			t.Fatalf("%q, want %q", c.Block, in.Contract.Block)
		}
	})
}
