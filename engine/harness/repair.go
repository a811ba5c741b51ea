package harness

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// valueLen returns the length of the JSON value at the start of b, or 0 when
// there is none, and how many bytes it took to tell.
func valueLen(b []byte) (n, looked int) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(b), lax...)
	err := dec.SkipValue()
	looked = int(dec.InputOffset())
	if err != nil {
		return 0, looked
	}
	return looked, looked
}

// valid reports whether b is exactly one JSON value.
func valid(b []byte) bool {
	n, _ := valueLen(b)
	return n > 0 && len(bytes.TrimSpace(b[n:])) == 0
}

// repair finds the records in a line that is not one record: glued ones, one
// behind a torn one, one with raw control characters inside.
func (s *splitter) repair(body []byte, at Position) error {
	if fixed := escapeControls(body); len(fixed) != len(body) {
		if err := s.record(fixed, at); !Syntax(err) {
			return s.judge(body, at.Offset, err)
		}
	}
	budget := 8*len(body) + 1<<20
	for pos := 0; pos < len(body); {
		if c := body[pos]; c == ' ' || c == '\t' || c == '\r' || c == 0 {
			pos++
			continue
		}
		offset := at.Offset + int64(pos)
		if n, _ := valueLen(body[pos:]); n > 0 {
			obj := body[pos : pos+n]
			var err error
			if body[pos] != '{' {
				err = &Rejection{ReasonNotObject}
			} else if err = s.record(obj, Position{offset, at.Line}); Syntax(err) {
				err = &Rejection{ReasonTorn}
			}
			if err := s.judge(obj, offset, err); err != nil {
				return err
			}
			pos += n
			continue
		}
		next := s.resync(body, pos+1, &budget)
		if next < 0 {
			return s.reject(body[pos:], offset, ReasonTorn)
		}
		if err := s.reject(body[pos:next], offset, ReasonTorn); err != nil {
			return err
		}
		pos = next
	}
	return nil
}

// resyncs reports whether a whole record stands behind a torn one.
func (s *splitter) resyncs(body []byte) bool {
	budget := 8*len(body) + 1<<20
	return s.resync(body, 1, &budget) > 0
}

// resync returns where the next record starts at or after pos, or -1. A start
// from which nothing but records follows to the end of the line is preferred
// to an earlier one, for an object nested in a torn record looks whole too.
// budget bounds the bytes looked at: a line can hold any number of starts.
func (s *splitter) resync(body []byte, pos int, budget *int) int {
	fallback := -1
	for pos < len(body) && *budget > 0 {
		i := bytes.IndexByte(body[pos:], '{')
		if i < 0 {
			break
		}
		pos += i
		rest := bytes.TrimLeft(body[pos+1:], " \t\r")
		if len(rest) == 0 || rest[0] != '"' {
			pos++
			continue
		}
		n, looked := valueLen(body[pos:])
		*budget -= looked + 256
		if n == 0 || !s.whole(body[pos:pos+n]) {
			pos++
			continue
		}
		if s.allRecords(body[pos+n:], budget) {
			return pos
		}
		if fallback < 0 {
			fallback = pos
		}
		pos += n
	}
	return fallback
}

// allRecords reports whether b holds nothing but records.
func (s *splitter) allRecords(b []byte, budget *int) bool {
	for {
		b = bytes.Trim(b, " \t\r\x00")
		if len(b) == 0 {
			return true
		}
		if b[0] != '{' {
			return false
		}
		n, looked := valueLen(b)
		*budget -= looked + 256
		if n == 0 || !s.whole(b[:n]) {
			return false
		}
		b = b[n:]
	}
}

// escapeControls writes the control characters inside strings as JSON
// escapes. The result is b itself when there are none.
func escapeControls(b []byte) []byte {
	if bytes.IndexFunc(b, func(r rune) bool { return r < ' ' }) < 0 {
		return b
	}
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(b)+16)
	inString := false
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case inString && c == '\\' && i+1 < len(b):
			out = append(out, c, b[i+1])
			i++
		case c == '"':
			inString = !inString
			out = append(out, c)
		case inString && c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return out
}

// FirstObject returns the JSON object that b begins with, or nil.
func FirstObject(b []byte) []byte {
	if len(b) == 0 || b[0] != '{' {
		return nil
	}
	if n, _ := valueLen(b); n > 0 {
		return b[:n]
	}
	return nil
}
