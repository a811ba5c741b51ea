package seal

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical rewrites one JSON value as JSON.stringify writes it, with the
// members of every object sorted by the UTF-16 code units of their names, as
// JavaScript sorts, and without the members drop of the value itself.
// Duplicate names at any depth are an error.
func Canonical(raw []byte, drop ...string) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	out, err := canonical(dec, drop)
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the value")
	}
	return out, nil
}

func canonical(dec *jsontext.Decoder, drop []string) ([]byte, error) {
	switch dec.PeekKind() {
	case '[':
		return canonicalArray(dec)
	case '{':
		return canonicalObject(dec, drop)
	}
	c := compactor{dec: dec}
	err := c.value(0)
	return c.out, err
}

func canonicalArray(dec *jsontext.Decoder) ([]byte, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	out := []byte{'['}
	for dec.PeekKind() != ']' {
		v, err := canonical(dec, nil)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	_, err := dec.ReadToken()
	return append(out, ']'), err
}

func canonicalObject(dec *jsontext.Decoder, drop []string) ([]byte, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	type member struct {
		name  string
		units []uint16
		value []byte
	}
	var members []member
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		m.units = utf16.Encode([]rune(m.name))
		if m.value, err = canonical(dec, nil); err != nil {
			return nil, err
		}
		if !slices.Contains(drop, m.name) {
			members = append(members, m)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	slices.SortFunc(members, func(a, b member) int { return slices.Compare(a.units, b.units) })
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(AppendString(out, m.name), ':'), m.value...)
	}
	return append(out, '}'), nil
}

// CompactValue rewrites one JSON value as JSON.stringify(JSON.parse(raw))
// would.
func CompactValue(raw []byte) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	c := compactor{dec: dec}
	if err := c.value(0); err != nil {
		return nil, fmt.Errorf("not a JSON value: %w", err)
	}
	return c.out, nil
}

// Sign returns the HMAC-SHA256 of message in hex.
func Sign(key, message []byte) string {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(message)
	return hex.EncodeToString(h.Sum(nil))
}

// Signed reports whether sig is the signature of message, in a time that does
// not tell where it differs. Without a key nothing is signed.
func Signed(key, message []byte, sig string) bool {
	return len(key) > 0 && hmac.Equal([]byte(Sign(key, message)), []byte(sig))
}
