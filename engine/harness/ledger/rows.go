package ledger

import (
	"cmp"
	"slices"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/session"
	"handoffd/engine/sqlite"
)

// Rows has the methods of harness.Bundle that are alike for all databases of
// many sessions; a format embeds it. Its lines are made by Export alone, so that
// nothing else is ever recognised as one.
type Rows struct{}

// Recognize implements harness.Format.
func (Rows) Recognize([]byte) harness.Confidence { return harness.No }

// Record implements harness.Format.
func (Rows) Record([]byte) bool { return false }

// Place implements harness.Format.
func (Rows) Place(string) bool { return false }

// About implements harness.Format.
func (Rows) About(path string, m *session.Meta) {
	if _, id, ok := harness.Split(path); ok {
		m.ID = id
	}
}

// Single implements harness.Bundle.
func (Rows) Single() bool { return false }

// Glance implements harness.Bundle.
func (Rows) Glance(path string) string { return Glance(path) }

// At is where a row is, and when it was made, in the unit of its column.
type At struct{ Rowid, Time int64 }

// InOrder lists the rows of a session in the order in which they were made:
// those of the same time by their number. of and time are the columns with the
// session's id and the row's time.
func InOrder(t *sqlite.Table, of, id, time string) (list []At, err error) {
	err = t.Where(of, id, []string{sqlite.Rowid, time}, func(r sqlite.Row) error {
		rowid, _ := r[0].Int()
		made, _ := r[1].Int()
		list = append(list, At{rowid, made})
		return nil
	})
	slices.SortFunc(list, func(a, b At) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Rowid, b.Rowid))
	})
	return list, err
}

// Export opens the tables of the store, in the order in which it names them, in
// the database at path and has export write a session of them to w; a database
// that is written to meanwhile is exported anew. The errors are those of List,
// those of w and of export.
func (st *Store) Export(path string, w harness.Spool, export func(tables []*sqlite.Table) error) error {
	return sqlite.View(path, func(d *sqlite.DB) error {
		if err := w.Reset(); err != nil {
			return err
		}
		tables, err := st.open(d)
		if err != nil {
			return err
		}
		return export(tables)
	})
}

// Missing is the error for a session that is not there (any more).
func Missing(id string) error {
	return fault.New(fault.SourceMissing, "no session %s in the database", id)
}
