// Package kimi reads the contexts of Kimi CLI, JSON lines of messages without
// ids and times, and the logs of Kimi Code, its successor (see Wire). It never
// opens a file; the title and the working directory, which are kept beside, it
// asks for.
//
// Of Kimi CLI the context is the record of a session. The wire log beside it
// says the same once more, and is refused.
//
// A context is no log: a system prompt is put in front of it, and a revert, a
// clear or a compaction moves it to context_N.jsonl and begins another, which
// may start with lines of the old one. A turn is therefore named after
// everything before it in its context: what is copied keeps its name, and what
// is said anew after a revert has one of its own, whatever its words.
//
// Sources of the format claims: MoonshotAI/kimi-cli
// src/kimi_cli/soul/context.py (@07a7f173), soul/compaction.py (@00970276),
// metadata.py (@4a550eff); measured on contexts that
// jhlee0409/claude-code-history-viewer keeps as fixtures.
package kimi

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Context is the format.
type Context struct{}

var _ harness.Format = Context{}

// Traits implements harness.Format.
func (Context) Traits() harness.Traits {
	return harness.Traits{Key: "kimi", Harness: "kimi", Container: harness.JSONL, Identity: harness.ByID}
}

// Recognize implements harness.Format. Messages are those of the OpenAI API;
// the lines between them are Kimi's.
func (Context) Recognize(unit []byte) harness.Confidence {
	var r record
	var v harness.Value
	if _, err := v.Walk(unit, r.read); err != nil || !r.object || r.foreign {
		return harness.No
	}
	switch {
	case r.role == "_system_prompt" && r.hasContent, r.role == "_checkpoint" && r.hasID, r.role == "_usage" && r.hasUsage:
		return harness.Certain
	case r.role == "assistant" && r.thinks:
		return harness.Certain
	case r.role == "assistant" && len(r.calls) > 0, r.role == "tool" && r.callID != "":
		return harness.Perhaps
	}
	return harness.No
}

// Record implements harness.Format.
func (Context) Record(obj []byte) bool {
	var r record
	var v harness.Value
	_, err := v.Walk(obj, r.read)
	return err == nil && r.known()
}

// name matches a context: the current one, those moved away, and those of the
// subagents of older releases.
var name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^context(_sub)?(_\d+)?\.jsonl$`) })

// moved reports whether the file is a context that was moved away.
func moved(base string) bool {
	m := name().FindStringSubmatch(base)
	return m != nil && m[1] == "" && m[2] != ""
}

// Place implements harness.Format.
func (Context) Place(p string) bool {
	parts := strings.Split(filepath.ToSlash(p), "/")
	if !name().MatchString(parts[len(parts)-1]) {
		return false
	}
	for i := range parts {
		if parts[i] == "sessions" && keep(strings.Join(parts[i+1:], "/")) {
			return true
		}
	}
	return false
}

// About implements harness.Format. A session is the directory of its context.
func (Context) About(p string, m *session.Meta) {
	p = filepath.ToSlash(p)
	dir, base := path.Dir(p), path.Base(p)
	found := name().FindStringSubmatch(base)
	id := path.Base(dir)
	switch {
	case found == nil || id == "." || id == "/":
		return
	case found[1] != "":
		m.ID, m.Kind, m.Parent = id+"-"+strings.TrimSuffix(base, ".jsonl"), "subagent", id
	case path.Base(path.Dir(dir)) == "subagents":
		m.ID, m.Kind, m.Parent = id, "subagent", path.Base(path.Dir(path.Dir(dir)))
	default:
		m.ID = id
	}
}

// Decoder implements harness.Format.
func (Context) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newDecoder(state, env)
}

// Stores implements harness.Format. KIMI_SHARE_DIR replaces ~/.kimi.
func (Context) Stores(home string, getenv func(string) string) []harness.Store {
	root := getenv("KIMI_SHARE_DIR")
	if root == "" {
		root = filepath.Join(home, ".kimi")
	}
	return []harness.Store{{
		Root: filepath.Join(root, "sessions"),
		Keep: func(rel string, dir bool) bool {
			if !dir {
				return keep(rel)
			}
			parts := strings.Split(rel, "/")
			return len(parts) <= 2 || len(parts) <= 4 && parts[2] == "subagents"
		},
	}}
}

// keep reports whether the file rel, below sessions/, is a context: in
// HASH/ID/ or in HASH/ID/subagents/AGENT/. Beside it are wire.jsonl,
// state.json or metadata.json.
func keep(rel string) bool {
	parts := strings.Split(rel, "/")
	n := len(parts)
	return name().MatchString(parts[n-1]) && (n == 3 || n == 5 && parts[2] == "subagents")
}
