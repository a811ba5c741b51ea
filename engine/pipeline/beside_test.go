package pipeline_test

import (
	"context"
	"crypto/md5"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/fault"
	"handoffd/engine/pipeline"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// turns are what is captured of a session: mark, class and text.
func (x *bench) turns(loc store.Location) (list []string) {
	x.t.Helper()
	for t, err := range store.Turns(x.store.SessionDir(loc.Project, loc.Dir), -1) {
		if err != nil {
			x.t.Fatal(err)
		}
		list = append(list, strings.TrimSpace(t.Mark+" "+string(t.Class)+" "+t.Text))
	}
	return list
}

func (x *bench) manifest(loc store.Location) *session.Manifest {
	x.t.Helper()
	m, _, err := store.ReadManifest(x.store.SessionDir(loc.Project, loc.Dir))
	if err != nil {
		x.t.Fatal(err)
	}
	return m
}

func lines(list ...string) []byte { return []byte(strings.Join(list, "\n") + "\n") }

const geminiHead = `{"sessionId":"s-1","projectHash":"h","startTime":"2026-05-01T09:30:00.000Z","lastUpdated":"2026-05-01T09:30:00.000Z"}`

func geminiSay(id, kind, text string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":"2026-05-01T09:31:00.000Z","type":%q,"content":%q}`, id, kind, text)
}

// TestBesideProject checks that a session lands in the project that a file
// beside it names, and in that of its harness when there is none.
func TestBesideProject(t *testing.T) {
	const source = "h/.gemini/tmp/slug/chats/session-2026-05-01T09-30-s1.jsonl"
	for want, mark := range map[string]string{"greeter": "/home/dev/greeter", "gemini-cli": ""} {
		x := newBench(t)
		if mark != "" {
			x.write("h/.gemini/tmp/slug/.project_root", []byte(mark))
		}
		x.write(source, lines(geminiHead, geminiSay("u", "user", "go")))
		x.build(source)
		loc, _ := x.only()
		if m := x.manifest(loc); loc.Project != want || m.Meta.CWD != mark {
			t.Errorf("project %s, cwd %q", loc.Project, m.Meta.CWD)
		}
		x.verify()
	}
}

// TestTwoFiles checks that a resume's second file with the id of the session
// and no message takes nothing away (google-gemini/gemini-cli#28036).
func TestTwoFiles(t *testing.T) {
	const first, second = "chats/session-2026-05-01T13-46-s1.jsonl", "chats/session-2026-05-01T13-49-s1.jsonl"
	x := newBench(t)
	x.write(first, lines(geminiHead, geminiSay("u", "user", "go")))
	x.build(first)
	x.write(second, lines(geminiHead))
	if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(second)}); err != nil && !fault.Is(err, fault.NoTurns) {
		t.Fatal(err)
	}
	x.append(first, lines(geminiSay("g", "gemini", "hi")))
	x.build(first)
	x.append(second, lines(geminiSay("u", "user", "go"), geminiSay("v", "user", "on")))
	x.build(second)
	loc, _ := x.only()
	if got := x.turns(loc); !slices.Equal(got, []string{"USER go", "AGENT hi", "USER on"}) {
		t.Errorf("%q", got)
	}
	x.verify()
}

// TestUndecided checks that what stood for the unfinished end of a source stays
// when the source is rewritten without it (google-gemini/gemini-cli#27368).
func TestUndecided(t *testing.T) {
	const source = "chats/session-2026-05-01T13-46-s1.jsonl"
	for name, c := range map[string]struct {
		now  []byte
		want []string
	}{
		"shorter":             {lines(geminiHead, geminiSay("x", "user", "new")), []string{"USER go", "AGENT hi", "USER new"}},
		"emptied":             {nil, []string{"USER go", "AGENT hi"}},
		"the same, rewritten": {lines(geminiHead+" ", geminiSay("u", "user", "go"), geminiSay("g", "gemini", "hi")), []string{"USER go", "AGENT hi"}},
		"the same, and more":  {lines(geminiHead+" ", geminiSay("u", "user", "go"), geminiSay("g", "gemini", "hi"), geminiSay("x", "user", "on")), []string{"USER go", "AGENT hi", "USER on"}},
		"the last, otherwise": {lines(geminiHead+" ", geminiSay("u", "user", "go"), geminiSay("g", "gemini", "ho")), []string{"USER go", "AGENT hi", "conflict AGENT ho"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newBench(t)
			x.write(source, lines(geminiHead, geminiSay("u", "user", "go"), geminiSay("g", "gemini", "hi")))
			x.build(source)
			x.write(source, c.now)
			for range 2 {
				_, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(source)})
				if err != nil && !(len(c.now) == 0 && fault.Is(err, fault.NoTurns)) {
					t.Fatal(err)
				}
				loc, _ := x.only()
				if got := x.turns(loc); !slices.Equal(got, c.want) {
					t.Errorf("got  %q\nwant %q", got, c.want)
				}
				x.restart()
			}
			x.verify()
		})
	}
}

// TestContextMoved plays what Kimi CLI does to a context: a system prompt in
// front, a revert, and a compaction, with every order of looking at the files.
func TestContextMoved(t *testing.T) {
	say := func(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }
	dir := fmt.Sprintf("h/.kimi/sessions/%x/s-1/", md5.Sum([]byte("/home/dev/greeter")))
	for name, movedFirst := range map[string]bool{"the new context first": false, "the moved one first": true} {
		for _, restart := range []bool{false, true} {
			x := newBench(t)
			look := func(files ...string) {
				t.Helper()
				if restart {
					x.restart()
				}
				if movedFirst {
					slices.Reverse(files)
				}
				for _, f := range files {
					x.build(dir + f)
				}
			}
			x.write("h/.kimi/kimi.json", []byte(`{"work_dirs":[{"path":"/home/dev/greeter"}]}`))
			x.write(dir+"state.json", []byte(`{"custom_title":"Greet"}`))
			one := []string{`{"role":"_checkpoint","id":0}`, say("user", "one"), say("assistant", "1")}
			two := []string{`{"role":"_checkpoint","id":1}`, say("user", "continue"), say("assistant", "2")}
			x.write(dir+"context.jsonl", lines(slices.Concat(one, two)...))
			look("context.jsonl")
			prompt := `{"role":"_system_prompt","content":"You are."}`
			all := slices.Concat([]string{prompt}, one, two)
			x.write(dir+"context.jsonl", lines(all...))
			look("context.jsonl")

			// A revert to checkpoint 1, before which a line was not seen.
			x.write(dir+"context_1.jsonl", lines(append(slices.Clone(all), say("user", "unseen"))...))
			now := slices.Concat([]string{prompt}, one, []string{`{"role":"_checkpoint","id":1}`, say("user", "other"), say("assistant", "2"), say("user", "continue")})
			x.write(dir+"context.jsonl", lines(now...))
			look("context.jsonl", "context_1.jsonl")
			x.append(dir+"context.jsonl", lines(say("assistant", "3")))
			now = append(now, say("assistant", "3"))
			look("context.jsonl")

			// A compaction, which takes over the last two messages.
			x.write(dir+"context_2.jsonl", lines(now...))
			const summed = "<system>Previous context has been compacted. Here is the compaction output:</system>"
			x.write(dir+"context.jsonl", lines(prompt, `{"role":"_checkpoint","id":0}`, say("user", summed), say("user", "continue"), say("assistant", "3"), say("user", "continue")))
			look("context.jsonl", "context_2.jsonl", "context_1.jsonl")
			look("context.jsonl", "context_2.jsonl", "context_1.jsonl")

			loc, _ := x.only()
			var kept, rest []string
			for _, s := range x.turns(loc) {
				if strings.Contains(s, "[context rewound to after turn ") {
					s = "OTHER (rewound)"
				}
				if strings.HasSuffix(s, "unseen") || strings.HasPrefix(s, "OTHER (") {
					rest = append(rest, s)
				} else {
					kept = append(kept, s)
				}
			}
			want := []string{"USER one", "AGENT 1", "USER continue", "AGENT 2", "USER other", "AGENT 2", "USER continue", "AGENT 3", "summary OTHER " + summed, "USER continue"}
			if !slices.Equal(kept, want) {
				t.Errorf("%s, restart %v:\n got %q\nwant %q", name, restart, kept, want)
			}
			slices.Sort(rest)
			if len(rest) != 2 || rest[0] != "OTHER (rewound)" || !strings.HasSuffix(rest[1], "USER unseen") {
				t.Errorf("%s, restart %v: %q", name, restart, rest)
			}
			if m := x.manifest(loc); loc.Project != "greeter" || m.Meta.Title != "Greet" || m.Meta.Compactions != 1 {
				t.Errorf("%s: project %s, meta %+v", name, loc.Project, m.Meta)
			}
			x.verify()
		}
	}
}

// TestEmptied plays what Cursor does to a transcript: it is emptied, and
// written again with the old lines, or with others.
func TestEmptied(t *testing.T) {
	const source = "h/.cursor/projects/p/agent-transcripts/s-1/s-1.jsonl"
	say := func(role, text string) string {
		return fmt.Sprintf(`{"role":%q,"message":{"content":[{"type":"text","text":%q}]}}`, role, text)
	}
	old := []string{say("user", "one"), say("assistant", "Done."), say("user", "continue"), say("assistant", "Done.")}
	x := newBench(t)
	x.write(source, lines(old...))
	x.build(source)
	if err := os.Truncate(x.path(source), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(source)}); err != nil && !fault.Is(err, fault.NoTurns) {
		t.Fatal(err)
	}
	x.write(source, lines(append(slices.Clone(old), say("user", "more"))...))
	x.build(source)
	x.write(source, lines(say("user", "continue"), say("assistant", "Done.")))
	x.build(source)
	loc, _ := x.only()
	want := []string{"USER one", "AGENT Done.", "USER continue", "AGENT Done.", "USER more", "USER continue", "AGENT Done."}
	if got := x.turns(loc); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	x.verify()
}

// TestNothingGoes plays a session of two logs that are appended to, cut and
// rewritten: a turn that a build showed is there after every later one, once.
func TestNothingGoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newBench(t)
		files := map[string][]string{}
		shown := map[string]bool{}
		next := 0
		for range rapid.IntRange(2, 9).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"chats/session-a.jsonl", "chats/session-b.jsonl"}).Draw(rt, "file")
			list := files[name]
			switch rapid.SampledFrom([]string{"say", "say", "repeat", "cut", "empty", "restart"}).Draw(rt, "op") {
			case "say":
				next++
				list = append(list, geminiSay(fmt.Sprintf("m%d", next), rapid.SampledFrom([]string{"user", "gemini"}).Draw(rt, "kind"), fmt.Sprint(next)))
			case "repeat":
				if len(list) > 0 {
					list = append(list, list[rapid.IntRange(0, len(list)-1).Draw(rt, "which")])
				}
			case "cut":
				list = slices.Clone(list[rapid.IntRange(0, len(list)).Draw(rt, "from"):])
			case "empty":
				list = nil
			case "restart":
				x.restart()
			}
			files[name] = list
			x.write(name, lines(append([]string{geminiHead}, list...)...))
			if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(name)}); err != nil {
				if fault.Is(err, fault.NoTurns) {
					continue
				}
				rt.Fatal(err)
			}
			loc, _ := x.only()
			now := map[string]bool{}
			for _, s := range x.turns(loc) {
				if now[s] {
					rt.Fatalf("%q stands twice", s)
				}
				now[s] = true
			}
			for s := range shown {
				if !now[s] {
					rt.Fatalf("%q is gone; there are %q", s, x.turns(loc))
				}
			}
			for _, s := range list {
				id := s[strings.Index(s, `"content":"`)+11 : len(s)-2]
				if !now["USER "+id] && !now["AGENT "+id] {
					rt.Fatalf("%s was not captured; there are %q", s, x.turns(loc))
				}
			}
			shown = now
		}
	})
}
