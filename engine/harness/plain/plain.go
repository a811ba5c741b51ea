// Package plain holds what the JSON formats share when they turn the parts of
// a record into the text of a turn: images that are taken out, times that are
// compared, what a call says, the hash that tells two texts apart. It is a leaf
// and pure; it knows no format and reads no record.
package plain

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Image stands for a picture, whose bytes are never kept: inline pictures have
// grown rollouts to 98 GB (openai/codex#40111).
const Image = "[image]"

// Empty is the text of a result that has none; a turn's text is never empty.
const Empty = "(empty)"

// minInline is the shortest base64 run taken for an inline file. Shorter ones
// are examples in prose.
const minInline = 64

// Text makes s fit to be a turn's text: valid UTF-8 without inline files. It
// returns s itself when it is fit already.
func Text(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return inline(s)
}

// inline replaces the data URLs in s.
func inline(s string) string {
	const sign = ";base64,"
	at := strings.Index(s, sign)
	if at < 0 {
		return s
	}
	var out strings.Builder
	rest := s
	for ; at >= 0; at = strings.Index(rest, sign) {
		end := at + len(sign)
		for end < len(rest) && base64Byte(rest[end]) {
			end++
		}
		// The scheme stands before the media type, which holds no space
		// and is short.
		start := strings.LastIndex(rest[max(0, at-128):at], "data:")
		if start >= 0 {
			start += max(0, at-128)
		}
		if start < 0 || end-at-len(sign) < minInline || strings.ContainsAny(rest[start:at], " \n\"") {
			out.WriteString(rest[:end])
			rest = rest[end:]
			continue
		}
		out.WriteString(rest[:start])
		if strings.HasPrefix(rest[start:], "data:image/") {
			out.WriteString(Image)
		} else {
			out.WriteString("[file]")
		}
		rest = rest[end:]
	}
	out.WriteString(rest)
	return out.String()
}

func base64Byte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '+' || c == '/' || c == '=' || c == '-' || c == '_'
}

// Later reports whether the time b is later than a, both as a harness wrote
// them. An empty or unreadable b is later than nothing.
func Later(a, b string) bool {
	if b == "" {
		return false
	}
	if len(a) == len(b) && strings.HasSuffix(a, "Z") && strings.HasSuffix(b, "Z") {
		return b > a
	}
	tb, err := time.Parse(time.RFC3339Nano, b)
	if err != nil {
		return false
	}
	ta, err := time.Parse(time.RFC3339Nano, a)
	return err != nil || tb.After(ta)
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Hash is FNV-1a of the parts, each ended by a byte that UTF-8 never has.
func Hash(parts ...string) uint64 {
	h := uint64(fnvOffset)
	for _, s := range parts {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * fnvPrime
		}
		h = (h ^ 0xff) * fnvPrime
	}
	return h
}

// Letters is Hash of the texts as one, without white space: harnesses join the
// same parts with different separators.
func Letters(texts ...string) uint64 {
	h := uint64(fnvOffset)
	for _, s := range texts {
		for i := range len(s) {
			if c := s[i]; c > ' ' {
				h = (h ^ uint64(c)) * fnvPrime
			}
		}
	}
	return h
}

// Compact is raw JSON on one line, so that a value reads the same whether it
// stood in a pretty-printed document or in a JSON line.
func Compact(raw []byte) string {
	if bytes.IndexByte(raw, '\n') < 0 {
		return string(raw)
	}
	v := jsontext.Value(bytes.Clone(raw))
	if err := v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return string(raw)
	}
	return string(v)
}

// Clip cuts s to at most n bytes at the start of a rune.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// stampLayout is how times that a harness counts are written: UTC, to the
// millisecond.
const stampLayout = "2006-01-02T15:04:05.000Z"

// Stamp is a time as harnesses write it: text stays as it is, a number becomes
// RFC 3339 in UTC. Seconds, milliseconds, micro- and nanoseconds since 1970 are
// told apart by their size (they are for the years 2001 to 2286); "" is what
// is no time.
func Stamp(s string) string {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') || len(s) > 4 && s[4] == '-' {
		return s
	}
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 1e9 {
		return ""
	}
	switch {
	case n < 1e10: // seconds
		t := time.Unix(n, 0)
		if f, err := strconv.ParseFloat("0."+fraction, 64); err == nil && fraction != "" {
			t = t.Add(time.Duration(f * float64(time.Second)).Round(time.Millisecond))
		}
		return t.UTC().Format(stampLayout)
	case n < 1e13:
		return time.UnixMilli(n).UTC().Format(stampLayout)
	case n < 1e16:
		return time.UnixMicro(n).UTC().Format(stampLayout)
	}
	return time.Unix(0, n).UTC().Format(stampLayout)
}
