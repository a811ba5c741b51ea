package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fence returns the opening and the closing line (without newline) of a
// markdown code fence that text cannot close: backticks, one more than the
// longest run of them in text, at least three. A backtick fence is not closed
// by tildes. The caller writes each on a line of its own and may put an info
// string, free of backticks, after the opening one.
func Fence(text string) (open, close string) {
	longest, run := 0, 0
	for i := 0; i < len(text); i++ {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", max(3, longest+1))
	return fence, fence
}

// Cell returns s as one cell of a markdown table, at most limit runes long,
// escapes included; "" if limit is not positive. White space, newlines
// included, becomes single spaces. Controls are escaped as by Line; the pipe,
// the backslash and everything that could begin emphasis, code, a link, an
// image or HTML is neutralised. A cut is marked by a final ellipsis and never
// falls inside a rune or an escape.
func Cell(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	var (
		b         strings.Builder
		used      int // runes in b
		safe      int // bytes of b that leave room for the ellipsis
		prev      rune
		wantSpace bool
	)
	// put appends a unit that must not be cut, and reports whether it fitted.
	put := func(unit string) bool {
		n := utf8.RuneCountInString(unit)
		if used+n > limit {
			return false
		}
		b.WriteString(unit)
		used += n
		if used < limit {
			safe = b.Len()
		}
		return true
	}
	cut := func() string { return b.String()[:safe] + "…" }

	for rest := s; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		unit := rest[:size]
		rest = rest[size:]
		if r == ' ' || r == '\n' || r == '\t' || r == '\r' {
			wantSpace = b.Len() > 0
			prev = ' '
			continue
		}
		if wantSpace {
			wantSpace = false
			if !put(" ") {
				return cut()
			}
		}
		if !put(cellUnit(r, unit, prev, rest)) {
			return cut()
		}
		prev = r
	}
	return b.String()
}

// cellUnit returns what stands in a cell for the rune r, spelled unit in the
// source, between prev and rest.
func cellUnit(r rune, unit string, prev rune, rest string) string {
	switch r {
	case '|', '\\', '`', '*', '[', ']', '~':
		return `\` + unit
	case '_':
		// Inside a word it is no emphasis, and names read better without.
		next, _ := utf8.DecodeRuneInString(rest)
		if isWord(prev) && isWord(next) {
			return unit
		}
		return `\_`
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '&':
		// Only what could be read as an entity: one could spell a control.
		if rest != "" && (rest[0] == '#' || isLetter(rest[0])) {
			return "&amp;"
		}
		return unit
	}
	// Line writes a backslash only for what it escapes, so double it.
	if safe := Line(unit); safe != unit {
		return `\` + safe
	}
	return unit
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
