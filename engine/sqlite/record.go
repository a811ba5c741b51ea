package sqlite

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the type of a value.
type Kind byte

// The types that a column can have, whatever it was declared as.
const (
	Null Kind = iota
	Integer
	Float
	Text
	Blob
)

// Value is one column of a row.
type Value struct {
	Kind  Kind
	int   int64
	float float64
	bytes []byte
}

// Int is the integer, also of a number or text that is one; ok is false for
// anything else.
func (v Value) Int() (n int64, ok bool) {
	switch v.Kind {
	case Integer:
		return v.int, true
	case Float:
		if v.float == math.Trunc(v.float) && math.Abs(v.float) < 1<<62 {
			return int64(v.float), true
		}
	case Text:
		n, err := strconv.ParseInt(string(v.bytes), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// String is the text, or how a number is written; "" for NULL. A blob is taken
// for text: some programs bind one for the other.
func (v Value) String() string {
	switch v.Kind {
	case Integer:
		return strconv.FormatInt(v.int, 10)
	case Float:
		return strconv.FormatFloat(v.float, 'g', -1, 64)
	case Text, Blob:
		return string(v.bytes)
	}
	return ""
}

// Bytes is the content of a text or a blob as it is stored, nil for anything
// else. It must not be changed.
func (v Value) Bytes() []byte { return v.bytes }

// layout is where the columns of a record are.
type layout struct {
	types []uint64
	at    []int // offset of each column from the start of the record
	end   int
}

// size is how many bytes a value of a serial type takes.
func size(kind uint64) int {
	switch {
	case kind <= 4:
		return int(kind)
	case kind == 5:
		return 6
	case kind == 6, kind == 7:
		return 8
	case kind < 12:
		return 0
	}
	return int(min((kind-12)/2, maxPayload))
}

// columns reads the head of a record.
func (p *payload) columns(l *layout) error {
	b, err := p.first(1)
	if err != nil {
		return err
	}
	total, n := varint(b)
	if n == 0 || total < uint64(n) || total > uint64(p.size) {
		return damaged("record with a head of %d bytes", total)
	}
	if b, err = p.first(int(total)); err != nil {
		return err
	}
	if uint64(len(b)) < total {
		return damaged("record shorter than its head")
	}
	l.types, l.at = l.types[:0], l.at[:0]
	at := int(total)
	for i := n; i < int(total); {
		kind, n := varint(b[i:total])
		if n == 0 || kind == 10 || kind == 11 {
			return damaged("record with an unknown type")
		}
		i += n
		l.types, l.at = append(l.types, kind), append(l.at, at)
		if at += size(kind); at > p.size {
			return damaged("record shorter than its columns")
		}
	}
	l.end = at
	return nil
}

// value reads column i of a record.
func (p *payload) value(l *layout, i int) (Value, error) {
	kind, at := l.types[i], l.at[i]
	n := size(kind)
	b, err := p.first(at + n)
	if err != nil {
		return Value{}, err
	}
	if len(b) < at+n {
		return Value{}, damaged("record shorter than its columns")
	}
	b = b[at : at+n]
	switch {
	case kind == 0:
		return Value{}, nil
	case kind <= 6:
		return Value{Kind: Integer, int: signed(b)}, nil
	case kind == 7:
		return Value{Kind: Float, float: math.Float64frombits(binary.BigEndian.Uint64(b))}, nil
	case kind == 8, kind == 9:
		return Value{Kind: Integer, int: int64(kind - 8)}, nil
	case kind%2 == 0:
		return Value{Kind: Blob, bytes: b}, nil
	}
	return Value{Kind: Text, bytes: p.db.text(b)}, nil
}

func signed(b []byte) int64 {
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return v
}

// text returns a text as UTF-8, valid or not.
func (d *DB) text(b []byte) []byte {
	if d.utf16 == nil {
		return b
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = d.utf16.Uint16(b[2*i:])
	}
	out := make([]byte, 0, len(b))
	for _, r := range utf16.Decode(units) {
		out = utf8.AppendRune(out, r)
	}
	return out
}
