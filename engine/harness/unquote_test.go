package harness

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzUnquote compares the fast path with the library.
func FuzzUnquote(f *testing.F) {
	for _, s := range []string{
		`""`, `"a"`, `"a\nb\t\"\\\/\b\f\r"`, `"\u0041\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\u12"`, `"\x"`,
		`"\"`, `"`, "\"\xff\"", "\"é\"", `"` + strings.Repeat("x", 40) + `\n` + strings.Repeat("y", 40) + `"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, quoted []byte) {
		if n, _ := valueLen(quoted); n != len(quoted) || n == 0 || quoted[0] != '"' {
			return
		}
		want, _ := jsontext.AppendUnquote(nil, quoted)
		if got := Unquote(quoted); got != string(want) {
			t.Errorf("Unquote(%s) = %q, want %q", quoted, got, want)
		}
	})
}
