package mutation

import (
	"strings"
	"unicode"
)

// token is a word or an operator of a shell command.
type token struct {
	text string
	op   bool
	// dynamic says that the word has a part that only the shell knows: a
	// variable or a substitution, which stands as "$" in the text.
	dynamic bool
	// quoted says that a part of it was quoted, so that it is no reserved
	// word.
	quoted bool
	// here is the text of a here-document, for the operators << and <<-.
	here string
}

// lexer splits a command as POSIX shells and bash do (POSIX.1-2024, Shell
// Command Language 2.2 and 2.3), without expanding anything.
type lexer struct {
	in     []rune
	at     int
	tokens []token
	nested []string // commands in substitutions
	waits  []int    // here-documents whose text comes after the line
}

// operators, the longest first.
var operators = []string{"<<-", "<<<", "&>>", "<<", ">>", ">|", ">&", "<&", "<>", "&>", "&&", "||", "|&", ";;", "<", ">", "|", "&", ";", "(", ")", "\n"}

func lex(command string) (tokens []token, nested []string) {
	l := &lexer{in: []rune(command)}
	for l.at < len(l.in) {
		l.next()
	}
	return l.tokens, l.nested
}

func (l *lexer) peek(s string) bool {
	r := []rune(s)
	if l.at+len(r) > len(l.in) {
		return false
	}
	return string(l.in[l.at:l.at+len(r)]) == s
}

func (l *lexer) next() {
	c := l.in[l.at]
	switch {
	case c == '\\' && l.at+1 < len(l.in) && l.in[l.at+1] == '\n':
		l.at += 2
		return
	case c != '\n' && unicode.IsSpace(c):
		l.at++
		return
	case c == '#':
		for l.at < len(l.in) && l.in[l.at] != '\n' {
			l.at++
		}
		return
	}
	for _, op := range operators {
		if !l.peek(op) {
			continue
		}
		l.at += len(op)
		l.tokens = append(l.tokens, token{text: op, op: true})
		switch op {
		case "<<", "<<-":
			l.waits = append(l.waits, len(l.tokens)-1)
		case "\n":
			l.hereDocuments()
		}
		return
	}
	l.word()
}

// hereDocuments takes the texts that were announced on the line before.
func (l *lexer) hereDocuments() {
	for _, i := range l.waits {
		if i+1 >= len(l.tokens) || l.tokens[i+1].op {
			continue
		}
		end, strip := l.tokens[i+1].text, l.tokens[i].text == "<<-"
		var body []string
		for l.at < len(l.in) {
			start := l.at
			for l.at < len(l.in) && l.in[l.at] != '\n' {
				l.at++
			}
			line := string(l.in[start:l.at])
			l.at = min(l.at+1, len(l.in))
			if strip {
				line = strings.TrimLeft(line, "\t")
			}
			if line == end {
				break
			}
			body = append(body, line)
		}
		l.tokens[i].here = strings.Join(body, "\n")
	}
	l.waits = nil
}

// word takes a word up to white space or an operator.
func (l *lexer) word() {
	var t token
	var b strings.Builder
	for l.at < len(l.in) {
		c := l.in[l.at]
		switch {
		case unicode.IsSpace(c) || strings.ContainsRune(";|&()<>", c):
			// A number before a redirection belongs to it.
			if text := b.String(); (c == '<' || c == '>') && !t.quoted && text != "" && strings.Trim(text, "0123456789") == "" {
				return
			}
			t.text = b.String()
			l.tokens = append(l.tokens, t)
			return
		case c == '\\':
			l.at++
			if l.at < len(l.in) {
				if l.in[l.at] != '\n' {
					b.WriteRune(l.in[l.at])
				}
				l.at++
			}
			t.quoted = true
		case c == '\'':
			l.at++
			l.single(&b)
			t.quoted = true
		case c == '"':
			l.at++
			l.double(&b, &t)
			t.quoted = true
		case c == '$' || c == '`':
			l.dollar(&b, &t)
		default:
			b.WriteRune(c)
			l.at++
		}
	}
	t.text = b.String()
	l.tokens = append(l.tokens, t)
}

func (l *lexer) single(b *strings.Builder) {
	for l.at < len(l.in) {
		c := l.in[l.at]
		l.at++
		if c == '\'' {
			return
		}
		b.WriteRune(c)
	}
}

func (l *lexer) double(b *strings.Builder, t *token) {
	for l.at < len(l.in) {
		switch c := l.in[l.at]; c {
		case '"':
			l.at++
			return
		case '\\':
			l.at++
			if l.at < len(l.in) {
				if n := l.in[l.at]; !strings.ContainsRune("\"\\$`\n", n) {
					b.WriteByte('\\')
				}
				if l.in[l.at] != '\n' {
					b.WriteRune(l.in[l.at])
				}
				l.at++
			}
		case '$', '`':
			l.dollar(b, t)
		default:
			b.WriteRune(c)
			l.at++
		}
	}
}

// dollar takes an expansion. What is executed in it is a command of its own.
func (l *lexer) dollar(b *strings.Builder, t *token) {
	switch {
	case l.in[l.at] == '`':
		l.at++
		start := l.at
		for l.at < len(l.in) && l.in[l.at] != '`' {
			if l.in[l.at] == '\\' {
				l.at++
			}
			l.at++
		}
		l.nested = append(l.nested, string(l.in[start:min(l.at, len(l.in))]))
		l.at = min(l.at+1, len(l.in))
	case l.peek("$("):
		l.at += 2
		start := l.at
		l.balanced('(', ')')
		l.nested = append(l.nested, string(l.in[start:max(start, l.at-1)]))
	case l.peek("${"):
		l.at += 2
		l.balanced('{', '}')
	case l.peek("$'"):
		l.at += 2
		l.single(b)
		t.quoted = true
		return
	default:
		l.at++
		for l.at < len(l.in) && (l.in[l.at] == '_' || unicode.IsLetter(l.in[l.at]) || unicode.IsDigit(l.in[l.at])) {
			l.at++
		}
	}
	b.WriteByte('$')
	t.dynamic = true
}

// balanced goes behind the bracket that closes the one before.
func (l *lexer) balanced(open, end rune) {
	depth := 1
	for l.at < len(l.in) && depth > 0 {
		switch c := l.in[l.at]; {
		case c == '\\':
			l.at++
		case c == '\'' && end == ')':
			l.at++
			for l.at < len(l.in) && l.in[l.at] != '\'' {
				l.at++
			}
		case c == open:
			depth++
		case c == end:
			depth--
		}
		l.at++
	}
	l.at = min(l.at, len(l.in))
}
