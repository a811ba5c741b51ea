package kimi

import (
	"path"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Wire is the format of Kimi Code, the CLI's successor: the log of one agent,
// which is only appended to. The wire log of Kimi CLI is another and is not
// read.
//
// Sources of the format claims: kenn-io/agentsview internal/parser/kimi.go
// (@002f6726) and the record types that Kimi Code's own session viewer lists
// (context.append_message, context.append_loop_event, context.undo ...). No
// real file was at hand.
type Wire struct{}

var _ harness.Format = Wire{}

// Traits implements harness.Format.
func (Wire) Traits() harness.Traits {
	return harness.Traits{Key: "kimi-code", Harness: "kimi", Container: harness.JSONL, Identity: harness.ByID}
}

// Recognize implements harness.Format.
func (Wire) Recognize(unit []byte) harness.Confidence {
	var r wireRecord
	var v harness.Value
	if _, err := v.Walk(unit, r.read); err != nil || !r.object {
		return harness.No
	}
	switch {
	case r.kind == "metadata" && r.protocol && r.created,
		r.kind == "context.append_message" && r.hasMessage,
		r.kind == "context.append_loop_event" && r.event.kind != "",
		r.kind == "turn.prompt" && r.hasInput:
		return harness.Certain
	}
	return harness.No
}

// Record implements harness.Format.
func (Wire) Record(obj []byte) bool {
	var r wireRecord
	var v harness.Value
	_, err := v.Walk(obj, r.read)
	return err == nil && r.object && r.kind != "" && (r.ts != "" || r.created)
}

// Place implements harness.Format.
func (Wire) Place(p string) bool {
	parts := strings.Split(filepath.ToSlash(p), "/")
	n := len(parts)
	return n > 5 && parts[n-6] == "sessions" && keepWire(strings.Join(parts[n-5:], "/"))
}

// mainAgent is the agent that the user speaks to.
const mainAgent = "main"

// About implements harness.Format. The session is a directory that holds one
// for each agent.
func (f Wire) About(p string, m *session.Meta) {
	if !f.Place(p) {
		return
	}
	dir := path.Dir(filepath.ToSlash(p))
	agent, id := path.Base(dir), path.Base(path.Dir(path.Dir(dir)))
	m.ID = id
	if agent != mainAgent {
		m.ID, m.Kind, m.Parent = id+"-"+agent, "subagent", id
	}
}

// Decoder implements harness.Format.
func (Wire) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newWireDecoder(state, env)
}

// Stores implements harness.Format. KIMI_CODE_HOME replaces ~/.kimi-code.
func (Wire) Stores(home string, getenv func(string) string) []harness.Store {
	root := getenv("KIMI_CODE_HOME")
	if root == "" {
		root = filepath.Join(home, ".kimi-code")
	}
	return []harness.Store{{
		Root: filepath.Join(root, "sessions"),
		Keep: func(rel string, dir bool) bool {
			if !dir {
				return keepWire(rel)
			}
			parts := strings.Split(rel, "/")
			return len(parts) <= 2 || len(parts) <= 4 && parts[2] == "agents"
		},
	}}
}

// keepWire reports whether the file rel, below sessions/, is a log:
// wd_NAME_HASH/session_ID/agents/AGENT/wire.jsonl.
func keepWire(rel string) bool {
	parts := strings.Split(rel, "/")
	return len(parts) == 5 && parts[2] == "agents" && parts[4] == "wire.jsonl"
}
