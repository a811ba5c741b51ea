// Package sanitize turns text of unknown origin into text that is safe to
// show: on a terminal, on one log line, inside a markdown fence, in a table
// cell. It is the one place where this is decided, and it is applied at the
// output edge only: what is stored stays as it was read.
//
// It is pure and imports only the standard library. It never fails, never
// drops a byte silently (what cannot be shown becomes a visible escape such as
// \x1b or \u202e), and never makes text longer than ten times its input.
//
// The escapes are for people. A backslash in the input is kept as it is, which
// makes Terminal and Line idempotent and the escapes ambiguous: they cannot be
// turned back.
package sanitize

import (
	"strings"
	"unicode/utf8"
)

// Terminal returns s fit for a terminal. Newline and tab are kept. Every other
// C0 control, DEL, C1 controls, bidirectional controls, invisible format
// characters, tag characters, U+2028, U+2029 and each byte of invalid UTF-8
// become a visible escape. The result is valid UTF-8. Clean text is returned
// as it is, without an allocation.
func Terminal(s string) string { return escape(s, true) }

// Line is Terminal with newline and tab escaped too, so that the result stays
// on one physical line whatever s holds.
func Line(s string) string { return escape(s, false) }

// Forbidden reports whether Terminal escapes r. An encoding error
// (utf8.RuneError of width one) is escaped as well, but U+FFFD itself is not.
func Forbidden(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\n' && r != '\t'
	case r < 0x7f:
		return false
	case r < 0xa0: // DEL and C1
		return true
	case r < 0x061c:
		return false
	case r == 0x061c, r == 0x180e:
		return true
	case r < 0x200b:
		return false
	case r <= 0x200f: // zero width, left-to-right and right-to-left marks
		return true
	case r >= 0x2028 && r <= 0x202e: // separators, embeddings, overrides
		return true
	case r >= 0x2060 && r <= 0x206f: // word joiner, invisible operators, isolates
		return true
	case r == 0xfeff, r >= 0xfff9 && r <= 0xfffb:
		return true
	case r >= 0xe0000 && r <= 0xe007f: // tags: invisible ASCII
		return true
	}
	return r > utf8.MaxRune
}

// escape copies s, replacing what may not be shown. With multiline set,
// newline and tab are kept.
func escape(s string, multiline bool) string {
	i := firstBad(s, multiline)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for {
		b.WriteString(s[:i])
		s = s[i:]
		if s == "" {
			return b.String()
		}
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			writeHex(&b, 'x', uint32(s[0]), 2)
		} else {
			writeEscape(&b, r)
		}
		s = s[size:]
		i = firstBad(s, multiline)
	}
}

// firstBad returns the index of the first rune of s to escape, len(s) if none.
func firstBad(s string, multiline bool) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < 0x20 && (!multiline || c != '\n' && c != '\t') || c == 0x7f {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || Forbidden(r) {
			return i
		}
		i += size
	}
	return len(s)
}

// writeEscape writes the visible form of r.
func writeEscape(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case r < 0x100:
		writeHex(b, 'x', uint32(r), 2)
	case r < 0x10000:
		writeHex(b, 'u', uint32(r), 4)
	default:
		writeHex(b, 'U', uint32(r), 8)
	}
}

// writeHex writes a backslash, the letter and v in lower-case hex digits.
func writeHex(b *strings.Builder, letter byte, v uint32, digits int) {
	const hex = "0123456789abcdef"
	b.WriteByte('\\')
	b.WriteByte(letter)
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b.WriteByte(hex[v>>shift&0xf])
	}
}
