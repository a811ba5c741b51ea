// Package ledger finds out which sessions in a SQLite database of a harness
// changed: a change key for each, over its own row and those of its children.
// It also has what the formats of such databases share in exporting a session
// and in reading the export. What a harness calls its tables, and what their
// rows say, each format knows; the package never opens a table that it was not
// told of.
//
// Rows are updated in place, so a key is made of every child: how many there
// are, their newest time, and a sum over the number, the time and the length of
// each. A deleted row is seen by the count, one that is written again within
// the clock's step by its length or its number.
package ledger

import (
	"fmt"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/sqlite"
)

// Store says where a harness keeps sessions. The first of Tables has one row a
// session, or holds it among others.
type Store struct {
	Harness string
	Tables  []Table
	// Millis brings a time of the store to milliseconds since 1970.
	Millis func(t int64) int64
}

// Table is one of the tables that sessions are made of.
type Table struct {
	Name string
	// Session is the column that says whose a row is.
	Session string
	// Of finds the session's id in that column, "" when the row is nobody's;
	// nil when the column is the id.
	Of func(text string) (id string)
	// Under is the opposite: what the column begins with in the rows of a
	// session; nil when the column is the id.
	Under func(id string) (prefixes []string)
	// Content is the column with what is said; a table without it is another
	// harness's, or another version's.
	Content string
	// Updated is the column with the time of the last change, "" for none.
	Updated string
	// Optional says that a database can be without the table.
	Optional bool
}

// sum is what is known of one session's rows in one table.
type sum struct {
	n, newest int64
	mix       uint64
}

func (s *sum) add(rowid, updated, size int64) {
	s.n++
	s.newest = max(s.newest, updated)
	h := uint64(rowid)
	for _, v := range []int64{updated, size} {
		h = (h ^ uint64(v)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	s.mix += h * 0xbf58476d1ce4e5b9
}

// sums are a session's, by table.
type sums []sum

func (s sums) key() string {
	text := ""
	for i := range s {
		if i > 0 {
			text += "."
		}
		text += fmt.Sprintf("%d-%d-%x", s[i].n, s[i].newest, s[i].mix)
	}
	return text
}

func (st *Store) member(id string, s sums) harness.Member {
	m := harness.Member{ID: id, Key: s.key()}
	for i := range s {
		if st.Millis != nil && s[i].newest > 0 {
			m.Updated = max(m.Updated, st.Millis(s[i].newest))
		}
	}
	return m
}

// open finds the tables in a database. The error is fault.Unsupported when one
// is missing, or a column that says whose rows are.
func (st *Store) open(d *sqlite.DB) ([]*sqlite.Table, error) {
	tables := make([]*sqlite.Table, len(st.Tables))
	for i, want := range st.Tables {
		t, ok := d.Table(want.Name)
		switch {
		case !ok && want.Optional:
			continue
		case !ok:
			return nil, fault.New(fault.Unsupported, "no database of %s, or of another version: table %s is missing", st.Harness, want.Name)
		}
		for _, column := range []string{want.Session, want.Content} {
			if column != "" && !t.Has(column) {
				return nil, fault.New(fault.Unsupported, "no database of %s, or of another version: %s has no column %s", st.Harness, want.Name, column)
			}
		}
		tables[i] = t
	}
	return tables, nil
}

func (w *Table) columns() []string {
	return []string{w.Session, sqlite.Rowid, w.Updated, sqlite.Size}
}

// take adds a row of the table to its session's sums.
func (w *Table) take(r sqlite.Row, s *sum) {
	rowid, _ := r[1].Int()
	size, _ := r[3].Int()
	if r[2].Kind == sqlite.Text { // a date in words tells versions apart, no more
		s.add(rowid, 0, size)
		s.mix += plain.Hash(r[2].String())
		return
	}
	updated, _ := r[2].Int()
	s.add(rowid, updated, size)
}

func (w *Table) owner(v sqlite.Value) string {
	if w.Of == nil {
		return v.String()
	}
	return w.Of(v.String())
}

// List lists the sessions of the database at path; see harness.Bundle. As long
// as the database's log goes on from where the earlier listing left it, only
// the sessions are looked at that have rows on changed pages.
func (st *Store) List(path string, before *harness.Listing) (*harness.Listing, error) {
	var out *harness.Listing
	err := sqlite.View(path, func(d *sqlite.DB) error {
		tables, err := st.open(d)
		if err != nil {
			return err
		}
		if out, err = st.grown(d, tables, before); out != nil || err != nil {
			return err
		}
		out, err = st.all(d, tables)
		return err
	})
	return out, err
}

func (st *Store) all(d *sqlite.DB, tables []*sqlite.Table) (*harness.Listing, error) {
	found := map[string]sums{}
	for i, t := range tables {
		if t == nil {
			continue
		}
		want := &st.Tables[i]
		err := t.Rows(want.columns(), func(r sqlite.Row) error {
			id := want.owner(r[0])
			s, ok := found[id]
			if !ok {
				if i > 0 || id == "" {
					return nil // a child without its session
				}
				s = make(sums, len(tables))
				found[id] = s
			}
			want.take(r, &s[i])
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := &harness.Listing{Members: make(map[string]harness.Member, len(found)), Mark: mark(d)}
	for id, s := range found {
		out.Members[id] = st.member(id, s)
	}
	return out, nil
}

func mark(d *sqlite.DB) any {
	if p, ok := d.Position(); ok {
		return p
	}
	return nil
}

// grown is List by what the log holds beyond before; nil when that does not
// tell.
func (st *Store) grown(d *sqlite.DB, tables []*sqlite.Table, before *harness.Listing) (*harness.Listing, error) {
	if before == nil {
		return nil, nil
	}
	was, ok := before.Mark.(sqlite.Position)
	now, logged := d.Position()
	if !ok || !logged || was.Generation != now.Generation || was.Inode != now.Inode || now.Frames < was.Frames {
		return nil, nil
	}
	if now.Frames == was.Frames {
		return before, nil
	}
	changed := map[string]bool{}
	for i, t := range tables {
		if t == nil {
			continue
		}
		want := &st.Tables[i]
		if !t.Indexed(want.Session) {
			return nil, nil // a key would cost as much as all of them
		}
		err := t.Since(was.Frames, []string{want.Session}, func(r sqlite.Row) error {
			if id := want.owner(r[0]); id != "" {
				changed[id] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := &harness.Listing{Members: make(map[string]harness.Member, len(before.Members)+1), Mark: now}
	for id, m := range before.Members {
		out.Members[id] = m
	}
	for id := range changed {
		s, ok, err := st.sums(tables, id)
		if err != nil {
			return nil, err
		}
		if ok {
			out.Members[id] = st.member(id, s)
		} else {
			delete(out.Members, id)
		}
	}
	return out, nil
}

// sums adds up one session; ok is false when it is not there.
func (st *Store) sums(tables []*sqlite.Table, id string) (s sums, ok bool, err error) {
	s = make(sums, len(tables))
	for i, t := range tables {
		if t == nil {
			continue
		}
		want := &st.Tables[i]
		visit := func(r sqlite.Row) error {
			if want.owner(r[0]) == id {
				want.take(r, &s[i])
			}
			return nil
		}
		if want.Under == nil {
			err = t.Where(want.Session, id, want.columns(), visit)
		} else {
			for _, prefix := range want.Under(id) {
				if err == nil {
					err = t.Prefix(want.Session, prefix, want.columns(), visit)
				}
			}
		}
		if err != nil {
			return nil, false, err
		}
		if i == 0 && s[0].n == 0 {
			return nil, false, nil
		}
	}
	return s, true, nil
}

// Key returns the change key of one session; see harness.Bundle.
func (st *Store) Key(path, id string) (key string, ok bool, err error) {
	err = sqlite.View(path, func(d *sqlite.DB) error {
		tables, err := st.open(d)
		if err != nil {
			return err
		}
		s, found, err := st.sums(tables, id)
		key, ok = s.key(), found
		return err
	})
	return key, ok && err == nil, err
}
