package render

import (
	"strings"

	"handoffd/engine/seal"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

func exit(n int) *int { return &n }

func called(id, name, text string) turn.Turn {
	return turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{Phase: turn.Call, Name: name, CallID: id}}
}

func resulted(id, text string) turn.Turn {
	return turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{Phase: turn.Result, CallID: id}}
}

// numbered numbers turns as a session of them would be.
func numbered(turns ...turn.Turn) []turn.Turn {
	for i := range turns {
		turns[i].Seq = int64(i)
		if turns[i].TS == "" {
			turns[i].TS = "2026-03-01T10:00:0" + string(rune('0'+i%10)) + ".000Z"
		}
	}
	return turns
}

// small is a session of every kind of turn.
func small() []turn.Turn {
	edit := called("c1", "Edit", `tool_use Edit {"file_path":"pkg/parser.go"}`)
	edit.Tool.Edits = []string{"pkg/parser.go"}
	again := called("c4", "Edit", `tool_use Edit {"file_path":"pkg/parser.go"}`)
	again.Tool.Edits = []string{"pkg/parser.go", "pkg/parser_test.go"}
	test := called("c2", "Bash", `tool_use Bash {"command":"go test ./... | tail -5"}`)
	test.Tool.Command = "go test ./... | tail -5"
	failed := resulted("c2", "Exit code 1\n--- FAIL: TestParse (0.00s)\n    parser_test.go:31: want 3, got 2")
	failed.Tool.Error, failed.Tool.Exit = true, exit(1)
	vet := called("c5", "Bash", `tool_use Bash {"command":"go vet ./..."}`)
	vet.Tool.Command = "go vet ./..."
	inner := turn.Turn{Class: turn.Agent, Text: "TODO: nobody should see this as the session's own.", Agent: "a17"}
	return numbered(
		turn.Turn{Class: turn.User, Text: "<environment_context>\n<cwd>/home/x</cwd>\n</environment_context>"},
		turn.Turn{Class: turn.User, Text: "Fix the parser"},
		turn.Turn{Class: turn.User, Text: "Fix the parser so that nested lists keep their order, and add a test."},
		turn.Turn{Class: turn.Thought, Text: "The user wants order. Let me look."},
		turn.Turn{Class: turn.Agent, Text: "I will look at the parser first.\n\n```go\nfunc Parse() {}\n```\n\n- [ ] TODO: keep the order of nested lists\n- [ ] TODO: update the changelog"},
		edit, resulted("c1", "ok"), test, failed,
		called("c3", "Task", `tool_use Task {"description":"find callers","prompt":"Find all callers of Parse"}`),
		inner, resulted("c3", "three callers"),
		again, resulted("c4", "ok"), vet, resulted("c5", "(empty)"),
		turn.Turn{Class: turn.Other, Text: "API Error: 529 overloaded"},
		turn.Turn{Class: turn.Agent, Text: "Nested lists keep their order now | and the tests pass.\n\n- [x] TODO: keep the order of nested lists\n\nNext steps: release it.\n\nShould I also update the changelog? And is `v1.4.0` the right version?"},
	)
}

// manifest is the manifest of turns.
func manifest(turns []turn.Turn) *session.Manifest {
	m := &session.Manifest{
		Session: "3f2b8c1e-77aa-4f0e-9d7c-0a1b2c3d4e5f", Project: "parser", Harness: "claude-code", Model: "claude-opus-4",
		CreatedAt: "2026-03-01T10:00:00.000Z", UpdatedAt: "2026-03-01T10:05:00.000Z",
		SourcePaths: []string{"/home/x/.claude/projects/-home-x/3f2b8c1e.jsonl"},
		RawSHA256:   strings.Repeat("ab", 32), Revisions: 2, TurnCount: len(turns), Schema: 1, Format: "claude",
		Sources: []session.Source{{Path: "/home/x/.claude/projects/-home-x/3f2b8c1e.jsonl", Bytes: 18231}},
		Meta: session.Meta{
			CWD: "/home/x/parser", Branch: "fix/order", Model: "claude-opus-4", Version: "2.0.14",
			FirstTS: "2026-03-01T10:00:00.000Z", LastTS: "2026-03-01T10:04:59.000Z", Compactions: 1,
			Tokens: session.Tokens{Input: 5120, Output: 2210, CacheRead: 80211, Context: 61000, Window: 200000},
		},
		ManifestSHA256: seal.Zero,
	}
	var n turn.Counts
	for _, t := range turns {
		n.Add(t.Class)
		m.Watermark = max(m.Watermark, t.Seq)
	}
	m.Counts = session.Counts{User: n.User, Agent: n.Agent, Thought: n.Thought, Tool: n.Tool}
	return m
}

// inputOf is what the renders of turns are made of.
func inputOf(turns []turn.Turn) Input {
	d := &Digest{}
	for i := range turns {
		d.Add(&turns[i])
	}
	return Input{M: manifest(turns), D: d, GeneratedAt: "2026-03-01T10:05:00.000Z"}
}
