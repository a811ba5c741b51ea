// Package capture is what a denied session leaves for the one that goes on
// with its work: a text made of what others wrote, redacted, bounded and
// fenced, and known by a hash. It is pure but for reading a capture back; it
// never takes what it quotes for an instruction, and reads no clock.
package capture

import (
	"errors"
	"io/fs"
	"strings"
	"unicode/utf8"

	"handoffd/engine/safefile"
	"handoffd/engine/seal"
)

// The bounds of the published tool (npm @adlc/context-handoff 1.11.1), in
// bytes, with the note that says that something was cut.
const (
	MaxBody      = 64 << 10
	MaxNarrative = 32 << 10
)

// cutNote ends what was cut.
const cutNote = "\n[adlc: truncated]"

// Clip returns s in at most limit bytes: whole, or its beginning up to a
// character with a note. Where not even the note fits, it is all there is.
func Clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	room := limit - len(cutNote)
	if room <= 0 {
		return cutNote
	}
	for room > 0 && !utf8.RuneStart(s[room]) {
		room--
	}
	return s[:room] + cutNote
}

// Canonical is the form that is hashed: lines end in LF and in nothing else
// that cannot be seen.
func Canonical(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t")
	}
	return strings.Join(lines, "\n")
}

// Hash is the SHA-256 of the canonical form in hex.
func Hash(s string) string { return seal.Sum([]byte(Canonical(s))) }

// Why a capture is not what a record says. Other reasons are of the file
// system.
const (
	Missing  = "missing"
	Oversize = "oversize"
	Mismatch = "content_hash mismatch"
	Unread   = "unreadable"
)

// Verify reads a capture back: its text only when it has the hash, else why
// not. A link in its place is not followed.
func Verify(path, hash string) (body, reason string) {
	// What an editor padded is still the same text, so more is read than may
	// be stored, and the canonical form is held to the bound.
	raw, err := safefile.ReadOwn(path, 4*MaxBody)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", Missing
	case errors.Is(err, safefile.ErrLarge):
		return "", Oversize
	case err != nil:
		return "", Unread
	}
	text := Canonical(string(raw))
	switch {
	case len(text) > MaxBody:
		return "", Oversize
	case hash == "" || seal.Sum([]byte(text)) != hash:
		return "", Mismatch
	}
	return string(raw), ""
}
