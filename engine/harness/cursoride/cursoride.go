// Package cursoride reads the conversations of Cursor's editor from the SQLite
// database state.vscdb of its global storage. It writes nothing to it and reads
// one table only, cursorDiskKV: the other, ItemTable, holds access tokens. Of a
// conversation's own record, which holds encryption keys, only the members named
// here are taken.
//
// A conversation is a row composerData:<id> and a row bubbleId:<id>:<bubble>
// for each message. Every write of a row gives it a new number.
//
// Sources of the format claims: github.com/kenn-io/agentsview
// docs/internal/session-format-sources.md ("Cursor"), and readers that were
// made against Cursor 0.4x to 3.1 (github.com/S2thend/cursor-history).
package cursoride

import (
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/sqlite"
)

// Database is state.vscdb of the global storage.
type Database struct{ ledger.Rows }

var _ harness.Bundle = Database{}

const (
	table    = "cursorDiskKV"
	composer = "composerData:"
	bubble   = "bubbleId:"
	file     = "state.vscdb"
)

var sessions = ledger.Store{
	Harness: "Cursor",
	Tables: []ledger.Table{{
		Name: table, Session: "key", Content: "value",
		Of: func(key string) string {
			if id, ok := strings.CutPrefix(key, composer); ok {
				return id
			}
			if rest, ok := strings.CutPrefix(key, bubble); ok {
				id, _, _ := strings.Cut(rest, ":")
				return id
			}
			return ""
		},
		Under: func(id string) []string { return []string{composer + id, bubble + id + ":"} },
	}},
}

// Traits implements harness.Format.
func (Database) Traits() harness.Traits {
	return harness.Traits{Key: "cursor-ide", Harness: "cursor", Container: harness.Rows, Identity: harness.ByID}
}

// Decoder implements harness.Format.
func (Database) Decoder([]byte, harness.Env) (harness.Decoder, error) { return &decoder{}, nil }

// Stores implements harness.Format.
func (Database) Stores(home string, getenv func(string) string) []harness.Store {
	users := []string{
		filepath.Join(home, ".config", "Cursor", "User"),
		filepath.Join(home, "Library", "Application Support", "Cursor", "User"),
	}
	if dir := getenv("XDG_CONFIG_HOME"); dir != "" {
		users[0] = filepath.Join(dir, "Cursor", "User")
	}
	if dir := getenv("APPDATA"); dir != "" {
		users = append(users, filepath.Join(dir, "Cursor", "User"))
	}
	var list []harness.Store
	for _, dir := range users {
		list = append(list, harness.Store{
			Root: filepath.Join(dir, "globalStorage"), Keep: ledger.Keep(func(name string) bool { return name == file }),
		})
	}
	return list
}

// Holds implements harness.Bundle.
func (Database) Holds(p string) bool { return filepath.Base(p) == file }

// List implements harness.Bundle. A bubble whose conversation has no record
// counts for one all the same.
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

// Export implements harness.Bundle.
func (Database) Export(path, id string, w harness.Spool) error {
	return sessions.Export(path, w, func(t []*sqlite.Table) error {
		e := exporter{t: t[0], w: w}
		return e.export(id)
	})
}
