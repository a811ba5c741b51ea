// Package document reads a small JSON object strictly and checks it against
// the part of JSON Schema that our configuration schemas use. It never touches
// a file and never fills in a default.
//
// The schemas are JSON Schema 2020-12, and the tests hold this package to what
// santhosh-tekuri/jsonschema says about the same documents. That library is
// not linked into the binaries because its package initialisation compiles
// every published meta-schema: 3.5 to 5.8 ms and 1.7 MB in each process that
// links it, used or not, where a whole hook call may cost two and a half times
// an empty process.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Object is a JSON object in the order of its text. A value is nil, bool,
// int64, float64, string, []any or *Object; a number that is integral and
// below 2^53 in magnitude is an int64 however it was spelled.
type Object struct {
	Keys   []string
	Values map[string]any
}

// Fault is one thing wrong with a document.
type Fault struct {
	Path string // such as "capture.exclude_patterns[0]"; "" is the whole document
	Msg  string
}

// Text returns the fault with its path set behind the document's name.
func (f Fault) Text(name string) string {
	if f.Path == "" {
		return name + ": " + f.Msg
	}
	return name + "." + f.Path + ": " + f.Msg
}

// ErrNotObject says that the text is JSON but no object.
var ErrNotObject = errors.New("not a JSON object")

var bom = []byte("\xef\xbb\xbf")

// Parse reads data as one JSON object; a byte order mark before it is allowed.
// Keys that occur twice come back as faults, in the order of the text. The
// error is ErrNotObject, or says with line and column (both from 1) why data
// is not JSON. Data after the object, invalid UTF-8 and numbers outside the
// range of a float64 are errors.
func Parse(data []byte) (*Object, []Fault, error) {
	data = bytes.TrimPrefix(data, bom)
	if at := invalidUTF8(data); at >= 0 {
		return nil, nil, fmt.Errorf("%s: invalid UTF-8", position(data, at))
	}
	// The token stream below reports an error later and less exactly than a
	// whole scan does.
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, nil, fmt.Errorf("%s: %w", position(data, int(syntax.Offset)-1), err)
		}
		return nil, nil, err
	}
	d := decoder{json: json.NewDecoder(bytes.NewReader(data)), data: data}
	d.json.UseNumber()
	v, err := d.value()
	if err != nil {
		return nil, nil, err
	}
	if _, err := d.json.Token(); err != io.EOF {
		return nil, nil, errors.New("data after the top-level value")
	}
	o, ok := v.(*Object)
	if !ok {
		return nil, nil, ErrNotObject
	}
	return o, d.faults, nil
}

type decoder struct {
	json   *json.Decoder
	data   []byte
	path   []string // segments down to the current value
	faults []Fault
}

func (d *decoder) value() (any, error) {
	t, err := d.json.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return d.object()
		}
		return d.array()
	case json.Number:
		n, err := number(t.String())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", position(d.data, int(d.json.InputOffset())-1), err)
		}
		return n, nil
	default:
		return t, nil // nil, bool, string
	}
}

func (d *decoder) object() (*Object, error) {
	o := &Object{Values: map[string]any{}}
	for d.json.More() {
		t, err := d.json.Token()
		if err != nil {
			return nil, err
		}
		key := t.(string) // the decoder gives nothing else here
		_, twice := o.Values[key]
		if twice {
			// Past a hundred the list helps nobody, and a hostile document could
			// make each entry's path long.
			if len(d.faults) < 100 {
				d.faults = append(d.faults, Fault{joinPath(d.path), "duplicate key " + quote(key)})
			}
		} else {
			o.Keys = append(o.Keys, key)
		}
		d.path = append(d.path, "."+segment(key))
		v, err := d.value()
		d.path = d.path[:len(d.path)-1]
		if err != nil {
			return nil, err
		}
		if !twice {
			o.Values[key] = v
		}
	}
	_, err := d.json.Token()
	return o, err
}

func (d *decoder) array() ([]any, error) {
	list := []any{}
	for d.json.More() {
		d.path = append(d.path, "["+strconv.Itoa(len(list))+"]")
		v, err := d.value()
		d.path = d.path[:len(d.path)-1]
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.json.Token()
	return list, err
}

// number bounds what a number can cost later: json.Number keeps "1e999999999"
// as text, and exact arithmetic on that would fill memory.
func number(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("number %s is out of range", clip(text))
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), nil
	}
	return f, nil
}

// segment is a key as it stands in a path: plain, or quoted where plain could
// end the line or reach a terminal.
func segment(key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return quote(key)
	}
	return clip(key)
}

func joinPath(segments []string) string {
	return clip(strings.TrimPrefix(strings.Join(segments, ""), "."))
}

// invalidUTF8 returns the offset of the first invalid byte, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// position renders an offset into data as a line and a column in runes.
func position(data []byte, offset int) string {
	offset = max(0, min(offset, len(data)))
	before := data[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}

// quoteMax bounds, in runes, what a message repeats of a document.
const quoteMax = 80

// quote renders text so that it can neither end its line nor reach a terminal
// as a control sequence.
func quote(text string) string { return strconv.Quote(clip(text)) }

func clip(text string) string {
	if utf8.RuneCountInString(text) <= quoteMax {
		return text
	}
	return string([]rune(text)[:quoteMax]) + "..."
}
