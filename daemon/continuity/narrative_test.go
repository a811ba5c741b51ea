package continuity

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"handoffd/engine/fault"
	"handoffd/policy/gate"
	"handoffd/policy/pressure"
)

// What was said last, in the words of each kind of transcript.
func TestNarrative(t *testing.T) {
	dir := t.TempDir()
	tool := func(n int) string {
		return strings.Repeat(`{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"go test ./...\"]}","call_id":"c"}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"{\"output\":\"FAIL\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}"}}
`, n)
	}
	codex := `{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"019a0000-0000-7000-8000-000000000001","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/p","originator":"codex_cli_rs","cli_version":"0.142.0"}}
` + tool(4) + `{"timestamp":"2026-01-02T03:04:07.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"the end"}]}}
`
	claude := `{"type":"assistant","requestId":"r","timestamp":"2026-01-02T03:04:07Z","message":{"content":[{"type":"text","text":"first half"}]}}
{"type":"assistant","requestId":"r","timestamp":"2026-01-02T03:04:07Z","message":{"content":[{"type":"text","text":"the end"}]}}
`
	for _, c := range []struct {
		name, text, said string
		flail            int
	}{
		{"codex.jsonl", codex, "the end", 2},
		{"claude.jsonl", claude, "first half\nthe end", 0},
		{"claude-torn.jsonl", claude + `{"type":"assist`, "first half\nthe end", 0},
		{"silent.jsonl", `{"type":"user","message":{"content":"x"}}` + "\n", "", 0},
		{"canonical.jsonl", `{"seq":1,"role":"user","text":"go"}` + "\n" + `{"seq":2,"role":"assistant","text":"the end"}` + "\n", "the end", 0},
		{"gemini.json", `{"sessionId":"11111111-2222-3333-4444-555555555555","projectHash":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","startTime":"2026-01-02T03:04:05.000Z","lastUpdated":"2026-01-02T03:04:07.000Z","messages":[{"id":"1","timestamp":"2026-01-02T03:04:05.000Z","type":"user","content":"go"},{"id":"2","timestamp":"2026-01-02T03:04:07.000Z","type":"gemini","content":"the end","model":"gemini-2.5-pro"}]}`, "the end", 0},
		{"long.jsonl", strings.Repeat(strings.SplitAfter(codex, "\n")[1], 9000) + codex, "the end", 2},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := narrative(path)
		if err != nil || n.Text != c.said || len(n.Flail) != c.flail {
			t.Errorf("%s: %+v, %v", c.name, n, err)
		}
		if c.said != "" && c.name != "canonical.jsonl" && n.Newest.Format(time.DateOnly) != "2026-01-02" {
			t.Errorf("%s: newest %v", c.name, n.Newest)
		}
	}
	for name, text := range map[string]string{"empty": "", "garbage": "no JSON here", "list": "[1,2]", "half.jsonl": `{"type":"assi`, "utf16": "\xff\xfea\x00"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := narrative(path); !fault.Is(err, fault.Refused) {
			t.Errorf("behaviour 81: %s: %+v, %v", name, n, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := narrative(path); !fault.Is(err, fault.Refused) {
			t.Errorf("behaviour 81: %s: %v", path, err)
		}
	}
}

func TestProject(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"a/.adlc", "a/sub/deep", "a/repo/.git", "a/repo/sub", "b"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(d)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	join := func(p string) string { return filepath.Join(root, filepath.FromSlash(p)) }
	for _, c := range []struct {
		dir, cwd, want string
		fails          bool
	}{
		{"", join("a"), join("a"), false},
		{"", join("a/sub/deep"), join("a"), false},
		{"", join("a/repo/sub"), join("a/repo/sub"), false}, // another checkout
		{join("b/nested/.adlc"), join("a"), join("b/nested"), false},
		{join("b/ledger"), join("a"), "", true}, // behaviour 74
	} {
		got, err := project(c.dir, c.cwd)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%q from %s: %q, %v", c.dir, c.cwd, got, err)
		}
	}
}

// Asking git runs nothing that the checkout configures.
func TestWorkingTree(t *testing.T) {
	dir := t.TempDir()
	if b, s := workingTree(t.Context(), dir); b != "" || s != nil {
		t.Errorf("no checkout: %q %v", b, s)
	}
	if out, err := exec.Command("git", "init", "-q", "-b", "trunk", dir).CombinedOutput(); err != nil {
		t.Skipf("git is not here, or too old: %s", out)
	}
	trap := filepath.Join(dir, ".git", "trap")
	config, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(config, "[core]\n\tfsmonitor = touch %s; false\n", trap); err != nil {
		t.Fatal(err)
	}
	if err := config.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a b"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	branch, status := workingTree(t.Context(), dir)
	if branch != "trunk" || !slices.Equal(status, []string{`?? "a b"`}) {
		t.Errorf("%q %q", branch, status)
	}
	if _, err := os.Lstat(trap); err == nil {
		t.Error("a program of the checkout was run")
	}
}

// A gate that breaks is no way in where a gate was asked for.
func TestBrokenGate(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, ledgerName), 0o700); err != nil {
		t.Fatal(err)
	}
	full := 99.0
	c := gate.Call{Session: "s1", Tool: gate.Edit, Dir: root, Pressure: pressure.Observation{Pct: &full}}
	c.Store.Root = root // without a clock it cannot write a marker
	if v := decide(c); v.Deny {
		t.Errorf("nobody asked for a gate: %+v", v)
	}
	if err := os.WriteFile(filepath.Join(root, ledgerName, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := decide(c); !v.Deny || len(v.Reasons) != 1 || !strings.HasPrefix(v.Reasons[0], "gate_error:panic") {
		t.Errorf("%+v", v)
	}
}
