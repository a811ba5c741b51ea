// Package seal turns values into the bytes that are hashed: JSON as
// JavaScript writes it, in insertion order, and SHA-256 that can be saved and
// continued. It is pure: it reads and writes no file and holds no key.
package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendString appends s as JSON.stringify writes it: only quotes, backslash
// and control characters are escaped. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				i++
				start = i
				continue
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// Compact rewrites one JSON object as JSON.stringify(JSON.parse(raw)) would,
// without its top-level member drop; the value of that member, when a string,
// is returned too. Duplicate names at any depth are an error: two readers
// would disagree on what was sealed.
func Compact(raw []byte, drop string) (compact []byte, dropped string, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if k := dec.PeekKind(); k != '{' {
		return nil, "", errors.New("not a JSON object")
	}
	c := compactor{dec: dec, drop: drop}
	if err := c.value(0); err != nil {
		return nil, "", err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, "", errors.New("data after the object")
	}
	return c.out, c.dropped, nil
}

type compactor struct {
	dec           *jsontext.Decoder
	out           []byte
	drop, dropped string
}

func (c *compactor) value(depth int) error {
	switch c.dec.PeekKind() {
	case '{':
		return c.object(depth)
	case '[':
		return c.array(depth)
	}
	tok, err := c.dec.ReadToken()
	if err != nil {
		return err
	}
	switch tok.Kind() {
	case '"':
		c.out = AppendString(c.out, tok.String())
	case '0':
		n, err := strconv.ParseFloat(tok.String(), 64)
		if err != nil {
			return fmt.Errorf("number %s: %w", tok.String(), err)
		}
		c.out = appendNumber(c.out, n)
	default:
		c.out = append(c.out, tok.String()...)
	}
	return nil
}

func (c *compactor) object(depth int) error {
	if _, err := c.dec.ReadToken(); err != nil {
		return err
	}
	c.out = append(c.out, '{')
	first := true
	for c.dec.PeekKind() != '}' {
		name, err := c.dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		if depth == 0 && key == c.drop {
			if c.dec.PeekKind() != '"' {
				return fmt.Errorf("%s is not a string", key)
			}
			val, err := c.dec.ReadToken()
			if err != nil {
				return err
			}
			c.dropped = val.String()
			continue
		}
		if !first {
			c.out = append(c.out, ',')
		}
		first = false
		c.out = append(AppendString(c.out, key), ':')
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	c.out = append(c.out, '}')
	_, err := c.dec.ReadToken()
	return err
}

func (c *compactor) array(depth int) error {
	if _, err := c.dec.ReadToken(); err != nil {
		return err
	}
	c.out = append(c.out, '[')
	first := true
	for c.dec.PeekKind() != ']' {
		if !first {
			c.out = append(c.out, ',')
		}
		first = false
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	_, err := c.dec.ReadToken()
	return err
}

// appendNumber writes n as ECMAScript's Number::toString does.
func appendNumber(dst []byte, n float64) []byte {
	if n == 0 {
		return append(dst, '0')
	}
	if abs := math.Abs(n); abs >= 1e21 || abs < 1e-6 {
		s := strconv.FormatFloat(n, 'e', -1, 64)
		s = strings.Replace(s, "e+0", "e+", 1)
		s = strings.Replace(s, "e-0", "e-", 1)
		return append(dst, s...)
	}
	return strconv.AppendFloat(dst, n, 'f', -1, 64)
}
