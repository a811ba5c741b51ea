package safefile

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// PathText writes a path as valid UTF-8: bytes that are none stand as \xNN.
// Names are bytes, and what is stored and sent is text.
func PathText(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); {
		r, n := utf8.DecodeRuneInString(path[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, path[i])
		} else {
			b.WriteString(path[i : i+n])
		}
		i += n
	}
	return b.String()
}

var pathByte = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\x[0-9a-f]{2}`) })

// PathBytes returns the path that PathText wrote: text itself if there is such
// a file or it has no escapes.
func PathBytes(text string) string {
	if !strings.Contains(text, `\x`) {
		return text
	}
	if _, err := os.Lstat(text); err == nil {
		return text
	}
	return pathByte().ReplaceAllStringFunc(text, func(e string) string {
		var c byte
		if _, err := fmt.Sscanf(e[2:], "%02x", &c); err != nil {
			return e
		}
		return string([]byte{c})
	})
}
