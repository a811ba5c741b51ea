// Package opencode reads the sessions of OpenCode: the SQLite database of 1.2
// and later, the tree of JSON files before it, and what `opencode export`
// prints. All three hold the same records (session, messages, their parts) and
// go through one decoder. It writes nothing to a store and never reads a table
// but session, message and part: others hold tokens and credentials.
//
// A part becomes one turn, a tool's two, each with an id derived from the
// part's. What a revert or a compaction takes out of the context stays: this is
// an archive of what was said.
//
// Sources of the format claims: a real database of 2026-06, a tree written by
// 1.0.107, and github.com/anomalyco/opencode
// packages/opencode/src/session/{index,message-v2,revert}.ts.
package opencode

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/session"
)

// Database is the SQLite database.
type Database struct{ ledger.Rows }

// Tree is the tree of JSON files: storage/session/<project>/<session>.json
// with storage/message/<session>/ and storage/part/<message>/.
type Tree struct{ ledger.Rows }

// Export is what `opencode export` prints.
type Export struct{}

var (
	_ harness.Bundle = Database{}
	_ harness.Bundle = Tree{}
	_ harness.Format = Export{}
)

const name = "opencode"

// Traits implements harness.Format.
func (Database) Traits() harness.Traits {
	return harness.Traits{Key: "opencode-db", Harness: name, Container: harness.Rows, Identity: harness.ByID}
}

// Traits implements harness.Format.
func (Tree) Traits() harness.Traits {
	return harness.Traits{Key: "opencode-tree", Harness: name, Container: harness.Rows, Identity: harness.ByID}
}

// Traits implements harness.Format.
func (Export) Traits() harness.Traits {
	return harness.Traits{Key: "opencode-json", Harness: name, Container: harness.Document, Identity: harness.ByID}
}

// Record implements harness.Format.
func (Export) Record([]byte) bool { return false }

// Place implements harness.Format.
func (Export) Place(string) bool { return false }

// About implements harness.Format.
func (Tree) About(p string, m *session.Meta) { m.ID = stem(p) }

// About implements harness.Format.
func (Export) About(string, *session.Meta) {}

// Decoder implements harness.Format.
func (Database) Decoder([]byte, harness.Env) (harness.Decoder, error) { return &decoder{}, nil }

// Decoder implements harness.Format.
func (Tree) Decoder([]byte, harness.Env) (harness.Decoder, error) { return &decoder{}, nil }

// Decoder implements harness.Format.
func (Export) Decoder([]byte, harness.Env) (harness.Decoder, error) { return &document{}, nil }

// Stores implements harness.Format.
func (Database) Stores(home string, getenv func(string) string) []harness.Store {
	return []harness.Store{{Root: data(home, getenv), Keep: ledger.Keep(database)}}
}

// Stores implements harness.Format.
func (Tree) Stores(home string, getenv func(string) string) []harness.Store {
	return []harness.Store{{
		Root: data(home, getenv),
		Keep: func(rel string, dir bool) bool {
			parts := strings.Split(rel, "/")
			if parts[0] != "storage" || len(parts) > 1 && parts[1] != "session" {
				return false
			}
			if dir {
				return len(parts) <= 3
			}
			return len(parts) == 4 && sessionFile(parts[3])
		},
	}}
}

// Stores implements harness.Format: an export is wherever somebody put it.
func (Export) Stores(string, func(string) string) []harness.Store { return nil }

// data is the directory of OpenCode, the same on all systems
// (packages/opencode/src/global/index.ts).
func data(home string, getenv func(string) string) string {
	switch {
	case getenv("OPENCODE_DATA_DIR") != "":
		return getenv("OPENCODE_DATA_DIR")
	case getenv("XDG_DATA_HOME") != "":
		return filepath.Join(getenv("XDG_DATA_HOME"), "opencode")
	}
	return filepath.Join(home, ".local", "share", "opencode")
}

// database reports whether a file is named like a database: channels other
// than the stable one have names of their own (opencode-dev.db).
func database(base string) bool {
	stem, ok := strings.CutSuffix(base, ".db")
	return ok && (stem == "opencode" || strings.HasPrefix(stem, "opencode-"))
}

func sessionFile(base string) bool {
	return strings.HasPrefix(base, "ses") && strings.HasSuffix(base, ".json")
}

func stem(p string) string { return strings.TrimSuffix(path.Base(filepath.ToSlash(p)), ".json") }

// Holds implements harness.Bundle.
func (Database) Holds(p string) bool { return database(filepath.Base(p)) }

// Holds implements harness.Bundle.
func (Tree) Holds(p string) bool {
	if !sessionFile(filepath.Base(p)) {
		return false
	}
	dir := filepath.Dir(filepath.Dir(p))
	if filepath.Base(dir) != "session" {
		return false
	}
	info, err := os.Stat(filepath.Join(filepath.Dir(dir), "message"))
	return err == nil && info.IsDir()
}

// Single implements harness.Bundle.
func (Tree) Single() bool { return true }
