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
	"cmp"
	"path/filepath"
	"slices"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/session"
	"handoffd/engine/sqlite"
)

// Database is sessions.db.
type Database struct{}

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

// Recognize implements harness.Format: lines are made by Export alone.
func (Database) Recognize([]byte) harness.Confidence { return harness.No }

// Record implements harness.Format.
func (Database) Record([]byte) bool { return false }

// Place implements harness.Format.
func (Database) Place(string) bool { return false }

// About implements harness.Format.
func (Database) About(p string, m *session.Meta) {
	if _, id, ok := harness.Split(p); ok {
		m.ID = id
	}
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

// Single implements harness.Bundle.
func (Database) Single() bool { return false }

// List implements harness.Bundle.
func (Database) List(path string, before *harness.Listing) (*harness.Listing, error) {
	return sessions.List(path, before)
}

// Key implements harness.Bundle.
func (Database) Key(path, id string) (string, bool, error) { return sessions.Key(path, id) }

// Glance implements harness.Bundle.
func (Database) Glance(path string) string { return ledger.Glance(path) }

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
	return sqlite.View(path, func(d *sqlite.DB) error {
		if err := w.Reset(); err != nil {
			return err
		}
		own, ok := d.Table("sessions")
		messages, also := d.Table("messages")
		if !ok || !also {
			return fault.New(fault.Unsupported, "no database of Goose: a table is missing")
		}
		var line ledger.Line
		found := false
		err := own.Where("id", id, append([]string{"model_config_json"}, columns...), func(r sqlite.Row) error {
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
			return fault.New(fault.SourceMissing, "no session %s in the database", id)
		}
		return exportMessages(messages, id, &line, w)
	})
}

func exportMessages(t *sqlite.Table, id string, line *ledger.Line, w harness.Spool) error {
	type entry struct{ rowid, created int64 }
	var list []entry
	err := t.Where("session_id", id, []string{sqlite.Rowid, "created_timestamp"}, func(r sqlite.Row) error {
		rowid, _ := r[0].Int()
		created, _ := r[1].Int()
		list = append(list, entry{rowid, created})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.rowid, b.rowid))
	})
	for _, e := range list {
		r, ok, err := t.Row(e.rowid, []string{"message_id", "role", "content_json", "metadata_json"})
		if err != nil || !ok {
			return err
		}
		line.Begin("message")
		line.Int("created", e.created)
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
