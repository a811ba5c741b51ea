package sqlite

import (
	"bytes"
	"errors"
	"strings"
)

// Row is the columns that were asked for, in that order. It is valid until the
// next one.
type Row []Value

// Names that stand for what every row has besides its columns.
const (
	// Rowid is the number of the row.
	Rowid = "\x00rowid"
	// Size is how many bytes the row has, whatever it holds.
	Size = "\x00size"
)

// What Rowid and Size are found as.
const (
	wantRowid = -2
	wantSize  = -3
)

// reader picks columns out of records.
type reader struct {
	t    *Table
	want []int // of t.columns, -1 for one that the table does not have
	l    layout
	row  Row
}

func (t *Table) reader(names []string) *reader {
	r := &reader{t: t, row: make(Row, len(names))}
	for _, n := range names {
		switch n {
		case Rowid:
			r.want = append(r.want, wantRowid)
		case Size:
			r.want = append(r.want, wantSize)
		default:
			r.want = append(r.want, t.find(n))
		}
	}
	return r
}

// read fills the row. A column that the table does not have is NULL.
func (r *reader) read(rowid int64, p *payload) error {
	if err := p.columns(&r.l); err != nil {
		return err
	}
	for i, at := range r.want {
		r.row[i] = Value{}
		switch {
		case at == wantRowid:
			r.row[i] = Value{Kind: Integer, int: rowid}
		case at == wantSize:
			r.row[i] = Value{Kind: Integer, int: int64(p.size)}
		}
		if at < 0 {
			continue
		}
		c := &r.t.columns[at]
		switch {
		case c.rowid:
			r.row[i] = Value{Kind: Integer, int: rowid}
		case c.stored < 0:
		case c.stored >= len(r.l.types):
			r.row[i] = c.missing
		default:
			v, err := p.value(&r.l, c.stored)
			if err != nil {
				return err
			}
			r.row[i] = v
		}
	}
	return nil
}

// errStop ends a reading early.
var errStop = errors.New("stop")

// Stop is returned by a visitor that has seen enough.
func Stop() error { return errStop }

func stopped(err error) error {
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// Rows calls visit for every row of the table in the order of rowids. Columns
// that are not asked for are not read, so that long ones cost nothing.
func (t *Table) Rows(names []string, visit func(Row) error) error {
	r := t.reader(names)
	return stopped(t.db.rows(t.root, func(rowid int64, p payload) (bool, error) {
		if err := r.read(rowid, &p); err != nil {
			return false, err
		}
		if err := visit(r.row); err != nil {
			return false, err
		}
		return true, nil
	}))
}

// Where calls visit for the rows whose column has the text value: by an index
// when there is one, in its order; else by reading the table.
func (t *Table) Where(column, value string, names []string, visit func(Row) error) error {
	return t.between(column, names, visit, func(v Value) int {
		return compare(v, value)
	})
}

// Prefix calls visit for the rows whose column is a text that begins with
// prefix, under the same rule as Where.
func (t *Table) Prefix(column, prefix string, names []string, visit func(Row) error) error {
	return t.between(column, names, visit, func(v Value) int {
		if (v.Kind == Text || v.Kind == Blob) && bytes.HasPrefix(v.bytes, []byte(prefix)) {
			return 0
		}
		return compare(v, prefix)
	})
}

// compare orders a value and a text as SQLite does: NULL, numbers, texts,
// blobs.
func compare(v Value, text string) int {
	switch v.Kind {
	case Text:
		return strings.Compare(string(v.bytes), text)
	case Blob:
		return 1
	}
	return -1
}

// between visits the rows for whose column side is 0; it is below 0 for values
// that stand before those in an index.
func (t *Table) between(name string, names []string, visit func(Row) error, side func(Value) int) error {
	root, ok := t.index(name)
	if !ok || t.db.utf16 != nil {
		r := t.reader(append([]string{name}, names...))
		return stopped(t.db.rows(t.root, func(rowid int64, p payload) (bool, error) {
			if err := r.read(rowid, &p); err != nil {
				return false, err
			}
			if side(r.row[0]) != 0 {
				return true, nil
			}
			if err := visit(r.row[1:]); err != nil {
				return false, err
			}
			return true, nil
		}))
	}
	r := t.reader(names)
	var l layout
	first := func(p *payload) (Value, error) {
		if err := p.columns(&l); err != nil {
			return Value{}, err
		}
		if len(l.types) < 2 {
			return Value{}, damaged("index with %d columns", len(l.types))
		}
		return p.value(&l, 0)
	}
	return stopped(t.db.entries(root,
		func(p payload) (bool, error) {
			v, err := first(&p)
			return err == nil && side(v) < 0, err
		},
		func(p payload) (bool, error) {
			v, err := first(&p)
			if err != nil || side(v) != 0 {
				return false, err
			}
			id, err := p.value(&l, len(l.types)-1)
			if err != nil {
				return false, err
			}
			rowid, whole := id.Int()
			if !whole {
				return false, damaged("index without rowid")
			}
			row, ok, err := t.db.row(t.root, rowid)
			if err != nil {
				return false, err
			}
			if !ok {
				return false, damaged("row %d is missing", rowid)
			}
			if err := r.read(rowid, &row); err != nil {
				return false, err
			}
			if err := visit(r.row); err != nil {
				return false, err
			}
			return true, nil
		}))
}

// Row reads one row by its number; ok is false when there is none.
func (t *Table) Row(rowid int64, names []string) (row Row, ok bool, err error) {
	p, ok, err := t.db.row(t.root, rowid)
	if !ok || err != nil {
		return nil, false, err
	}
	r := t.reader(names)
	return r.row, true, r.read(rowid, &p)
}

// Indexed reports whether Where finds rows by the column without reading the
// whole table.
func (t *Table) Indexed(column string) bool {
	_, ok := t.index(column)
	return ok && t.db.utf16 == nil
}

// Since calls visit for the rows of the table's pages that the log holds in
// frames after from, which must be of this look's generation: every row that
// was added or changed since is among them, with others that were not. Rows
// that are gone are not.
func (t *Table) Since(from int64, names []string, visit func(Row) error) error {
	w := t.db.wal
	if w == nil || from < 0 || from > int64(len(w.order)) {
		return damaged("no frame %d in the log", from)
	}
	changed := map[uint32]bool{}
	for _, n := range w.order[from:] {
		changed[n] = true
	}
	if len(changed) == 0 {
		return nil
	}
	mine, err := t.leaves(changed)
	if err != nil {
		return err
	}
	r := t.reader(names)
	for _, n := range mine {
		x, err := t.db.node(n, false)
		if err != nil {
			return err
		}
		for i := range x.cells {
			cell, err := x.cell(i)
			if err != nil {
				return err
			}
			rowid, p, err := t.db.leafCell(&x, cell)
			if err != nil {
				return err
			}
			if err := r.read(rowid, &p); err != nil {
				return err
			}
			if err := visit(r.row); err != nil {
				return stopped(err)
			}
		}
	}
	return nil
}

// leaves lists which of the pages are leaves of the table. A page does not say
// whose it is; but rows say where they belong: a leaf is the table's when
// looking for its first row leads to it.
func (t *Table) leaves(pages map[uint32]bool) ([]uint32, error) {
	var list []uint32
	for n := range pages {
		if n > t.db.pages {
			continue // cut off meanwhile
		}
		b, err := t.db.page(n, false)
		if err != nil {
			return nil, err
		}
		at := 0
		if n == 1 {
			at = headerBytes
		}
		if b[at] != tableLeaf {
			continue
		}
		x, err := t.db.node(n, false)
		if err != nil || x.cells == 0 {
			continue // a page that goes on another row can look like a leaf
		}
		cell, err := x.cell(0)
		if err != nil {
			continue
		}
		rowid, err := cellRowid(&x, cell)
		if err != nil {
			continue
		}
		leaf, err := t.db.leafOf(t.root, rowid)
		if err != nil {
			return nil, err
		}
		if leaf == n {
			list = append(list, n)
		}
	}
	return list, nil
}

// leafOf returns the leaf on which a row of a table is, or would be.
func (d *DB) leafOf(root uint32, rowid int64) (uint32, error) {
	n := root
	for range maxDepth {
		x, err := d.node(n, true)
		if err != nil {
			return 0, err
		}
		if x.kind == tableLeaf {
			return n, nil
		}
		if x.kind != tableInner {
			return 0, damaged("page of kind %d in a table", x.kind)
		}
		next := x.right
		for i := range x.cells {
			cell, err := x.cell(i)
			if err != nil {
				return 0, err
			}
			at, err := cellRowid(&x, cell)
			if err != nil {
				return 0, err
			}
			if rowid <= at {
				if next, _, err = child(cell); err != nil {
					return 0, err
				}
				break
			}
		}
		n = next
	}
	return 0, damaged("tree without end")
}
