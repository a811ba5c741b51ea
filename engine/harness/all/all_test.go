package all

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoffd/engine/fault"
)

// labels are the harnesses by the folders of their formats.
var labels = map[string]string{
	"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "pi": "pi", "copilot": "copilot-cli",
	"cursor": "cursor", "droid": "factory-droid", "kimi": "kimi", "qwen": "qwen-code", "canonical": "canonical", "text": "text",
	"cline": "cline", "aider": "aider", "kiro": "kiro", "amp": "amp",
}

// TestOwn checks that content alone tells the harness of every sample, and
// that no format takes another's.
func TestOwn(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "*", "testdata", "*.golden"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	names = append(names, filepath.Join("..", "kimi", "testdata", "code", "wire.jsonl.golden"))
	for _, name := range names {
		want, ok := labels[strings.Split(filepath.ToSlash(name), "/")[1]]
		if !ok || strings.Contains(filepath.Base(name), "#") { // a session of a bundle
			continue
		}
		name = strings.TrimSuffix(name, ".golden")
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"/elsewhere/copy" + filepath.Ext(name), "/h/.claude/projects/p/copy.jsonl"} {
			f, err := Detect(at, data, true, "")
			if err != nil {
				t.Errorf("%s at %s: %v", name, at, err)
			} else if got := f.Traits().Harness; got != want {
				t.Errorf("%s at %s is taken for %s", name, at, got)
			}
		}
		// A line that is not the first: heads are pruned, and torn. What
		// is left may be anybody's, but not another harness's.
		if _, rest, ok := bytes.Cut(data, []byte("\n")); ok && filepath.Ext(name) == ".jsonl" {
			f, err := Detect("/elsewhere/copy.jsonl", rest, true, "")
			if err == nil && f.Traits().Harness != want && !f.Traits().Unlabelled {
				t.Errorf("%s without its first line is taken for %s", name, f.Traits().Harness)
			}
		}
	}
}

// TestNeighbours checks that what harnesses keep beside their sessions is
// refused in one line, wherever it is.
func TestNeighbours(t *testing.T) {
	for name, content := range map[string]string{
		"gemini/logs.json":             `[{"sessionId":"a","messageId":0,"timestamp":"2026-05-01T09:00:00.000Z","type":"user","message":"hi"}]`,
		"gemini/checkpoint-x.json":     `{"history":[{"role":"user","parts":[{"text":"hi"}]}],"authType":"x"}`,
		"gemini/checkpoint-old.json":   `[{"role":"user","parts":[{"text":"hi"}]}]`,
		"gemini/projects.json":         `{"projects":{"/home/dev/p":"p"}}`,
		"gemini/.project_root":         "/home/dev/p",
		"gemini/settings.json":         "{\n  \"theme\": \"x\",\n  \"selectedAuthType\": \"y\"\n}",
		"gemini/stream.jsonl":          `{"type":"init","timestamp":"2026-05-01T09:00:00.000Z","session_id":"a","model":"m"}` + "\n",
		"copilot/workspace.yaml":       "id: a\ncwd: /home/dev/p\nsummary: hi\n",
		"copilot/vscode.metadata.json": `{"workspaceFolder":{"folderPath":"/p"},"writtenToDisc":true}`,
		"copilot/config.json":          "{\n  \"trusted_folders\": []\n}",
		"copilot/plan.md":              "# Plan\n\n1. do it\n",
		"cursor/mcp-cache.json":        `{"servers":{}}`,
		"cursor/terminal.txt":          "pid: 4\ncwd: /p\n---\n$ ls\n",
		"kimi/state.json":              `{"version":1,"custom_title":"t","title_generated":false,"wire_mtime":null,"archived":false}`,
		"kimi/metadata.json":           `{"session_id":"s","title":"t","wire_mtime":1.5}`,
		"kimi/kimi.json":               `{"work_dirs":[{"path":"/p","kaos":"local","last_session_id":null}]}`,
		"kimi/wire.jsonl":              `{"type":"metadata","protocol_version":"1.3"}` + "\n" + `{"timestamp":1770000000.0,"message":{"type":"TurnBegin","payload":{"user_input":"hi"}}}` + "\n",
		"kimi/old-wire.jsonl":          `{"protocol_version":1,"type":"hello"}` + "\n" + `{"timestamp":1770000005.5,"message":{"type":"ToolCall"}}` + "\n",
		"droid/x.settings.json":        `{"model":"m","reasoningEffort":"high","tokenUsage":{"inputTokens":1}}`,
		"qwen/x.runtime.json":          `{"session_id":"x","pid":4,"started_at":1770000000}`,
		"qwen/x.worktree.json":         `{"slug":"x","worktreePath":"/p"}`,
		"cline/task_metadata.json":     `{"files_in_context":[{"path":"a.go","record_state":"active"}],"model_usage":[{"ts":1777073160000,"model_id":"m","mode":"act"}]}`,
		"cline/taskHistory.json":       `[{"id":"1777073160000","ts":1777073160000,"task":"do it","tokensIn":1,"cwdOnTaskInitialization":"/p"}]`,
		"roo/history_item.json":        `{"id":"0190","number":1,"ts":1777073160000,"task":"do it","workspace":"/p","mode":"code"}`,
		"any/chat-completion.json":     `[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"hello"}]}]`,
		"aider/.aider.input.history":   "\n# 2025-10-20 21:49:22.123456\n+/add a.go\n",
		"aider/.aider.llm.history":     "TO LLM 2025-10-20T21:49:22\n-------\nSYSTEM Act as an expert\n-------\nUSER hi\n",
		"aider/.aider.conf.yml":        "model: sonnet\n",
		"kiro/x.json":                  `{"session_id":"x","cwd":"/p","title":"t","session_state":{"rts_model_state":{"conversation_id":"x"}}}`,
		"kiro/x.lock":                  `{"pid":4,"started_at":"2026-04-16T05:30:52Z"}`,
		"amp/secrets.json":             `{"apiKey@https://ampcode.com/":"x"}`,
		"amp/settings.json":            "{\n  \"amp.url\": \"https://ampcode.com/\",\n  \"amp.dangerouslyAllowAll\": true\n}",
		"pi/settings.json":             `{"defaultProvider":"x","theme":"dark"}`,
		"pi/auth.json":                 `{"anthropic":{"type":"api_key"}}`,
		"claude/sessions-index.json":   `{"version":1,"entries":[]}`,
		"any/null":                     "null",
		"any/number":                   "17\n",
		"any/array":                    "[]",
		"any/object":                   "{}\n",
		"any/prose":                    "Some words.\nMore of them.\n",
	} {
		for _, complete := range []bool{true, false} {
			f, err := Detect("/elsewhere/"+name, []byte(content+"\n"), complete, "")
			switch {
			case err == nil:
				t.Errorf("%s is taken for %s", name, f.Traits().Key)
			case !fault.Is(err, fault.Unsupported):
				t.Errorf("%s: %v", name, err)
			case strings.Contains(err.Error(), "\n"):
				t.Errorf("%s: more than a line: %v", name, err)
			}
		}
	}
}

// TestPlaces checks that the place tells what content does not: lines that
// anybody could have written.
func TestPlaces(t *testing.T) {
	for path, c := range map[string]struct{ content, own, elsewhere string }{
		"/h/.kimi/sessions/0123/s-1/context.jsonl":      {`{"role":"user","content":"hi"}`, "kimi", "canonical"},
		"/h/.cursor/projects/p/agent-transcripts/a.txt": {"user:\nhi\n\nassistant:\nhello", "cursor", "text"},
		"/h/.factory/sessions/-p/a.jsonl":               {`{"type":"message","id":"m","role":"user","text":"hi"}`, "factory-droid", "canonical"},
		"/h/.copilot/session-state/a/events.jsonl":      {`{"role":"user","content":"hi"}`, "canonical", "canonical"},
		"/h/.claude/projects/p/a.jsonl":                 {`{"role":"user","content":"hi"}`, "canonical", "canonical"},
	} {
		for at, want := range map[string]string{path: c.own, "/elsewhere/" + filepath.Base(path): c.elsewhere} {
			f, err := Detect(at, []byte(c.content+"\n"), true, "")
			if err != nil {
				t.Errorf("%s: %v", at, err)
			} else if got := f.Traits().Harness; got != want {
				t.Errorf("%s is taken for %s, want %s", at, got, want)
			}
		}
	}
}

// TestAlike checks that harnesses which write alike are told apart by their
// traces, then by the user, then by the place.
func TestAlike(t *testing.T) {
	const (
		plain = `[{"ts":1777073160000,"type":"say","say":"text","text":"do it"}]`
		chat  = `[{"role":"user","content":[{"type":"text","text":"do it"}]}]`
		store = "/h/.config/Code/User/globalStorage/"
		cline = store + "saoudrizwan.claude-dev/tasks/1/"
		roo   = store + "rooveterinaryinc.roo-cline/tasks/1/"
		kilo  = store + "kilocode.kilo-code/tasks/1/"
	)
	sample := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "cline", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, c := range []struct{ content, path, hint, want string }{
		{plain, "/elsewhere/copy.json", "", "cline"},
		{plain, "/elsewhere/copy.json", "kilo", "kilo"},
		{plain, cline + "ui_messages.json", "", "cline"},
		{plain, roo + "ui_messages.json", "", "roo"},
		{plain, kilo + "ui_messages.json", "", "kilo"},
		{"\ufeff \n" + plain, kilo + "ui_messages.json", "", "kilo"},
		{chat, roo + "api_conversation_history.json", "", "roo"},
		{chat, "/elsewhere/copy.json", "roo", "roo"},
		{chat, "/elsewhere/copy.json", "codex", ""},
		{chat, "/elsewhere/copy.json", "", ""},
		{sample("messages.json"), roo + "copy.json", "", "cline"},
		{sample("roo/messages.json"), "/elsewhere/copy.json", "", "roo"},
		{sample("roo/messages.json"), kilo + "ui_messages.json", "", "kilo"},
		{sample("kilo/messages.json"), "/elsewhere/copy.json", "", "kilo"},
	} {
		var got string
		f, err := Detect(c.path, []byte(c.content), true, c.hint)
		if err == nil {
			got = f.Traits().Harness
		} else if !fault.Is(err, fault.Unsupported) {
			t.Errorf("%.40s at %s: %v", c.content, c.path, err)
		}
		if got != c.want {
			t.Errorf("%.40s at %s, hint %q, is taken for %q, want %q", c.content, c.path, c.hint, got, c.want)
		}
	}
}

// TestReal checks the harness of every real transcript at hand.
func TestReal(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "shared", "fixtures", "transcripts")
	own := map[string]bool{}
	for _, label := range labels {
		own[label] = true
	}
	n := 0
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		want, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		base := filepath.Base(p)
		if !own[want] || strings.HasSuffix(base, ".meta.json") || strings.HasSuffix(base, ".zst") {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		head := data[:min(len(data), HeadBytes)]
		f, err := Detect("/elsewhere/"+base, head, len(head) == len(data), "")
		beside := want == "kimi" && base != "context.jsonl" || base == "journal.jsonl"
		switch {
		case err != nil && (beside || fault.Is(err, fault.NoTurns)):
		case err != nil:
			t.Errorf("%s: %v", rel, err)
		case beside:
			t.Errorf("%s is taken for %s", rel, f.Traits().Key)
		case f.Traits().Harness != want:
			t.Errorf("%s is taken for %s", rel, f.Traits().Harness)
		default:
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Skip("no transcripts at hand beside the project")
	}
	t.Logf("%d transcripts", n)
}
