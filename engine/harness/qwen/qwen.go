// Package qwen reads the sessions of Qwen Code: JSON lines that form a tree by
// uuid and parentUuid. It never opens a file. What a rewind takes back or a
// compression replaces stays, and a turn says what happened.
//
// Releases before this format kept sessions as Gemini CLI does, below
// ~/.qwen/tmp; those are read by that format when they are handed over, and
// are not looked for.
//
// Sources of the format claims: QwenLM/qwen-code
// packages/core/src/services/chatRecordingService.ts (@015346f1),
// packages/core/src/config/storage.ts (@013e660f) and
// packages/core/src/agents/agent-transcript.ts. No real file was at hand.
package qwen

import (
	"path"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Tree is the format.
type Tree struct{}

var _ harness.Format = Tree{}

// Traits implements harness.Format.
func (Tree) Traits() harness.Traits {
	return harness.Traits{Key: "qwen-code", Harness: "qwen-code", Container: harness.JSONL, Identity: harness.ByID}
}

// Recognize implements harness.Format. The envelope is Claude Code's too; what
// is in it is not.
func (Tree) Recognize(unit []byte) harness.Confidence {
	var r record
	var v harness.Value
	if _, err := v.Walk(unit, r.read); err != nil || !r.enveloped() {
		return harness.No
	}
	if r.hasParts || r.hasPayload || r.hasOutcome {
		return harness.Certain
	}
	return harness.No
}

// Record implements harness.Format.
func (Tree) Record(obj []byte) bool {
	var r record
	var v harness.Value
	_, err := v.Walk(obj, r.read)
	return err == nil && r.enveloped()
}

// Place implements harness.Format.
func (Tree) Place(p string) bool {
	_, rel, ok := strings.Cut(filepath.ToSlash(p), ".qwen/projects/")
	return ok && keep(rel)
}

// About implements harness.Format. The file is named after the session; that
// of a subagent stands in a directory named after its parent.
func (f Tree) About(p string, m *session.Meta) {
	if !f.Place(p) {
		return
	}
	p = filepath.ToSlash(p)
	m.ID = strings.TrimSuffix(path.Base(p), ".jsonl")
	if dir := path.Dir(p); path.Base(path.Dir(dir)) == "subagents" {
		m.Kind, m.Parent = "subagent", path.Base(dir)
	}
}

// Decoder implements harness.Format.
func (Tree) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newDecoder(state, env)
}

// Stores implements harness.Format. QWEN_RUNTIME_DIR, else QWEN_HOME, replaces
// ~/.qwen.
func (Tree) Stores(home string, getenv func(string) string) []harness.Store {
	root := getenv("QWEN_RUNTIME_DIR")
	if root == "" {
		root = getenv("QWEN_HOME")
	}
	if root == "" {
		root = filepath.Join(home, ".qwen")
	}
	return []harness.Store{{
		Root: filepath.Join(root, "projects"),
		Keep: func(rel string, dir bool) bool {
			if !dir {
				return keep(rel)
			}
			parts := strings.Split(rel, "/")
			switch {
			case len(parts) == 1:
				return true
			case len(parts) == 2:
				return parts[1] == "chats" || parts[1] == "subagents"
			}
			return len(parts) == 3 && (parts[1] == "subagents" || parts[2] == "archive")
		},
	}}
}

// keep reports whether the file rel, below projects/, is a session:
// P/chats/ID, P/chats/archive/ID or P/subagents/ID/agent-A. Beside them are
// ID.runtime.json, ID.worktree.json, ID.ledger.jsonl and agent-A.meta.json.
func keep(rel string) bool {
	stem, ok := strings.CutSuffix(rel, ".jsonl")
	if !ok || strings.HasSuffix(stem, ".ledger") {
		return false
	}
	parts := strings.Split(stem, "/")
	switch len(parts) {
	case 3:
		return parts[1] == "chats"
	case 4:
		return parts[1] == "chats" && parts[2] == "archive" || parts[1] == "subagents" && strings.HasPrefix(parts[3], "agent-")
	}
	return false
}
