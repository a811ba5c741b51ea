package sqlite

import "strings"

// token is a word, a sign or a quoted text of a CREATE statement.
type token struct {
	text  string
	quote byte // 0, or the sign that it was quoted with
}

func (k token) is(sign string) bool   { return k.quote == 0 && k.text == sign }
func (k token) word(word string) bool { return k.quote == 0 && strings.EqualFold(k.text, word) }

// typeWord reports whether the token can go on the name of a type.
func (k token) typeWord() bool {
	if k.quote != 0 {
		return true
	}
	switch strings.ToLower(k.text) {
	case "", "constraint", "primary", "not", "null", "unique", "check", "default", "collate", "references", "generated", "as":
		return false
	}
	return true
}

// lex takes a statement apart. It never fails: what is no statement gives
// tokens that say nothing.
func lex(sql string) []token {
	var list []token
	for i := 0; i < len(sql); {
		c := sql[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			i++
		case strings.HasPrefix(sql[i:], "--"):
			end := strings.IndexByte(sql[i:], '\n')
			if end < 0 {
				return list
			}
			i += end
		case strings.HasPrefix(sql[i:], "/*"):
			end := strings.Index(sql[i+2:], "*/")
			if end < 0 {
				return list
			}
			i += end + 4
		case c == '"' || c == '`' || c == '\'' || c == '[':
			text, n := quoted(sql[i:])
			list = append(list, token{text, c})
			i += n
		case wordByte(c):
			n := i
			for n < len(sql) && wordByte(sql[n]) {
				n++
			}
			list = append(list, token{text: sql[i:n]})
			i = n
		default:
			list = append(list, token{text: sql[i : i+1]})
			i++
		}
	}
	return list
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '.' || c >= 0x80
}

// quoted reads a quoted text; the closing sign stands for itself when doubled.
func quoted(s string) (text string, n int) {
	end := s[0]
	if end == '[' {
		end = ']'
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != end {
			b.WriteByte(s[i])
			continue
		}
		if end != ']' && i+1 < len(s) && s[i+1] == end {
			b.WriteByte(end)
			i++
			continue
		}
		return b.String(), i + 1
	}
	return b.String(), len(s)
}

// split returns the parts between commas up to the parenthesis that closes the
// list, and what follows it.
func split(tokens []token) (parts [][]token, rest []token) {
	depth, from := 0, 0
	for i, k := range tokens {
		switch {
		case k.is("("):
			depth++
		case k.is(")") && depth == 0:
			return append(parts, tokens[from:i]), tokens[i+1:]
		case k.is(")"):
			depth--
		case k.is(",") && depth == 0:
			parts = append(parts, tokens[from:i])
			from = i + 1
		}
	}
	return append(parts, tokens[from:]), nil
}
