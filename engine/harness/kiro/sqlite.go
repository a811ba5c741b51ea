// Package kiro reads the conversations of Kiro CLI that are rows of its SQLite
// database: the table conversations_v2, one row each, written again as a whole
// at every turn. It writes nothing to the database and reads no other table of
// it, some of which hold credentials.
//
// Source of the format claims: github.com/aws/amazon-q-developer-cli
// crates/chat-cli/src/database/sqlite_migrations and
// crates/chat-cli/src/cli/chat/conversation.rs, of which Kiro CLI is the
// successor.
package kiro

import (
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/sqlite"
)

// Database is data.sqlite3.
type Database struct{ ledger.Rows }

var _ harness.Bundle = Database{}

const table = "conversations_v2"

var sessions = ledger.Store{
	Harness: "Kiro CLI",
	Millis:  ledger.Millis,
	Tables:  []ledger.Table{{Name: table, Session: "conversation_id", Content: "value", Updated: "updated_at"}},
}

// Traits implements harness.Format.
func (Database) Traits() harness.Traits {
	return harness.Traits{Key: "kiro-db", Harness: "kiro", Container: harness.Rows, Identity: harness.ByID}
}

// Decoder implements harness.Format.
func (Database) Decoder([]byte, harness.Env) (harness.Decoder, error) { return &rowDecoder{}, nil }

// Stores implements harness.Format.
func (Database) Stores(home string, getenv func(string) string) []harness.Store {
	data := filepath.Join(home, ".local", "share")
	if dir := getenv("XDG_DATA_HOME"); dir != "" {
		data = dir
	}
	var list []harness.Store
	for _, dir := range []string{
		filepath.Join(data, "kiro-cli"), filepath.Join(home, "Library", "Application Support", "kiro-cli"),
	} {
		list = append(list, harness.Store{Root: dir, Keep: ledger.Keep(func(name string) bool { return name == databaseName })})
	}
	return list
}

const databaseName = "data.sqlite3"

// Holds implements harness.Bundle.
func (Database) Holds(p string) bool { return filepath.Base(p) == databaseName }

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

// Export implements harness.Bundle: a line for the conversation and one for
// each entry of its history.
func (Database) Export(path, id string, w harness.Spool) error {
	return sessions.Export(path, w, func(t []*sqlite.Table) error {
		found := false
		err := t[0].Where("conversation_id", id, []string{"key", "value", "created_at"}, func(r sqlite.Row) error {
			found = true
			return exportRow(id, r[0], r[1].Bytes(), r[2], w)
		})
		if err == nil && !found {
			err = fault.New(fault.SourceMissing, "no conversation %s in the database", id)
		}
		return err
	})
}

// exportRow takes out of a conversation's value what is read: it also holds the
// declarations of all tools, which are longer than most conversations.
func exportRow(id string, key sqlite.Value, value []byte, created sqlite.Value, w harness.Spool) error {
	var line ledger.Line
	var model, summary []byte
	var history [][]byte
	var v harness.Value
	_, err := v.Walk(value, func(v *harness.Value) {
		model, summary, history = nil, nil, nil
		v.Fields(func(name string) {
			switch name {
			case "model_info":
				model = append([]byte(nil), v.Raw()...)
			case "latest_summary":
				summary = append([]byte(nil), v.Raw()...)
			case "history":
				v.Items(func() { history = append(history, append([]byte(nil), v.Raw()...)) })
			}
		})
	})
	line.Begin("session")
	line.Text("id", id)
	line.Value("cwd", key)
	line.Value("created_at", created)
	if err != nil {
		line.JSON("value", value) // which says that it is unreadable
	}
	line.JSON("model_info", model)
	line.JSON("latest_summary", summary)
	if err := line.End(w); err != nil {
		return err
	}
	for _, entry := range history {
		line.Begin("entry")
		line.JSON("data", entry)
		if err := line.End(w); err != nil {
			return err
		}
	}
	return nil
}
