// Package crush reads the sessions of Crush from the SQLite database that it
// keeps in each project. It writes nothing to it and reads only the tables
// sessions and messages.
//
// Crush writes an answer into its row while it comes in; until the row has a
// part that says it is finished, its turns hold only until it changes. Times are
// in seconds, whatever some versions of the schema say of milliseconds.
//
// Source of the format claims: github.com/charmbracelet/crush
// internal/db/migrations/*.sql, internal/message/{content,message}.go and
// internal/projects/projects.go.
package crush

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/sqlite"
)

// Database is crush.db.
type Database struct{ ledger.Rows }

var _ harness.Bundle = Database{}

var sessions = ledger.Store{
	Harness: "Crush",
	Millis:  ledger.Millis,
	Tables: []ledger.Table{
		{Name: "sessions", Session: "id", Content: "title", Updated: "updated_at"},
		{Name: "messages", Session: "session_id", Content: "parts", Updated: "updated_at"},
	},
}

// Traits implements harness.Format.
func (Database) Traits() harness.Traits {
	return harness.Traits{Key: "crush-db", Harness: "crush", Container: harness.Rows, Identity: harness.ByID}
}

// Decoder implements harness.Format. The project is where the database is:
// rows do not name it.
func (Database) Decoder(_ []byte, env harness.Env) (harness.Decoder, error) {
	d := &decoder{}
	if db, _, ok := harness.Split(env.Path); ok {
		if dir := filepath.Dir(db); filepath.Base(dir) == dataDir {
			d.project = filepath.Dir(dir)
		}
	}
	return d, nil
}

const (
	file    = "crush.db"
	dataDir = ".crush"
	// maxProjects bounds the list of projects.
	maxProjects = 500
)

// Stores implements harness.Format: the projects that Crush knows, from its
// list of them.
func (Database) Stores(home string, getenv func(string) string) []harness.Store {
	dir := filepath.Join(home, ".local", "share", "crush")
	switch {
	case getenv("CRUSH_GLOBAL_DATA") != "":
		dir = getenv("CRUSH_GLOBAL_DATA")
	case getenv("XDG_DATA_HOME") != "":
		dir = filepath.Join(getenv("XDG_DATA_HOME"), "crush")
	case getenv("LOCALAPPDATA") != "":
		dir = filepath.Join(getenv("LOCALAPPDATA"), "crush")
	}
	list := []harness.Store{{Root: dir, Keep: keep}}
	for _, root := range projects(filepath.Join(dir, "projects.json")) {
		if root != dir {
			list = append(list, harness.Store{Root: root, Keep: keep})
		}
	}
	return list
}

// keep keeps the database of a data directory, or of the project that it is in.
func keep(rel string, dir bool) bool {
	if dir {
		return rel == dataDir
	}
	name := strings.TrimPrefix(rel, dataDir+"/")
	return ledger.Owner(name) == file
}

// projects reads the data directories in Crush's list of projects.
func projects(path string) (dirs []string) {
	raw, err := ledger.Read(path, 4<<20)
	if err != nil {
		return nil
	}
	var list struct {
		Projects []struct {
			Path    string `json:"path"`
			DataDir string `json:"data_dir"`
		} `json:"projects"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, p := range list.Projects {
		dir := p.DataDir
		if dir == "" {
			dir = dataDir
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.Path, dir)
		}
		if len(dirs) == maxProjects || !filepath.IsAbs(dir) || slices.Contains(dirs, dir) {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

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

// Export implements harness.Bundle.
func (Database) Export(path, id string, w harness.Spool) error {
	return sessions.Export(path, w, func(t []*sqlite.Table) error {
		var line ledger.Line
		found := false
		names := []string{"id", "parent_session_id", "title", "prompt_tokens", "completion_tokens", "created_at", "summary_message_id"}
		err := t[0].Where("id", id, names, func(r sqlite.Row) error {
			found = true
			line.Begin("session")
			for i, name := range names {
				line.Value(name, r[i])
			}
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
	// Within a second rows stand in the order in which they were made.
	list, err := ledger.InOrder(t, "session_id", id, "created_at")
	if err != nil {
		return err
	}
	names := []string{"id", "role", "model", "created_at", "finished_at", "is_summary_message"}
	for _, e := range list {
		r, ok, err := t.Row(e.Rowid, append([]string{"parts"}, names...))
		if err != nil || !ok {
			return err
		}
		line.Begin("message")
		for i, name := range names {
			line.Value(name, r[i+1])
		}
		line.JSON("parts", r[0].Bytes())
		if err := line.End(w); err != nil {
			return err
		}
	}
	return nil
}
