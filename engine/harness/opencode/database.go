package opencode

import (
	"cmp"
	"slices"

	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/sqlite"
)

// sessions are the only tables that are ever read. A part can be newer than its
// session's row, so that each table counts.
var sessions = ledger.Store{
	Harness: "OpenCode",
	Millis:  ledger.Millis,
	Tables: []ledger.Table{
		{Name: "session", Session: "id", Content: "directory", Updated: "time_updated"},
		{Name: "message", Session: "session_id", Content: "data", Updated: "time_updated"},
		{Name: "part", Session: "session_id", Content: "data", Updated: "time_updated"},
	},
}

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
		e := exporter{w: w, session: t[0], message: t[1], part: t[2]}
		return e.export(id)
	})
}

type exporter struct {
	w                      harness.Spool
	line                   ledger.Line
	session, message, part *sqlite.Table
}

// sessionColumns are those of which a line of a session is made, by the names
// that the files before the database have for them.
var sessionColumns = [][2]string{
	{"id", "id"}, {"parent_id", "parentID"}, {"directory", "directory"}, {"title", "title"}, {"version", "version"},
	{"time_created", "time_created"},
}

func (e *exporter) export(id string) error {
	columns := []string{"revert"}
	for _, c := range sessionColumns {
		columns = append(columns, c[0])
	}
	found := false
	err := e.session.Where("id", id, columns, func(r sqlite.Row) error {
		found = true
		e.line.Begin("session")
		for i, c := range sessionColumns {
			e.line.Value(c[1], r[i+1])
		}
		e.line.JSON("revert", r[0].Bytes())
		return e.line.End(e.w)
	})
	if err != nil {
		return err
	}
	if !found {
		return ledger.Missing(id)
	}
	messages, err := list(e.message, "session_id", id)
	if err != nil {
		return err
	}
	var parts map[string][]entry
	if !e.part.Indexed("message_id") {
		if parts, err = e.byMessage(id); err != nil {
			return err
		}
	}
	for _, m := range messages {
		if err := e.row("message", e.message, m); err != nil {
			return err
		}
		mine := parts[m.id]
		if parts == nil {
			if mine, err = list(e.part, "message_id", m.id); err != nil {
				return err
			}
		}
		for _, p := range mine {
			if err := e.row("part", e.part, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry is a row whose content is read when its turn comes.
type entry struct {
	id           string
	rowid, named int64 // named is when it was created
}

func byTime(a, b entry) int {
	return cmp.Or(cmp.Compare(a.named, b.named), cmp.Compare(a.id, b.id), cmp.Compare(a.rowid, b.rowid))
}

// list finds the rows of a message or session, in the order in which they were
// made.
func list(t *sqlite.Table, column, value string) (entries []entry, err error) {
	err = t.Where(column, value, []string{"id", sqlite.Rowid, "time_created"}, func(r sqlite.Row) error {
		entries = append(entries, entryOf(r))
		return nil
	})
	slices.SortFunc(entries, byTime)
	return entries, err
}

func entryOf(r sqlite.Row) entry {
	rowid, _ := r[1].Int()
	created, _ := r[2].Int()
	return entry{id: r[0].String(), rowid: rowid, named: created}
}

// byMessage finds all parts of a session in a database that cannot find those
// of a message.
func (e *exporter) byMessage(id string) (map[string][]entry, error) {
	parts := map[string][]entry{}
	err := e.part.Where("session_id", id, []string{"id", sqlite.Rowid, "time_created", "message_id"}, func(r sqlite.Row) error {
		of := r[3].String()
		parts[of] = append(parts[of], entryOf(r))
		return nil
	})
	for _, list := range parts {
		slices.SortFunc(list, byTime)
	}
	return parts, err
}

// row writes the line of a message or part.
func (e *exporter) row(kind string, t *sqlite.Table, at entry) error {
	r, ok, err := t.Row(at.rowid, []string{"data"})
	if err != nil || !ok {
		return err
	}
	e.line.Begin(kind)
	e.line.Text("id", at.id)
	if at.named != 0 {
		e.line.Int("time_created", at.named)
	}
	e.line.JSON("data", r[0].Bytes())
	return e.line.End(e.w)
}
