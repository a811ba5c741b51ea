// Package claude reads the transcripts of Claude Code: session files, the
// three generations of subagent files, and what damage and copying do to
// them. It never walks the parent chain to decide what exists: the order of
// the file is the order of the turns.
//
// Claims about the format come from real files of versions 1.0.24 to 2.1.185
// and from the public notes named in the comments (agentsview's
// docs/internal/session-format-sources.md, section "Claude Code").
package claude

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Format is the one value of this package's format.
type Format struct{}

// Traits implements harness.Format.
func (Format) Traits() harness.Traits {
	return harness.Traits{Key: "claude-code", Harness: "claude-code", Container: harness.JSONL, Identity: harness.ByID}
}

var (
	uuidStem = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	})
	agentStem = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^agent-[A-Za-z0-9_-]+$`) })
)

// Recognize implements harness.Format. The first line of a live file is
// usually bookkeeping, so every kind of record counts.
func (Format) Recognize(obj []byte) harness.Confidence {
	h, ok := readHead(obj)
	switch {
	case !ok || h.typ == "":
		return harness.No
	case h.sessionID && (turnTypes[h.typ] || bookkeeping[h.typ] || h.uuid):
		return harness.Certain
	case turnTypes[h.typ] && h.uuid && h.message:
		return harness.Certain
	case h.typ == "summary" && h.leafUUID, h.typ == "file-history-snapshot" && h.messageID:
		return harness.Certain
	}
	return harness.No
}

// Record implements harness.Format.
func (Format) Record(obj []byte) bool {
	h, ok := readHead(obj)
	return ok && h.typ != "" && (h.sessionID || h.uuid || h.leafUUID || h.messageID && bookkeeping[h.typ])
}

// head is what the top level of a record shows.
type head struct {
	typ                                           string
	sessionID, uuid, message, leafUUID, messageID bool
}

func readHead(obj []byte) (h head, ok bool) {
	if len(obj) == 0 || obj[0] != '{' {
		return h, false
	}
	var v harness.Value
	_, err := v.Walk(obj, func(v *harness.Value) {
		h = head{}
		v.Fields(func(name string) {
			switch name {
			case "type":
				h.typ = v.Text()
			case "sessionId":
				h.sessionID = true
			case "uuid":
				h.uuid = true
			case "message":
				h.message = v.Kind() == '{'
			case "leafUuid":
				h.leafUUID = true
			case "messageId":
				h.messageID = true
			}
		})
	})
	return h, err == nil
}

// Place implements harness.Format: <store>/projects/<encoded cwd>/... .
func (Format) Place(path string) bool {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i := len(parts) - 3; i >= 0; i-- {
		if parts[i] == "projects" {
			return keep(strings.Join(parts[i+1:], "/"), false)
		}
	}
	return false
}

// About implements harness.Format.
func (Format) About(path string, m *session.Meta) {
	stem := strings.TrimSuffix(filepath.Base(path), ".jsonl")
	switch {
	case uuidStem().MatchString(stem):
		m.ID = stem
	case agentStem().MatchString(stem):
		m.ID, m.Kind = stem, "subagent"
		parts := strings.Split(filepath.ToSlash(path), "/")
		for i := len(parts) - 2; i > 0; i-- {
			if parts[i] == "subagents" && uuidStem().MatchString(parts[i-1]) {
				m.Parent = parts[i-1]
				break
			}
		}
	}
}

// Decoder implements harness.Format.
func (Format) Decoder(state []byte, _ harness.Env) (harness.Decoder, error) {
	return newDecoder(state)
}

// Stores implements harness.Format. CLAUDE_CONFIG_DIR replaces ~/.claude and
// may be a list; some builds used ~/.config/claude.
func (Format) Stores(home string, getenv func(string) string) []harness.Store {
	dirs := []string{filepath.Join(home, ".claude"), filepath.Join(home, ".config", "claude")}
	if list := getenv("CLAUDE_CONFIG_DIR"); list != "" {
		dirs = strings.Split(list, ",")
	}
	var stores []harness.Store
	for _, d := range dirs {
		if d = strings.TrimSpace(d); filepath.IsAbs(d) {
			stores = append(stores, harness.Store{Root: filepath.Join(d, "projects"), Keep: keep})
		}
	}
	return stores
}

// keep accepts <project>/<uuid>.jsonl, <project>/agent-*.jsonl and anything
// agent-*.jsonl below a subagents directory. tool-results, memory and the
// workflow journals are no transcripts.
func keep(rel string, dir bool) bool {
	parts := strings.Split(rel, "/")
	name := parts[len(parts)-1]
	if dir {
		return name != "tool-results" && name != "memory"
	}
	stem, ok := strings.CutSuffix(name, ".jsonl")
	if !ok {
		return false
	}
	for _, p := range parts[:len(parts)-1] {
		if p == "subagents" {
			return agentStem().MatchString(stem)
		}
	}
	return len(parts) == 2 && (uuidStem().MatchString(stem) || agentStem().MatchString(stem))
}

// Bookkeeping implements harness.Prefixer: progress records grew to 144 MB a
// line and embed whole conversations that are captured elsewhere.
func (Format) Bookkeeping(prefix []byte) bool {
	prefix = prefix[:min(len(prefix), 4096)]
	var v harness.Value
	progress := false
	_, _ = v.Walk(prefix, func(v *harness.Value) {
		v.Fields(func(name string) {
			if name == "type" {
				progress = v.Text() == "progress"
			}
		})
	})
	return progress || bytes.HasPrefix(prefix, []byte(`{"type":"progress"`))
}

// turnTypes are the records that speak.
var turnTypes = map[string]bool{"user": true, "assistant": true, "system": true, "attachment": true}

// bookkeeping are the known records that never become turns.
var bookkeeping = map[string]bool{
	"progress": true, "queue-operation": true, "file-history-snapshot": true, "last-prompt": true,
	"mode": true, "permission-mode": true, "summary": true, "ai-title": true, "custom-title": true,
	"pr-link": true, "agent-name": true, "agent-setting": true, "agent-color": true,
	"bridge-session": true, "continued-in": true, "atis-latch": true, "cost-state": true,
	"started": true, "result": true, "tag": true, "task-summary": true, "worktree-state": true,
	"content-replacement": true, "attribution-snapshot": true, "speculation-accept": true,
}
