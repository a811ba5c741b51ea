// Package pi reads the sessions of the Pi coding agent: JSON lines that form
// a tree, of file versions 1 (no ids) to 3. It never opens a file. Every
// branch is kept: going back to an older entry adds a child to it and takes
// nothing away. A turn says where a branch starts.
//
// Entries count by content, although they have ids: Pi rewrites a version 1
// file as a whole with ids that it makes up, and a fork copies entries into
// another file under the same ids.
//
// Sources of the format claims: badlogic/pi-mono packages/coding-agent
// docs/session.md and src/core/session-manager.ts (@83378aad), and three real
// files of 2025-11 to 2026-04.
package pi

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Tree is the format.
type Tree struct{}

var _ harness.Format = Tree{}

// Traits implements harness.Format.
func (Tree) Traits() harness.Traits {
	return harness.Traits{Key: "pi", Harness: "pi", Container: harness.JSONL, Identity: harness.ByContent, Replays: true}
}

// Recognize implements harness.Format.
func (Tree) Recognize(unit []byte) harness.Confidence {
	var r record
	var v harness.Value
	if _, err := v.Walk(unit, r.read); err != nil || !r.object || r.foreign {
		return harness.No
	}
	switch {
	case r.kind == "session" && r.id != "" && r.cwd != "":
		return harness.Certain
	case r.kind == "message" && r.hasMessage && roles[r.role]:
		if r.role == "toolResult" || r.role == "bashExecution" || r.millis {
			return harness.Certain
		}
		return harness.No // other agents write messages like it
	case r.kind == "message", !kinds[r.kind]:
		return harness.No
	case r.hasParent && r.id != "" && r.ts != "":
		return harness.Certain
	}
	return harness.No
}

// Record implements harness.Format.
func (Tree) Record(obj []byte) bool {
	var r record
	var v harness.Value
	_, err := v.Walk(obj, r.read)
	return err == nil && kinds[r.kind] && r.ts != "" && (r.kind != "message" || r.hasMessage)
}

// name matches a session file: the time, and the id.
var name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{4}-\d\d-\d\dT[0-9-]+Z?_([0-9A-Za-z-]+)\.jsonl$`) })

// Place implements harness.Format.
func (Tree) Place(p string) bool {
	p = filepath.ToSlash(p)
	dir := path.Base(path.Dir(p))
	return name().MatchString(path.Base(p)) && (strings.HasPrefix(dir, "--") || dir == "sessions")
}

// About implements harness.Format.
func (Tree) About(p string, m *session.Meta) {
	if id := idOf(p); id != "" {
		m.ID = id
	}
}

// idOf is the session id in the name of a session file, or "".
func idOf(p string) string {
	// A path in a header may come from another system.
	p = strings.ReplaceAll(p, `\`, "/")
	if id := name().FindStringSubmatch(path.Base(p)); id != nil {
		return id[1]
	}
	return ""
}

// Decoder implements harness.Format.
func (Tree) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newDecoder(state, env)
}

// Stores implements harness.Format.
func (Tree) Stores(home string, getenv func(string) string) []harness.Store {
	root := getenv("PI_CODING_AGENT_DIR")
	if root == "" {
		root = filepath.Join(home, ".pi", "agent")
	}
	return []harness.Store{{
		Root: filepath.Join(root, "sessions"),
		Keep: func(rel string, dir bool) bool {
			if dir {
				return !strings.Contains(rel, "/")
			}
			return strings.Count(rel, "/") <= 1 && strings.HasSuffix(rel, ".jsonl")
		},
	}}
}
