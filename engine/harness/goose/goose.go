// Package goose reads the sessions of Goose from its SQLite database, which it
// keeps since the autumn of 2025. It writes nothing to it and reads only the
// tables sessions and messages.
//
// A message has an id of its own only since later versions. Goose writes a whole
// conversation again when it compacts one, with other row numbers, so that a
// message without an id is known by its time, its role and its place among those
// of the same second.
//
// Source of the format claims: github.com/block/goose
// crates/goose/src/session/session_manager.rs (schemas 1 to 5 and later) and
// crates/goose/src/conversation/message.rs.
package goose

import (
	"path/filepath"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/sqlite"
)

// Database is sessions.db.
type Database struct{ ledger.Rows }

var _ harness.Bundle = Database{}

var sessions = ledger.Store{
	Harness: "Goose",
	Millis:  ledger.Millis,
	Tables: []ledger.Table{
		{Name: "sessions", Session: "id", Content: "working_dir", Updated: "updated_at"},
		{Name: "messages", Session: "session_id", Content: "content_json", Updated: "created_timestamp"},
	},
}

// Traits implements harness.Format.
func (Database) Traits() harness.Traits {
	return harness.Traits{Key: "goose-db", Harness: "goose", Container: harness.Rows, Identity: harness.ByID}
}

// Decoder implements harness.Format.
func (Database) Decoder([]byte, harness.Env) (harness.Decoder, error) { return &decoder{}, nil }

// Stores implements harness.Format. The directories are those of
// crates/goose/src/config/paths.rs.
func (Database) Stores(home string, getenv func(string) string) []harness.Store {
	roots := []string{filepath.Join(home, ".local", "share", "goose", "sessions")}
	switch {
	case getenv("GOOSE_PATH_ROOT") != "":
		roots = []string{filepath.Join(getenv("GOOSE_PATH_ROOT"), "data", "sessions")}
	case getenv("XDG_DATA_HOME") != "":
		roots = []string{filepath.Join(getenv("XDG_DATA_HOME"), "goose", "sessions")}
	case getenv("APPDATA") != "":
		roots = append(roots, filepath.Join(getenv("APPDATA"), "Block", "goose", "data", "sessions"))
	}
	list := make([]harness.Store, len(roots))
	for i, root := range roots {
		list[i] = harness.Store{Root: root, Keep: ledger.Keep(func(name string) bool { return name == file })}
	}
	return list
}

const file = "sessions.db"

// Holds implements harness.Bundle.
func (Database) Holds(p string) bool { return filepath.Base(p) == file }

// List implements harness.Bundle.
func (Database) List(path string, before *harness.Listing) (*harness.Listing, error) {
	return sessions.List(path, before)
}

// Key implements harness.Bundle.
func (Database) Key(path, id string) (string, bool, error) { return sessions.Key(path, id) }

// Owner implements harness.Bundle.
func (d Database) Owner(path string) (string, bool) {
	db := ledger.Owner(path)
	return db, d.Holds(db)
}

// columns are those that a line of a session is made of, as far as the schema
// has them.
var columns = []string{
	"id", "name", "description", "session_type", "working_dir", "created_at", "parent_session_id",
	"accumulated_input_tokens", "accumulated_output_tokens", "input_tokens",
}

// Export implements harness.Bundle.
func (Database) Export(path, id string, w harness.Spool) error {
	return sessions.Export(path, w, func(t []*sqlite.Table) error {
		var line ledger.Line
		found := false
		err := t[0].Where("id", id, append([]string{"model_config_json"}, columns...), func(r sqlite.Row) error {
			found = true
			line.Begin("session")
			for i, name := range columns {
				line.Value(name, r[i+1])
			}
			line.JSON("model_config", r[0].Bytes())
			return line.End(w)
		})
		if err != nil {
			return err
		}
		if !found {
			return ledger.Missing(id)
		}
		return exportMessages(t[1], id, &line, w)
	})
}

func exportMessages(t *sqlite.Table, id string, line *ledger.Line, w harness.Spool) error {
	list, err := ledger.InOrder(t, "session_id", id, "created_timestamp")
	if err != nil {
		return err
	}
	for _, e := range list {
		r, ok, err := t.Row(e.Rowid, []string{"message_id", "role", "content_json", "metadata_json"})
		if err != nil || !ok {
			return err
		}
		line.Begin("message")
		line.Int("created", e.Time)
		line.Value("id", r[0])
		line.Value("role", r[1])
		line.JSON("content", r[2].Bytes())
		line.JSON("metadata", r[3].Bytes())
		if err := line.End(w); err != nil {
			return err
		}
	}
	return nil
}
