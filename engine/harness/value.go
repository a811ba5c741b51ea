package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Value walks one JSON value without building it. Methods that read a value
// of another kind than asked for skip it and return the zero value: a format
// tolerates any field of the wrong type. Errors are only those of the JSON
// grammar, and sticky.
type Value struct {
	dec   *jsontext.Decoder
	buf   bytes.Buffer
	names map[string]string
	err   error
}

var (
	strict = []jsontext.Options{}
	lax    = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
)

// Walk calls read on the single JSON value in raw. It tries the strict
// grammar first and then once more with duplicate names and invalid Unicode
// allowed, so read must start from fresh results; lenient reports that the
// second attempt was needed. The error satisfies Syntax.
func (v *Value) Walk(raw []byte, read func(*Value)) (lenient bool, err error) {
	if err = v.walk(raw, strict, read); err == nil {
		return false, nil
	}
	if laxErr := v.walk(raw, lax, read); laxErr == nil {
		return true, nil
	} else {
		err = laxErr
	}
	return false, fmt.Errorf("%w: %w", errSyntax, err)
}

// Object is Walk for a unit that must be an object; another value is a
// *Rejection.
func (v *Value) Object(raw []byte, read func(*Value)) (lenient bool, err error) {
	if len(raw) == 0 || raw[0] != '{' {
		if _, err := v.Walk(raw, (*Value).Skip); err != nil {
			return false, err
		}
		return false, &Rejection{ReasonNotObject}
	}
	return v.Walk(raw, read)
}

func (v *Value) walk(raw []byte, opts []jsontext.Options, read func(*Value)) error {
	v.buf = *bytes.NewBuffer(raw)
	v.err = nil
	if v.dec == nil {
		v.dec = jsontext.NewDecoder(&v.buf, opts...)
	} else {
		v.dec.Reset(&v.buf, opts...)
	}
	read(v)
	if v.err != nil {
		return v.err
	}
	if _, err := v.dec.ReadToken(); err == nil {
		return errors.New("data after the value")
	} else if err != io.EOF {
		return err
	}
	return nil
}

// Unfinished reports whether err says that the bytes end before the value.
func Unfinished(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// Kind returns the kind of the next value: '{', '[', '"', '0', 't', 'f', 'n',
// or 0 at an error.
func (v *Value) Kind() jsontext.Kind {
	if v.err != nil {
		return 0
	}
	return v.dec.PeekKind()
}

// Err returns the first error of the walk.
func (v *Value) Err() error { return v.err }

func (v *Value) fail(err error) {
	if v.err == nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		v.err = err
	}
}

// Skip passes over the next value.
func (v *Value) Skip() {
	if v.err != nil {
		return
	}
	if err := v.dec.SkipValue(); err != nil {
		v.fail(err)
	}
}

// Raw returns the next value as it stands. It is valid for the duration of
// the walk.
func (v *Value) Raw() []byte {
	if v.err != nil {
		return nil
	}
	raw, err := v.dec.ReadValue()
	if err != nil {
		v.fail(err)
		return nil
	}
	return raw
}

// Fields reads an object and calls field for each member with its exact name;
// field must consume the member's value or leave it whole, in which case it
// is skipped.
func (v *Value) Fields(field func(name string)) {
	if !v.open('{') {
		return
	}
	for v.err == nil && v.dec.PeekKind() != '}' {
		quoted, err := v.dec.ReadValue()
		if err != nil {
			v.fail(err)
			return
		}
		before := v.dec.InputOffset()
		field(v.intern(quoted))
		if v.err == nil && v.dec.InputOffset() == before {
			v.Skip()
		}
	}
	v.close()
}

// Items reads an array and calls item before each element, under the same
// rule as Fields.
func (v *Value) Items(item func()) {
	if !v.open('[') {
		return
	}
	for v.err == nil && v.dec.PeekKind() != ']' {
		before := v.dec.InputOffset()
		item()
		if v.err == nil && v.dec.InputOffset() == before {
			v.Skip()
		}
	}
	v.close()
}

func (v *Value) open(kind jsontext.Kind) bool {
	switch v.Kind() {
	case kind:
		if _, err := v.dec.ReadToken(); err != nil {
			v.fail(err)
			return false
		}
		return true
	}
	v.Skip()
	return false
}

func (v *Value) close() {
	if v.err != nil {
		return
	}
	if _, err := v.dec.ReadToken(); err != nil {
		v.fail(err)
	}
}

// Text reads a string; a number gives its literal, anything else "".
func (v *Value) Text() string {
	switch v.Kind() {
	case '"':
		return Unquote(v.Raw())
	case '0':
		return string(v.Raw())
	}
	v.Skip()
	return ""
}

// Int reads an integer, also one written as a string; ok is false for
// anything else, fractions included.
func (v *Value) Int() (n int64, ok bool) {
	switch v.Kind() {
	case '0', '"':
		s := v.Text()
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, false
		}
		return n, true
	}
	v.Skip()
	return 0, false
}

// Bool reads true or false; anything else is false.
func (v *Value) Bool() bool {
	k := v.Kind()
	v.Skip()
	return k == 't'
}

// Unquote decodes a JSON string. Invalid UTF-8 and lone surrogates become
// U+FFFD.
func Unquote(quoted []byte) string {
	if s, ok := unescape(quoted); ok {
		return s
	}
	out, _ := jsontext.AppendUnquote(nil, quoted)
	return string(out)
}

// unescape decodes a string in the common case of sound UTF-8 without \u
// escapes of surrogates. The text between escapes is copied in runs, which
// for tool output, full of \n and \", is several times faster.
func unescape(quoted []byte) (string, bool) {
	if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		return "", false
	}
	body := quoted[1 : len(quoted)-1]
	if !utf8.Valid(body) {
		return "", false
	}
	at := bytes.IndexByte(body, '\\')
	if at < 0 {
		return string(body), true
	}
	var out strings.Builder
	out.Grow(len(body))
	for {
		out.Write(body[:at])
		body = body[at+1:]
		if len(body) == 0 {
			return "", false
		}
		c := body[0]
		body = body[1:]
		switch c {
		case '"', '\\', '/':
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'u':
			if len(body) < 4 {
				return "", false
			}
			r, err := strconv.ParseUint(string(body[:4]), 16, 16)
			if err != nil || utf16.IsSurrogate(rune(r)) {
				return "", false
			}
			out.WriteRune(rune(r))
			body = body[4:]
		default:
			return "", false
		}
		if c != 'u' {
			out.WriteByte(c)
		}
		// Escapes often stand close together, where a call costs more than
		// looking at the bytes.
		at = 0
		for at < len(body) && at < 16 && body[at] != '\\' {
			at++
		}
		if at == 16 {
			more := bytes.IndexByte(body[at:], '\\')
			if more < 0 {
				at = len(body)
			} else {
				at += more
			}
		}
		if at == len(body) {
			out.Write(body)
			return out.String(), true
		}
	}
}

// maxNames bounds the member names that a Value remembers: a transcript may
// hold an object with a million keys.
const maxNames = 512

// intern returns the decoded member name, without allocating for one seen
// before.
func (v *Value) intern(quoted []byte) string {
	if s, ok := v.names[string(quoted)]; ok {
		return s
	}
	s := Unquote(quoted)
	if len(v.names) < maxNames {
		if v.names == nil {
			v.names = make(map[string]string)
		}
		v.names[string(quoted)] = s
	}
	return s
}
