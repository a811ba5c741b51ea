package sanitize

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTerminalAndLine(t *testing.T) {
	tests := []struct {
		name, in, terminal, line string
	}{
		{"empty", "", "", ""},
		{"plain", "héllo, 世界 👍", "héllo, 世界 👍", "héllo, 世界 👍"},
		{"newline and tab", "a\n\tb", "a\n\tb", `a\n\tb`},
		{"carriage return", "ok\rfake", `ok\rfake`, `ok\rfake`},
		{"clear screen", "\x1b[2J", `\x1b[2J`, `\x1b[2J`},
		{"clipboard, BEL", "\x1b]52;c;QQ==\a", `\x1b]52;c;QQ==\x07`, `\x1b]52;c;QQ==\x07`},
		{"title, ST", "\x1b]0;x\x1b\\", `\x1b]0;x\x1b\`, `\x1b]0;x\x1b\`},
		{"NUL, BS, DEL", "\x00\b\x7f", `\x00\x08\x7f`, `\x00\x08\x7f`},
		{"C1 rune", "\u009b2J", `\x9b2J`, `\x9b2J`},
		{"C1 byte", "\x9b2J", `\x9b2J`, `\x9b2J`},
		{"invalid", "a\xffb", `a\xffb`, `a\xffb`},
		{"half rune", "a\xe4\xb8", `a\xe4\xb8`, `a\xe4\xb8`},
		{"surrogate", "\xed\xa0\x80", `\xed\xa0\x80`, `\xed\xa0\x80`},
		{"replacement rune is text", "\ufffd", "\ufffd", "\ufffd"},
		{"override", "a\u202eb", `a\u202eb`, `a\u202eb`},
		{"isolates", "\u2066\u2069", `\u2066\u2069`, `\u2066\u2069`},
		{"marks", "\u200e\u200f\u061c", `\u200e\u200f\u061c`, `\u200e\u200f\u061c`},
		{"zero width", "\u200b\u200c\u200d\u2060\ufeff", `\u200b\u200c\u200d\u2060\ufeff`, `\u200b\u200c\u200d\u2060\ufeff`},
		{"separators", "\u2028\u2029", `\u2028\u2029`, `\u2028\u2029`},
		{"tags", "\U000e0041\U000e007f", `\U000e0041\U000e007f`, `\U000e0041\U000e007f`},
		{"backslashes stay", `C:\x1b\n`, `C:\x1b\n`, `C:\x1b\n`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Terminal(tt.in); got != tt.terminal {
				t.Errorf("Terminal(%q) = %q, want %q", tt.in, got, tt.terminal)
			}
			if got := Line(tt.in); got != tt.line {
				t.Errorf("Line(%q) = %q, want %q", tt.in, got, tt.line)
			}
		})
	}
}

func TestCleanTextDoesNotAllocate(t *testing.T) {
	s := strings.Repeat("clean text, 世界\n", 100)
	line := strings.ReplaceAll(s, "\n", " ")
	if n := testing.AllocsPerRun(100, func() { Terminal(s); Line(line) }); n != 0 {
		t.Errorf("%v allocations for clean text, want 0", n)
	}
}

// checkShown fails if s holds anything that must never reach a terminal.
func checkShown(t interface{ Errorf(string, ...any) }, s string, multiline bool) {
	if !utf8.ValidString(s) {
		t.Errorf("invalid UTF-8 in %q", s)
	}
	for _, r := range s {
		if Forbidden(r) || !multiline && (r == '\n' || r == '\t') {
			t.Errorf("%U is shown raw in %q", r, s)
			return
		}
	}
}

// nasty draws strings that are dense in what has to be escaped.
func nasty() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 6), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{
			"\x1b[31m", `\x1b`, "\u009b", "\u202e", "\ufeff", "\U000e0020", "\r\n", "\t", "|", `\`, "``", "`",
			"<b>", "&lt;", "&", "_", "a_b", "[x](y)", "~~~~", "\ufffd", " ", "世",
		}),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 12), func(p []string) string { return strings.Join(p, "") })
}

func TestShownProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkAll(t, nasty().Draw(t, "s"), rapid.IntRange(-1, 40).Draw(t, "limit"))
	})
}

func FuzzSanitize(f *testing.F) {
	for _, s := range []string{"", "a\x1b[2J\xff\u202e", "| a_b `<x> \\ |", "\xe4\xb8", "&#x202e; [a](b)"} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) { checkAll(t, s, limit%200) })
}

func checkAll(t interface {
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, s string, limit int) {
	term, line := Terminal(s), Line(s)
	checkShown(t, term, true)
	checkShown(t, line, false)
	if again := Terminal(term); again != term {
		t.Errorf("Terminal is not idempotent: %q, then %q", term, again)
	}
	if again := Line(line); again != line {
		t.Errorf("Line is not idempotent: %q, then %q", line, again)
	}
	if len(line) > 10*len(s) {
		t.Errorf("%d bytes grew to %d", len(s), len(line))
	}

	open, end := Fence(s)
	if strings.Contains(s, end) || len(open) < 3 || strings.Trim(open, "`") != "" {
		t.Errorf("Fence(%q) = %q, %q", s, open, end)
	}

	cell := Cell(s, limit)
	checkShown(t, cell, false)
	if n := utf8.RuneCountInString(cell); n > max(limit, 0) {
		t.Errorf("Cell(%q, %d) has %d runes: %q", s, limit, n, cell)
	}
	checkInert(t, cell)
}

// checkInert fails if the cell holds a live markup character.
func checkInert(t interface{ Errorf(string, ...any) }, cell string) {
	for i := 0; i < len(cell); i++ {
		switch cell[i] {
		case '\\':
			i++
			if i == len(cell) {
				t.Errorf("cell ends in a live backslash: %q", cell)
			}
		case '|', '`', '*', '[', ']', '<', '>', '~':
			t.Errorf("live %q in cell %q", cell[i], cell)
		}
	}
}

func TestWriterEqualsTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := nasty().Draw(t, "s")
		var out bytes.Buffer
		w := Writer(&out)
		for rest := s; rest != ""; {
			n := rapid.IntRange(0, min(len(rest), 5)).Draw(t, "n")
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatalf("Write = %d, %v; want %d", got, err, n)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), Terminal(s); got != want {
			t.Fatalf("streamed %q as %q, want %q", s, got, want)
		}
	})
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriterKeepsItsError(t *testing.T) {
	w := Writer(brokenWriter{})
	if _, err := w.Write([]byte("x")); !errors.Is(err, errBroken) {
		t.Fatalf("Write: %v, want %v", err, errBroken)
	}
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Fatalf("Close: %v, want %v", err, errBroken)
	}
}

func TestFence(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "```"},
		{"a `b` c", "```"},
		{"```\nx\n```", "````"},
		{"~~~~~~", "```"},
		{"``````x`", "```````"},
	}
	for _, tt := range tests {
		if open, end := Fence(tt.in); open != tt.want || end != tt.want {
			t.Errorf("Fence(%q) = %q, %q, want %q", tt.in, open, end, tt.want)
		}
	}
}

func TestCell(t *testing.T) {
	tests := []struct {
		name  string
		in    string
		limit int
		want  string
	}{
		{"plain", "go test ./...", 40, "go test ./..."},
		{"newlines", "  a\r\n\n b\t", 40, "a b"},
		{"pipe and backslash", `a|b\c`, 40, `a\|b\\c`},
		{"code and html", "`x` <b>", 40, "\\`x\\` &lt;b&gt;"},
		{"link", "![a](b)", 40, `!\[a\](b)`},
		{"names", "snake_case _em_", 40, `snake_case \_em\_`},
		{"entity", "a && b &lt; &#1;", 40, "a && b &amp;lt; &amp;#1;"},
		{"control", "\x1b[2J", 40, `\\x1b\[2J`},
		{"fits exactly", "abcde", 5, "abcde"},
		{"cut", "abcdef", 5, "abcd…"},
		{"cut before an escape", "abc|d", 4, "abc…"},
		{"whole runes", "世界世界", 3, "世界…"},
		{"one rune", "ab", 1, "…"},
		{"none", "ab", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Cell(tt.in, tt.limit); got != tt.want {
				t.Errorf("Cell(%q, %d) = %q, want %q", tt.in, tt.limit, got, tt.want)
			}
		})
	}
}

func BenchmarkTerminalClean(b *testing.B) {
	s := strings.Repeat("clean text of a transcript, 世界\n", 1000)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Terminal(s)
	}
}
