// Package droid reads the sessions of Factory Droid: JSON lines, begun by a
// header. It never opens a file; what the CLI keeps beside a session (the
// model, the tokens) it asks for.
//
// A prompt that is edited starts a branch: what it replaces stays in the file
// and is captured, and a turn says where the branch starts.
//
// Sources of the format claims: the session schema of Factory's droid SDK as
// public readers of the format print it (message members modelId, visibility,
// hookEventName, chatCompletionReasoningContent; header members
// callingSessionId, parent, forkedAtMessageId; compaction_state with
// summaryText, anchorMessage, removedCount), the token totals of
// <id>.settings.json as junhoyeo/tokscale (droid.rs) and ryoppippi/ccusage read
// them; measured on a real file of 2026-03.
package droid

import (
	"path"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Log is the format.
type Log struct{}

var _ harness.Format = Log{}

// Traits implements harness.Format.
func (Log) Traits() harness.Traits {
	return harness.Traits{Key: "factory-droid", Harness: "factory-droid", Container: harness.JSONL, Identity: harness.ByID}
}

// Recognize implements harness.Format.
func (Log) Recognize(unit []byte) harness.Confidence {
	var r record
	var v harness.Value
	if _, err := v.Walk(unit, r.read); err != nil || !r.object || r.foreign {
		return harness.No
	}
	switch {
	case r.kind == "session_start" && r.id != "" && (r.cwd != "" || r.owner || r.title != "" || r.sessionTitle != ""):
		return harness.Certain
	case r.kind == "compaction_state" && r.id != "" && r.summary != "", r.kind == "todo_state" && r.id != "" && r.ts != "":
		return harness.Certain
	case r.kind == "message" && r.id != "" && r.hasMessage && r.blocks && r.ts != "":
		return harness.Perhaps // other agents write messages like it
	}
	return harness.No
}

// Record implements harness.Format.
func (Log) Record(obj []byte) bool {
	var r record
	var v harness.Value
	_, err := v.Walk(obj, r.read)
	return err == nil && kinds[r.kind] && (r.kind != "message" || r.hasMessage)
}

// kinds are the types of a line.
var kinds = map[string]bool{
	"session_start": true, "session_settings": true, "session_end": true, "message": true,
	"todo_state": true, "compaction_state": true, "agent_turn_outcome": true,
}

// Place implements harness.Format.
func (Log) Place(p string) bool {
	_, rel, ok := strings.Cut(filepath.ToSlash(p), ".factory/sessions/")
	return ok && keep(rel)
}

// About implements harness.Format. The file is named after the session.
func (f Log) About(p string, m *session.Meta) {
	if f.Place(p) {
		m.ID = strings.TrimSuffix(path.Base(filepath.ToSlash(p)), ".jsonl")
	}
}

// Decoder implements harness.Format.
func (Log) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newDecoder(state, env)
}

// Stores implements harness.Format. FACTORY_HOME_OVERRIDE replaces the home
// directory.
func (Log) Stores(home string, getenv func(string) string) []harness.Store {
	if dir := getenv("FACTORY_HOME_OVERRIDE"); dir != "" {
		home = dir
	}
	return []harness.Store{{
		Root: filepath.Join(home, ".factory", "sessions"),
		Keep: func(rel string, dir bool) bool {
			if dir {
				return !strings.Contains(rel, "/")
			}
			return keep(rel)
		},
	}}
}

// keep reports whether the file rel, below sessions/, is a session: one
// directory a project, and none in the first releases.
func keep(rel string) bool {
	return strings.Count(rel, "/") <= 1 && strings.HasSuffix(rel, ".jsonl")
}
