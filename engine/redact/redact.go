// Package redact takes credentials out of text that leaves the machine or is
// shown to another agent. Each is replaced by a note of its kind, so that a
// reader knows that something stood there. It is pure, and never reads
// anything; what is stored verbatim is none of its business.
package redact

import (
	"math"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

const (
	markStart = "[adlc: redacted "
	markEnd   = "]"
)

// note is what stands in place of a credential. The form is that of the
// context-handoff tool, whose captures ours are exchanged with.
func note(kind string) string { return markStart + kind + markEnd }

// shape is a credential that is known by how it looks.
type shape struct {
	kind string
	re   *regexp.Regexp
	with string // replacement, "" for the note alone
}

// begin and end are the lines around a private key, with room for the words
// that tell its kind.
const (
	begin = `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`
	end   = `-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`
	// body is a key whose end is missing: as far as it looks like one, with
	// line ends as they are or as they stand in JSON.
	body = `(?:(?:\\[rn]|\s)*(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]*|[A-Za-z0-9+/=]{8,}))*`
)

var shapes = sync.OnceValue(func() []shape {
	list := []struct{ kind, re, with string }{
		{"private key block", `(?s)` + begin + `.*?` + end, ""},
		{"private key block", begin + body, ""},
		{"JWT", `\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`, ""},
		{"AWS access key id", `\bAKIA[0-9A-Z]{16}`, ""},
		{"AWS temporary access key id", `\bASIA[0-9A-Z]{16}`, ""},
		{"GitHub fine-grained token", `\bgithub_pat_\w{20,}`, ""},
		{"GitHub token", `\bgh[pousr]_[A-Za-z0-9]{20,}`, ""},
		{"GitLab token", `\bglpat-[\w-]{20,}`, ""},
		{"API key", `\bsk-(?:ant-|proj-)?[\w-]{20,}`, ""},
		{"Slack token", `\bxox[abprs]-[A-Za-z0-9-]{10,}`, ""},
		{"Google API key", `\bAIza[\w-]{35}`, ""},
		{"URL password", `(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@"'<>]*:)[^\s/@"'<>\[][^\s/@"'<>]*@`, "${1}" + note("URL password") + "@"},
		{"bearer token", `(?i)(\bBearer\s+)[A-Za-z0-9._~+/=-]{20,}`, "${1}" + note("bearer token")},
	}
	out := make([]shape, len(list))
	for i, s := range list {
		out[i] = shape{s.kind, regexp.MustCompile(s.re), s.with}
	}
	return out
})

// named is a credential that is known by the name before it: the name and the
// sign, then the value with its quotes. In JSON within JSON both are escaped.
var named = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)((?:api[_-]?key|secret|passwd|password|token|access[_-]?key|client[_-]?secret)\\*["']?\s*[:=]\s*)` +
		`(\\+"[^"\\\n]{8,}\\+"|"(?:[^"\\\n]|\\.){8,}"|'[^'\n]{8,}'|[^\s"'\\,;]{8,})`)
})

// Text returns s with every credential in it replaced. It is idempotent, and
// hexadecimal text of any length, which hashes are, stays.
func Text(s string) string {
	for _, k := range shapes() {
		with := k.with
		if with == "" {
			with = note(k.kind)
		}
		s = k.re.ReplaceAllString(s, with)
	}
	s = credentials(s)
	return entropic(s)
}

func credentials(s string) string {
	re := named()
	return re.ReplaceAllStringFunc(s, func(found string) string {
		parts := re.FindStringSubmatch(found)
		value := strings.TrimLeft(parts[2], `\"'`)
		if strings.HasPrefix(value, strings.TrimSuffix(markStart, " ")) {
			return found
		}
		quote := parts[2][:len(parts[2])-len(value)]
		return parts[1] + quote + note("credential") + quote
	})
}

const (
	entropyLength = 32  // characters
	entropyBits   = 4.0 // a character
)

// entropic replaces the words that look drawn by lot.
func entropic(s string) string {
	var b strings.Builder
	rest := s
	for rest != "" {
		i := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsSpace(r) })
		if i < 0 {
			break
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		n := strings.IndexFunc(rest, unicode.IsSpace)
		if n < 0 {
			n = len(rest)
		}
		word := rest[:n]
		rest = rest[n:]
		core := strings.TrimFunc(word, outer)
		if len(core) < entropyLength || !random(core) {
			b.WriteString(word)
			continue
		}
		at := strings.Index(word, core)
		b.WriteString(word[:at] + note("high-entropy token") + word[at+len(core):])
	}
	b.WriteString(rest)
	return b.String()
}

// outer is punctuation that surrounds a word.
func outer(r rune) bool { return strings.ContainsRune("\"'`.,;:!?()[]{}<>", r) }

func random(word string) bool {
	lower, mixed, hex := false, false, true
	count := map[rune]int{}
	n := 0
	for _, r := range word {
		count[r]++
		n++
		lower = lower || unicode.IsLower(r)
		mixed = mixed || unicode.IsUpper(r) || unicode.IsDigit(r)
		hex = hex && strings.ContainsRune("0123456789abcdefABCDEF", r)
	}
	if hex || !lower || !mixed || n < entropyLength {
		return false
	}
	bits := 0.0
	for _, c := range count {
		p := float64(c) / float64(n)
		bits -= p * math.Log2(p)
	}
	return bits >= entropyBits
}
