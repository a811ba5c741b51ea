// Package gemini reads the sessions of Gemini CLI: the upsert log of 0.39 and
// later, in which a message is written again whole each time it changes, and
// the single JSON object before it. It never opens a file; the working
// directory, which only files beside the session know, it asks for.
//
// A message becomes several turns (thoughts, text, the call and the result of
// each tool), each with an id derived from the message's, so that a message
// written again adds only what is new. What a checkpoint or a rewind takes
// back stays: this is an archive of what was said.
//
// Sources of the format claims: google-gemini/gemini-cli
// packages/core/src/services/{chatRecordingService,chatRecordingTypes}.ts
// (@016443b5, @04741d1d), packages/core/src/config/{storage,projectRegistry}.ts
// (@5411f113) and eight real files of 2026-01 to 2026-03.
package gemini

import (
	"bytes"
	"path"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Log is the JSONL format.
type Log struct{}

// Document is the single JSON object of 0.38 and before.
type Document struct{}

var (
	_ harness.Format = Log{}
	_ harness.Format = Document{}
)

// Traits implements harness.Format.
func (Log) Traits() harness.Traits {
	return harness.Traits{Key: "gemini-cli", Harness: "gemini-cli", Container: harness.JSONL, Identity: harness.ByID}
}

// Traits implements harness.Format.
func (Document) Traits() harness.Traits {
	return harness.Traits{Key: "gemini-json", Harness: "gemini-cli", Container: harness.Document, Identity: harness.ByID}
}

// Recognize implements harness.Format.
func (Log) Recognize(unit []byte) harness.Confidence {
	var r record
	var v harness.Value
	if _, err := v.Walk(unit, r.read); err != nil || !r.object || r.foreign {
		return harness.No
	}
	switch {
	case r.hasSet || r.hasRewind, r.metadata():
		return harness.Certain
	case r.message() && r.kind == "gemini":
		return harness.Certain
	case r.message():
		return harness.Perhaps
	}
	return harness.No
}

// Recognize implements harness.Format. The unit may be cut anywhere, and the
// order of members differs between collectors.
func (Document) Recognize(unit []byte) harness.Confidence {
	head := bytes.TrimSpace(bytes.TrimPrefix(unit, []byte("\ufeff")))
	if len(head) == 0 || head[0] != '{' {
		return harness.No
	}
	has := func(name string) bool { return bytes.Contains(head, []byte(`"`+name+`"`)) }
	line, rest, _ := bytes.Cut(head, []byte("\n"))
	if len(bytes.TrimSpace(rest)) > 0 && bytes.HasSuffix(bytes.TrimSpace(line), []byte("}")) {
		return harness.No // the first of several objects
	}
	switch {
	case has("sessionId") && has("projectHash") && has("messages"):
		return harness.Certain
	case has("lastUpdated") && has("messages") && (has("projectHash") || has("sessionId")), has("sessionId") && has("projectHash"):
		return harness.Perhaps
	}
	return harness.No
}

// Record implements harness.Format.
func (Log) Record(obj []byte) bool {
	var r record
	var v harness.Value
	_, err := v.Walk(obj, r.read)
	return err == nil && (r.hasSet || r.hasRewind || r.metadata() || r.message() && r.ts != "")
}

// Record implements harness.Format.
func (Document) Record([]byte) bool { return false }

// Place implements harness.Format.
func (Log) Place(p string) bool { return stored(p, ".jsonl") }

// Place implements harness.Format.
func (Document) Place(p string) bool { return stored(p, ".json") }

// About implements harness.Format.
func (Log) About(p string, m *session.Meta) { about(p, m) }

// About implements harness.Format.
func (Document) About(p string, m *session.Meta) { about(p, m) }

// Stores implements harness.Format.
func (Log) Stores(home string, getenv func(string) string) []harness.Store {
	return stores(home, getenv, ".jsonl")
}

// Stores implements harness.Format.
func (Document) Stores(home string, getenv func(string) string) []harness.Store {
	return stores(home, getenv, ".json")
}

// Decoder implements harness.Format.
func (Log) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newDecoder(state, env)
}

// Decoder implements harness.Format. A document is always read from its start.
func (Document) Decoder(_ []byte, env harness.Env) (harness.Decoder, error) {
	return &document{env: env}, nil
}

// about takes what the path says. The name of a main session holds only the
// start of its id, which sessions of the same minute may share (C4); that of
// a subagent is the id, in a directory named after its parent.
func about(p string, m *session.Meta) {
	p = filepath.ToSlash(p)
	dir, name := path.Split(p)
	dir = path.Clean(dir)
	stem := strings.TrimSuffix(strings.TrimSuffix(name, ".jsonl"), ".json")
	if path.Base(path.Dir(dir)) == "chats" && !strings.HasPrefix(stem, "session-") {
		m.ID, m.Parent, m.Kind = stem, path.Base(dir), "subagent"
	}
}

// stored reports whether p is where Gemini CLI keeps sessions.
func stored(p, end string) bool {
	p = filepath.ToSlash(p)
	_, rel, ok := strings.Cut(p, "tmp/")
	return ok && keep(rel, end)
}

// stores lists the store of a user.
func stores(home string, getenv func(string) string, end string) []harness.Store {
	if dir := getenv("GEMINI_CLI_HOME"); dir != "" {
		home = dir
	}
	return []harness.Store{{
		Root: filepath.Join(home, ".gemini", "tmp"),
		Keep: func(rel string, dir bool) bool {
			if !dir {
				return keep(rel, end)
			}
			parts := strings.Split(rel, "/")
			return len(parts) == 1 || parts[1] == "chats" && len(parts) <= 3
		},
	}}
}

// keep reports whether the file rel, below tmp/, is a session: beside them are
// logs.json, checkpoint-*.json and shell_history.
func keep(rel, end string) bool {
	parts := strings.Split(rel, "/")
	name := parts[len(parts)-1]
	if !strings.HasSuffix(name, end) {
		return false
	}
	switch {
	case len(parts) == 3 && parts[1] == "chats":
		return strings.HasPrefix(name, "session-")
	case len(parts) == 4 && parts[1] == "chats":
		return true
	}
	return false
}
