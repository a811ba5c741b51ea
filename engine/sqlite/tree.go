package sqlite

import (
	"encoding/binary"
	"fmt"

	"handoffd/engine/fault"
)

// The kinds of pages of a tree.
const (
	indexInner = 2
	tableInner = 5
	indexLeaf  = 10
	tableLeaf  = 13
)

const (
	// maxDepth bounds a tree; SQLite's own limit is 20.
	maxDepth = 24
	// maxPayload is SQLite's longest row, in bytes.
	maxPayload = 1 << 30
	// cachedPages bounds the inner pages that are kept.
	cachedPages = 256
)

func damaged(format string, args ...any) error {
	return fault.New(fault.Unsupported, "the database is damaged: %s", fmt.Sprintf(format, args...))
}

// page returns page n, from the log when it is there. keep says that it will
// be asked for again.
func (d *DB) page(n uint32, keep bool) ([]byte, error) {
	if b, ok := d.cache[n]; ok {
		return b, nil
	}
	if n == 0 || n > d.pages {
		return nil, damaged("page %d of %d", n, d.pages)
	}
	b := make([]byte, d.pageSize)
	if err := d.readPage(n, b); err != nil {
		return nil, err
	}
	if keep {
		if len(d.cache) >= cachedPages {
			clear(d.cache)
		}
		d.cache[n] = b
	}
	return b, nil
}

func (d *DB) readPage(n uint32, b []byte) error {
	if d.wal != nil {
		if at, ok := d.wal.frame[n]; ok {
			if _, err := d.wal.f.ReadAt(b, at); err != nil {
				return fmt.Errorf("%w: read page %d of the log: %w", ErrChanged, n, err)
			}
			return nil
		}
	}
	if _, err := d.main.ReadAt(b, int64(n-1)*int64(d.pageSize)); err != nil {
		return damaged("page %d cannot be read: %v", n, err)
	}
	return nil
}

// node is a page of a tree, taken apart.
type node struct {
	page  []byte
	kind  byte
	cells int
	at    int // of the cell pointers
	right uint32
}

func (d *DB) node(n uint32, inner bool) (node, error) {
	b, err := d.page(n, inner)
	if err != nil {
		return node{}, err
	}
	return d.parse(n, b)
}

func (d *DB) parse(n uint32, b []byte) (node, error) {
	h := b
	start := 0
	if n == 1 {
		start = headerBytes
		h = b[headerBytes:]
	}
	x := node{page: b, kind: h[0], cells: int(binary.BigEndian.Uint16(h[3:])), at: start + 8}
	switch x.kind {
	case indexInner, tableInner:
		x.right = binary.BigEndian.Uint32(h[8:])
		x.at += 4
	case indexLeaf, tableLeaf:
	default:
		return x, damaged("page %d is of no tree (%d)", n, x.kind)
	}
	if x.at+2*x.cells > d.usable {
		return x, damaged("page %d has %d cells", n, x.cells)
	}
	return x, nil
}

// cell returns the bytes from where cell i begins.
func (x *node) cell(i int) ([]byte, error) {
	at := int(binary.BigEndian.Uint16(x.page[x.at+2*i:]))
	if at < x.at || at >= len(x.page) {
		return nil, damaged("cell %d at %d", i, at)
	}
	return x.page[at:], nil
}

func child(cell []byte) (uint32, []byte, error) {
	if len(cell) < 4 {
		return 0, nil, damaged("short cell")
	}
	return binary.BigEndian.Uint32(cell), cell[4:], nil
}

// varint reads an integer of up to nine bytes; n is 0 when there is none.
func varint(b []byte) (v uint64, n int) {
	for i := 0; i < 8 && i < len(b); i++ {
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	if len(b) < 9 {
		return 0, 0
	}
	return v<<8 | uint64(b[8]), 9
}

// payload is a row or an index entry: the part on its page, and the page on
// which it goes on.
type payload struct {
	db    *DB
	local []byte
	size  int
	next  uint32
	whole []byte
}

// payloadOf takes a payload apart; table says which of the two rules for what
// stays on the page holds.
func (d *DB) payloadOf(cell []byte, size uint64, table bool) (payload, error) {
	if size > maxPayload || int64(size) > int64(d.pages)*int64(d.pageSize) {
		return payload{}, damaged("row of %d bytes", size)
	}
	p := payload{db: d, size: int(size)}
	most := (d.usable-12)*64/255 - 23
	if table {
		most = d.usable - 35
	}
	n := p.size
	if n > most {
		least := (d.usable-12)*32/255 - 23
		n = least + (p.size-least)%(d.usable-4)
		if n > most {
			n = least
		}
		if len(cell) < n+4 {
			return p, damaged("short row")
		}
		p.next = binary.BigEndian.Uint32(cell[n:])
	}
	if len(cell) < n {
		return p, damaged("short row")
	}
	p.local = cell[:n]
	return p, nil
}

// first returns at least the first n bytes of the payload, or all there are.
func (p *payload) first(n int) ([]byte, error) {
	switch {
	case p.whole != nil:
		return p.whole, nil
	case n <= len(p.local) || p.next == 0:
		return p.local, nil
	}
	whole := append(make([]byte, 0, p.size), p.local...)
	next := p.next
	buf := make([]byte, p.db.pageSize)
	for len(whole) < p.size {
		if next == 0 || next > p.db.pages {
			return nil, damaged("row goes on at page %d of %d", next, p.db.pages)
		}
		if err := p.db.readPage(next, buf); err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(buf)
		part := buf[4:p.db.usable]
		whole = append(whole, part[:min(len(part), p.size-len(whole))]...)
	}
	p.whole = whole
	return whole, nil
}

// rows calls visit for each row of the table at root, in the order of rowids,
// until it returns false.
func (d *DB) rows(root uint32, visit func(rowid int64, p payload) (bool, error)) error {
	w := walk{db: d, budget: 2*int64(d.pages) + maxDepth, visit: visit}
	_, err := w.page(root, 0)
	return err
}

// walk is one reading of a table. Each depth has one buffer: a page is done
// with when the next one beside it is read.
type walk struct {
	db     *DB
	budget int64
	visit  func(int64, payload) (bool, error)
	bufs   [maxDepth + 1][]byte
}

func (w *walk) page(n uint32, depth int) (more bool, err error) {
	d := w.db
	if w.budget--; w.budget < 0 || depth > maxDepth {
		return false, damaged("tree without end")
	}
	if n == 0 || n > d.pages {
		return false, damaged("page %d of %d", n, d.pages)
	}
	if w.bufs[depth] == nil {
		w.bufs[depth] = make([]byte, d.pageSize)
	}
	if err := d.readPage(n, w.bufs[depth]); err != nil {
		return false, err
	}
	x, err := d.parse(n, w.bufs[depth])
	if err != nil {
		return false, err
	}
	for i := range x.cells {
		cell, err := x.cell(i)
		if err != nil {
			return false, err
		}
		if x.kind == tableInner {
			down, _, err := child(cell)
			if err != nil {
				return false, err
			}
			if more, err := w.page(down, depth+1); !more || err != nil {
				return false, err
			}
			continue
		}
		rowid, p, err := d.leafCell(&x, cell)
		if err != nil {
			return false, err
		}
		if more, err := w.visit(rowid, p); !more || err != nil {
			return false, err
		}
	}
	if x.kind == tableInner {
		return w.page(x.right, depth+1)
	}
	return true, nil
}

func (d *DB) leafCell(x *node, cell []byte) (int64, payload, error) {
	if x.kind != tableLeaf {
		return 0, payload{}, damaged("page of kind %d in a table", x.kind)
	}
	size, n := varint(cell)
	rowid, m := varint(cell[n:])
	if n == 0 || m == 0 {
		return 0, payload{}, damaged("short cell")
	}
	p, err := d.payloadOf(cell[n+m:], size, true)
	return int64(rowid), p, err
}

// row finds one row of a table.
func (d *DB) row(root uint32, rowid int64) (p payload, ok bool, err error) {
	n := root
	for range maxDepth {
		x, err := d.node(n, true)
		if err != nil {
			return p, false, err
		}
		// The cells are in order: find the first that is not before rowid.
		lo, hi := 0, x.cells
		for lo < hi {
			mid := (lo + hi) / 2
			cell, err := x.cell(mid)
			if err != nil {
				return p, false, err
			}
			at, err := cellRowid(&x, cell)
			if err != nil {
				return p, false, err
			}
			if at < rowid {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if x.kind == tableLeaf {
			if lo == x.cells {
				return p, false, nil
			}
			cell, err := x.cell(lo)
			if err != nil {
				return p, false, err
			}
			at, p, err := d.leafCell(&x, cell)
			return p, at == rowid && err == nil, err
		}
		n = x.right
		if lo < x.cells {
			cell, err := x.cell(lo)
			if err != nil {
				return p, false, err
			}
			if n, _, err = child(cell); err != nil {
				return p, false, err
			}
		}
	}
	return p, false, damaged("tree without end")
}

func cellRowid(x *node, cell []byte) (int64, error) {
	switch x.kind {
	case tableInner:
		_, rest, err := child(cell)
		if err != nil {
			return 0, err
		}
		cell = rest
	case tableLeaf:
		_, n := varint(cell)
		cell = cell[n:]
	default:
		return 0, damaged("page of kind %d in a table", x.kind)
	}
	v, n := varint(cell)
	if n == 0 {
		return 0, damaged("short cell")
	}
	return int64(v), nil
}

// entries calls visit for the entries of the index at root from the first for
// which before is false, in order, until visit returns false.
func (d *DB) entries(root uint32, before func(p payload) (bool, error), visit func(p payload) (bool, error)) error {
	budget := 2*int64(d.pages) + maxDepth
	_, err := d.seek(root, 0, &budget, before, visit)
	return err
}

func (d *DB) seek(n uint32, depth int, budget *int64, before func(payload) (bool, error), visit func(payload) (bool, error)) (more bool, err error) {
	if *budget--; *budget < 0 || depth > maxDepth {
		return false, damaged("tree without end")
	}
	x, err := d.node(n, true)
	if err != nil {
		return false, err
	}
	lo, hi := 0, x.cells
	for before != nil && lo < hi {
		mid := (lo + hi) / 2
		_, p, err := d.indexCell(&x, mid)
		if err != nil {
			return false, err
		}
		earlier, err := before(p)
		if err != nil {
			return false, err
		}
		if earlier {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for i := lo; i < x.cells; i++ {
		down, p, err := d.indexCell(&x, i)
		if err != nil {
			return false, err
		}
		if x.kind == indexInner {
			if more, err := d.seek(down, depth+1, budget, before, visit); !more || err != nil {
				return false, err
			}
		}
		before = nil // everything from here on is in the range
		if more, err := visit(p); !more || err != nil {
			return false, err
		}
	}
	if x.kind == indexInner {
		return d.seek(x.right, depth+1, budget, before, visit)
	}
	return true, nil
}

func (d *DB) indexCell(x *node, i int) (down uint32, p payload, err error) {
	cell, err := x.cell(i)
	if err != nil {
		return 0, p, err
	}
	switch x.kind {
	case indexInner:
		if down, cell, err = child(cell); err != nil {
			return 0, p, err
		}
	case indexLeaf:
	default:
		return 0, p, damaged("page of kind %d in an index", x.kind)
	}
	size, n := varint(cell)
	if n == 0 {
		return 0, p, damaged("short cell")
	}
	p, err = d.payloadOf(cell[n:], size, false)
	return down, p, err
}
