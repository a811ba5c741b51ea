// Package copilot reads the sessions of GitHub Copilot CLI: a log of events,
// one a line, in which a call of a tool is announced by the message that asks
// for it and again when it starts. It never opens a file, and keeps neither
// the system prompt nor what hooks were told.
//
// Sources of the format claims: the event names and their data are those of
// github/copilot-sdk (nodejs/src/generated/session-events.ts @4ee18599), the places and
// the damage those of the public reports github/copilot-cli#2012, #2209,
// #2217, #2490, #2649, #2899, #2927 and #4098; measured on real files of
// versions 1.0.12, 1.0.20 and 1.0.64.
package copilot

import (
	"path"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Events is the format.
type Events struct{}

var _ harness.Format = Events{}

// Traits implements harness.Format.
func (Events) Traits() harness.Traits {
	return harness.Traits{Key: "copilot-cli", Harness: "copilot-cli", Container: harness.JSONL, Identity: harness.ByID}
}

// Recognize implements harness.Format.
func (Events) Recognize(unit []byte) harness.Confidence {
	var e event
	var v harness.Value
	if _, err := v.Walk(unit, e.read); err != nil || !e.enveloped() {
		return harness.No
	}
	if known(e.kind) && e.hasParent {
		return harness.Certain
	}
	if known(e.kind) || e.hasParent && strings.Contains(e.kind, ".") {
		return harness.Perhaps
	}
	return harness.No
}

// Record implements harness.Format.
func (Events) Record(obj []byte) bool {
	var e event
	var v harness.Value
	_, err := v.Walk(obj, e.read)
	return err == nil && e.enveloped() && e.ts != ""
}

// families are the first words of the types of events.
var families = map[string]bool{
	"session": true, "user": true, "assistant": true, "tool": true, "system": true, "hook": true,
	"subagent": true, "skill": true, "permission": true, "command": true, "commands": true,
	"elicitation": true, "external_tool": true, "exit_plan_mode": true, "pending_messages": true,
	"user_input": true, "mcp": true, "sampling": true, "auto_mode_switch": true, "capabilities": true,
	"abort": true,
}

// known reports whether a type is of a family that Copilot CLI writes. What is
// new in a known family is of no concern here (github/copilot-cli#2899).
func known(kind string) bool {
	family, _, dotted := strings.Cut(kind, ".")
	return families[family] && (dotted || kind == "abort")
}

const store = "session-state"

// Place implements harness.Format.
func (Events) Place(p string) bool {
	_, rel, ok := strings.Cut(filepath.ToSlash(p), store+"/")
	return ok && keep(rel)
}

// About implements harness.Format. A session is a directory named after its
// id; before that it was a file.
func (Events) About(p string, m *session.Meta) {
	p = filepath.ToSlash(p)
	dir, name := path.Dir(p), path.Base(p)
	switch {
	case path.Base(dir) == store:
		m.ID = strings.TrimSuffix(name, ".jsonl")
	case path.Base(path.Dir(dir)) == store && name == "events.jsonl":
		m.ID = path.Base(dir)
	}
}

// Decoder implements harness.Format.
func (Events) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newDecoder(state, env)
}

// Stores implements harness.Format. COPILOT_HOME replaces ~/.copilot
// (github/copilot-sdk docs/setup/multi-tenancy.md).
func (Events) Stores(home string, getenv func(string) string) []harness.Store {
	root := getenv("COPILOT_HOME")
	if root == "" {
		root = filepath.Join(home, ".copilot")
	}
	return []harness.Store{{
		Root: filepath.Join(root, store),
		Keep: func(rel string, dir bool) bool {
			if dir {
				return !strings.Contains(rel, "/")
			}
			return keep(rel)
		},
	}}
}

// keep reports whether the file rel, below session-state/, is a session:
// beside the events are workspace.yaml, plan.md, session.db, checkpoints/ and
// files/ (github/copilot-cli#2927).
func keep(rel string) bool {
	dir, name, nested := strings.Cut(rel, "/")
	if nested {
		return dir != "" && name == "events.jsonl"
	}
	return strings.HasSuffix(rel, ".jsonl")
}
