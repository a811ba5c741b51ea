// Package cursor reads the agent transcripts of Cursor: JSON lines of messages,
// and the text files of older releases. It never opens the editor's databases,
// which hold access tokens too.
//
// Lines have neither ids nor, in most releases, times. A turn is named after
// everything before it in its file, so that a file that Cursor writes again
// adds only what is new, and equal words said twice stay two turns.
//
// Sources of the format claims: kenn-io/agentsview internal/parser/cursor.go
// and cursor_paths.go (@109ae211), the public reports vshulcz/deja-vu#3349 and
// kenn-io/agentsview#243 and #1627; measured on real files of 2026-03 to
// 2026-05, which say no version.
package cursor

import (
	"path"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Lines is the JSONL format.
type Lines struct{}

// Text is the format of the .txt files.
type Text struct{}

var (
	_ harness.Format = Lines{}
	_ harness.Format = Text{}
)

const label = "cursor"

// Traits implements harness.Format.
func (Lines) Traits() harness.Traits {
	return harness.Traits{Key: "cursor", Harness: label, Container: harness.JSONL, Identity: harness.ByID}
}

// Traits implements harness.Format.
func (Text) Traits() harness.Traits {
	return harness.Traits{Key: "cursor-text", Harness: label, Container: harness.Lines, Identity: harness.ByID}
}

// Recognize implements harness.Format. Nothing but a role and a message is in
// a line; other agents give theirs a type, an id or a time.
func (Lines) Recognize(unit []byte) harness.Confidence {
	var r record
	var v harness.Value
	if _, err := v.Walk(unit, r.read); err != nil || !r.message() {
		return harness.No
	}
	if r.foreign || !r.blocks {
		return harness.No
	}
	return harness.Certain
}

// Recognize implements harness.Format.
func (Text) Recognize(unit []byte) harness.Confidence {
	line := strings.TrimSpace(string(unit[:min(len(unit), 256)]))
	switch {
	case line == queryOpen:
		return harness.Certain
	case strings.HasPrefix(line, toolCall):
		return harness.Perhaps
	}
	return harness.No
}

// Record implements harness.Format.
func (Lines) Record(obj []byte) bool {
	var r record
	var v harness.Value
	_, err := v.Walk(obj, r.read)
	return err == nil && r.message()
}

// Record implements harness.Format.
func (Text) Record([]byte) bool { return false }

// Place implements harness.Format.
func (Lines) Place(p string) bool { return stored(p, ".jsonl") }

// Place implements harness.Format.
func (Text) Place(p string) bool { return stored(p, ".txt") }

// About implements harness.Format.
func (Lines) About(p string, m *session.Meta) { about(p, m) }

// About implements harness.Format.
func (Text) About(p string, m *session.Meta) { about(p, m) }

// Decoder implements harness.Format.
func (Lines) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newDecoder(state, env)
}

// Decoder implements harness.Format.
func (Text) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newTextDecoder(state, env)
}

// Stores implements harness.Format.
func (Lines) Stores(home string, _ func(string) string) []harness.Store {
	return stores(home, ".jsonl")
}

// Stores implements harness.Format.
func (Text) Stores(home string, _ func(string) string) []harness.Store { return stores(home, ".txt") }

const transcripts = "agent-transcripts"

// about takes what the path says: the file is named after the session; that
// of a subagent stands below its parent's.
func about(p string, m *session.Meta) {
	p = filepath.ToSlash(p)
	name := path.Base(p)
	m.ID = strings.TrimSuffix(strings.TrimSuffix(name, ".jsonl"), ".txt")
	if dir := path.Dir(p); path.Base(dir) == "subagents" {
		m.Kind, m.Parent = "subagent", path.Base(path.Dir(dir))
	}
}

// stored reports whether p is where Cursor keeps transcripts.
func stored(p, end string) bool {
	_, rel, ok := strings.Cut(filepath.ToSlash(p), transcripts+"/")
	return ok && keep(rel, end)
}

func stores(home, end string) []harness.Store {
	return []harness.Store{{
		Root: filepath.Join(home, ".cursor", "projects"),
		Keep: func(rel string, dir bool) bool {
			parts := strings.Split(rel, "/")
			if len(parts) > 1 && parts[1] != transcripts {
				return false
			}
			if dir {
				return len(parts) <= 3 || len(parts) == 4 && parts[3] == "subagents"
			}
			return len(parts) > 2 && keep(strings.Join(parts[2:], "/"), end)
		},
	}}
}

// keep reports whether the file rel, below agent-transcripts/, is a session:
// <id>, <id>/<id> or <id>/subagents/<other>.
func keep(rel, end string) bool {
	stem, ok := strings.CutSuffix(rel, end)
	if !ok {
		return false
	}
	parts := strings.Split(stem, "/")
	switch len(parts) {
	case 1:
		return stem != ""
	case 2:
		return parts[0] == parts[1]
	}
	return len(parts) == 3 && parts[1] == "subagents"
}
