package ledger

import (
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/harness/plain"
	"handoffd/engine/seal"
	"handoffd/engine/sqlite"
)

// Line is a line of an export: an object of one member, which names the kind
// of record and holds an object.
type Line struct {
	buf  []byte
	some bool
}

// Begin starts a line.
func (l *Line) Begin(kind string) {
	l.buf = append(l.buf[:0], '{')
	l.buf = seal.AppendString(l.buf, kind)
	l.buf = append(l.buf, ":{"...)
	l.some = false
}

func (l *Line) name(name string) {
	if l.some {
		l.buf = append(l.buf, ',')
	}
	l.some = true
	l.buf = seal.AppendString(l.buf, name)
	l.buf = append(l.buf, ':')
}

// Value adds a number or text of a row; NULL is left out.
func (l *Line) Value(name string, v sqlite.Value) {
	switch v.Kind {
	case sqlite.Null:
	case sqlite.Integer:
		n, _ := v.Int()
		l.Int(name, n)
	default:
		l.Text(name, v.String())
	}
}

// Text adds a text.
func (l *Line) Text(name, text string) {
	l.name(name)
	l.buf = seal.AppendString(l.buf, text)
}

// Int adds a number.
func (l *Line) Int(name string, n int64) {
	l.name(name)
	l.buf = strconv.AppendInt(l.buf, n, 10)
}

// Unreadable is the member that stands for a column that holds no JSON.
const Unreadable = "unreadable"

// JSON adds a column that holds JSON; nothing when it is empty. What is no
// JSON is added as text, under the name Unreadable.
func (l *Line) JSON(name string, raw []byte) {
	if len(raw) == 0 {
		return
	}
	var check jsontext.Value = raw
	if !check.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		l.Text(Unreadable, string(raw))
		return
	}
	l.name(name)
	l.buf = append(l.buf, plain.Compact(raw)...)
}

// End writes the line.
func (l *Line) End(w io.Writer) error {
	l.buf = append(l.buf, "}}\n"...)
	_, err := w.Write(l.buf)
	return err
}
