package render

import (
	"strings"
	"unicode/utf8"
)

// clip returns a copy of the first n runes of s. It copies so that the fold
// does not keep the whole text of a turn alive, and replaces invalid UTF-8 so
// that whatever is kept can be encoded.
func clip(s string, n int) string {
	return valid(s[:prefix(s, n)])
}

// prefix returns the length in bytes of the first n runes of s.
func prefix(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	i := 0
	for ; n > 0 && i < len(s); n-- {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// clipEnd returns a copy of the last n runes of s.
func clipEnd(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		if s[i-1] < utf8.RuneSelf {
			i--
			continue
		}
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return valid(s[i:])
}

// valid returns s as valid UTF-8 in memory of its own.
func valid(s string) string {
	if utf8.ValidString(s) {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// atLeast reports whether s has n runes or more.
func atLeast(s string, n int) bool {
	return len(s) >= n && (len(s) >= n*utf8.UTFMax || utf8.RuneCountInString(s) >= n)
}

// push appends v to s, which never grows beyond limit: the oldest goes.
func push[T any](s []T, v T, limit int) []T {
	if len(s) < limit {
		return append(s, v)
	}
	copy(s, s[1:])
	s[len(s)-1] = v
	return s
}

// hasFold reports whether s begins with prefix, which is lower-case ASCII.
func hasFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := 0; i < len(prefix); i++ {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}

// fences follows the code fences of a markdown text line by line, as
// CommonMark defines them outside lists and quotes. This package writes fences
// only there.
type fences struct {
	mark byte // of the open fence, 0 when none is open
	run  int
}

// line takes the next line, without its newline, and reports whether it is
// part of a fenced block, fences included.
func (f *fences) line(s string) bool {
	s = strings.TrimRight(s, "\r")
	rest := strings.TrimLeft(s, " ")
	if len(s)-len(rest) > 3 || rest == "" || rest[0] != '`' && rest[0] != '~' {
		return f.mark != 0
	}
	mark := rest[0]
	run := len(rest) - len(strings.TrimLeft(rest, string(mark)))
	info := rest[run:]
	if f.mark == 0 {
		if run < 3 || mark == '`' && strings.IndexByte(info, '`') >= 0 {
			return false
		}
		f.mark, f.run = mark, run
		return true
	}
	if mark == f.mark && run >= f.run && strings.Trim(info, " \t") == "" {
		f.mark = 0
	}
	return true
}
