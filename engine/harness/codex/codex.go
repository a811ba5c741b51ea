// Package codex reads the rollouts of the OpenAI Codex CLI, desktop app and
// IDE extension: JSON lines in the flat form of 2025-07, in the envelope
// {timestamp, type, payload} that followed, with or without events, and the
// single JSON object of 2025-06. It never opens a file, and never reads
// auth.json, history.jsonl or Codex's databases.
//
// A rollout says most things twice. The response items are the record; the
// events beside them (user_message, agent_message, item_completed, the *_end
// of tools) are kept only where no item of the same turn says the same.
//
// Sources of the format claims: openai/codex codex-rs/protocol/src/{models,
// items,protocol}.rs and codex-rs/rollout/src/policy.rs (@0136a731), and
// counts over real rollouts of 0.34 to 0.142.5 (2025-10 to 2026-06). The
// maintainers promise nothing (openai/codex#45251), so every field may be
// missing, of another type, or new.
package codex

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Rollout is the JSONL format.
type Rollout struct{}

// Document is the single object of 2025-06.
type Document struct{}

var (
	_ harness.Format   = Rollout{}
	_ harness.Format   = Document{}
	_ harness.Prefixer = Rollout{}
)

// Traits implements harness.Format. The same content may stand in a plain
// file, in its .zst and in archived_sessions, and few records carry an id.
func (Rollout) Traits() harness.Traits {
	return harness.Traits{Key: "codex", Harness: "codex", Container: harness.JSONL, Identity: harness.ByContent, Replays: true}
}

// Recognize implements harness.Format.
func (Rollout) Recognize(unit []byte) harness.Confidence {
	var r record
	var v harness.Value
	if _, err := v.Walk(unit, r.read); err != nil || !r.object {
		return harness.No
	}
	switch {
	case r.enveloped && envelopes[r.kind]:
		return harness.Certain
	case r.recordType == "state" && r.kind == "":
		return harness.Certain
	case r.header():
		return harness.Certain
	case r.enveloped || r.foreign:
		return harness.No
	case items[r.kind]:
		// A bare item is what the Responses API writes, so anything that
		// logs it looks the same.
		if r.kind == "message" && !r.hasContent {
			return harness.No
		}
		return harness.Perhaps
	}
	return harness.No
}

// Record implements harness.Format. Bare items are refused: inside a damaged
// line they are more likely the payload of a torn envelope.
func (Rollout) Record(obj []byte) bool {
	var r record
	var v harness.Value
	if _, err := v.Walk(obj, r.read); err != nil || r.ts == "" {
		return false
	}
	return r.enveloped && envelopes[r.kind] || !r.enveloped && items[r.kind] || r.header()
}

// Bookkeeping implements harness.Prefixer: an over-long compacted record is
// long for the history in it, which the lines before hold already (B7).
func (Rollout) Bookkeeping(prefix []byte) bool {
	head := string(prefix[:min(len(prefix), 256)])
	return strings.Contains(head, `"type":"compacted"`) || strings.Contains(head, `"type":"world_state"`)
}

// Place implements harness.Format.
func (Rollout) Place(p string) bool {
	return stored(p) && strings.HasSuffix(strings.TrimSuffix(path.Base(filepath.ToSlash(p)), ".zst"), ".jsonl")
}

// About implements harness.Format.
func (Rollout) About(p string, m *session.Meta) { about(p, m) }

// Decoder implements harness.Format.
func (Rollout) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newDecoder(state, env)
}

// Stores implements harness.Format.
func (Rollout) Stores(home string, getenv func(string) string) []harness.Store {
	return stores(home, getenv, ".jsonl", ".jsonl.zst")
}

// rollout matches the name of a session file. "rollout-… (1).jsonl" is a copy
// that a file manager made (openai/codex#39853) and does not match.
var rollout = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^rollout-.*?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.json(?:l(?:\.zst)?)?$`)
})

func about(p string, m *session.Meta) {
	if id := rollout().FindStringSubmatch(path.Base(filepath.ToSlash(p))); id != nil {
		m.ID = id[1]
	}
}

// stored reports whether p is a session file in a Codex store.
func stored(p string) bool {
	p = filepath.ToSlash(p)
	if !rollout().MatchString(path.Base(p)) {
		return false
	}
	dir := "/" + path.Dir(p) + "/"
	return strings.Contains(dir, "/sessions/") || strings.Contains(dir, "/archived_sessions/")
}

// stores lists the store of a user. Only sessions/ and archived_sessions/ are
// entered: the files beside them are secrets and indexes.
func stores(home string, getenv func(string) string, ends ...string) []harness.Store {
	root := getenv("CODEX_HOME")
	if root == "" {
		root = filepath.Join(home, ".codex")
	}
	return []harness.Store{{Root: root, Keep: func(rel string, dir bool) bool {
		top, _, _ := strings.Cut(rel, "/")
		if top != "sessions" && top != "archived_sessions" {
			return false
		}
		if dir {
			return true
		}
		if !rollout().MatchString(path.Base(rel)) {
			return false
		}
		for _, end := range ends {
			if strings.HasSuffix(rel, end) {
				return true
			}
		}
		return false
	}}}
}
