package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"handoffd/engine/sanitize"
)

// nasty is text with everything that must not come out.
const nasty = "\x1b[2J\x1b]52;c;QQ==\a|\x07\u009b2J\x9b\xff\u202e\u2066\u200b\ufeff\U000e0041\u2028\r\nlevel=ERROR msg=forged\ttab \x7f \\x1b[31m"

type stringer string

func (s stringer) String() string { return string(s) }

type marshaler string

func (m marshaler) MarshalText() ([]byte, error) { return []byte(m), nil }

type valuer struct{ v slog.Value }

func (v valuer) LogValue() slog.Value { return v.v }

type panicker struct{}

func (panicker) String() string { panic(nasty) }

type nilStringer struct{ s string }

func (n *nilStringer) String() string { return n.s }

// variants are the three ways out.
var variants = map[string]Options{
	"json":  {Format: FormatJSON, Level: slog.LevelDebug},
	"text":  {Format: FormatText, Level: slog.LevelDebug},
	"color": {Format: FormatText, Color: true, Level: slog.LevelDebug},
}

// sgr is what tint itself writes.
var sgr = regexp.MustCompile("\x1b\\[(0|2|22|2;91|91|92|93)m")

// checkOutput fails unless out is n physical lines with nothing forbidden.
func checkOutput(t interface{ Errorf(string, ...any) }, variant, out string, n int) {
	if variant == "color" {
		out = sgr.ReplaceAllString(out, "")
	}
	if got := strings.Count(out, "\n"); got != n || !strings.HasSuffix(out, "\n") {
		t.Errorf("%s: %d physical lines for %d records: %q", variant, got, n, out)
	}
	if !utf8.ValidString(out) {
		t.Errorf("%s: invalid UTF-8: %q", variant, out)
	}
	for _, r := range out {
		if sanitize.Forbidden(r) || r == '\t' {
			t.Errorf("%s: %U in %q", variant, r, out)
			return
		}
	}
}

// logEverything logs s in every place that takes text and returns the number
// of records.
func logEverything(l *slog.Logger, s string) int {
	l.Info(s)
	l.Error("m", s, s, "err", errors.New(s), "wrapped", fmt.Errorf("a: %w", errors.New(s)))
	l.Warn("m", "stringer", stringer(s), "marshaler", marshaler(s), "bytes", []byte(s), "raw", json.RawMessage(s))
	l.Debug("m", "any", struct{ A, B string }{s, s}, "map", map[string]string{s: s}, "list", []string{s}, "nested", []any{s, []string{s}})
	l.Info("m", slog.Group(s, s, s, slog.Group("deep", "x", valuer{slog.StringValue(s)})))
	l.Info("m", "valuer", valuer{slog.GroupValue(slog.String(s, s))}, "pointer", &s, "panics", panicker{})
	l.With(s, s, "e", errors.New(s)).WithGroup(s).With("k", s).Info(s, "v", s)
	l.Info("m", []any{s}...) // a key without a value
	l.Info("m", "nil", nil, "nilptr", (*nilStringer)(nil), "level", slog.LevelWarn, "took", time.Second, "at", time.Unix(0, 0), "n", 1)
	return 9
}

func TestNothingUnsafeComesOut(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			n := logEverything(New(&out, o), nasty)
			checkOutput(t, name, out.String(), n)
		})
	}
}

func TestNothingUnsafeComesOutProperty(t *testing.T) {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		nasty, `\x1b`, `\\x1b[0m`, "\x1b", " ", "=", `"`, "\ufffd", `\`, "x1b", "\x00", "\xe4\xb8", "é",
	}))
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "s"), "")
		for name, o := range variants {
			var out bytes.Buffer
			n := logEverything(New(&out, o), s)
			checkOutput(t, name, out.String(), n)
		}
	})
}

func FuzzLog(f *testing.F) {
	f.Add(nasty)
	f.Add(`a \x1b[31m "q"`)
	f.Fuzz(func(t *testing.T, s string) {
		for name, o := range variants {
			var out bytes.Buffer
			n := logEverything(New(&out, o), s)
			checkOutput(t, name, out.String(), n)
		}
	})
}

func TestTextKeepsWhatFollows(t *testing.T) {
	var out bytes.Buffer
	New(&out, variants["text"]).Info("m", "k", "before \ufffd after", "z", "last")
	if s := out.String(); !strings.Contains(s, "after") || !strings.Contains(s, "z=last") {
		t.Errorf("text is cut: %q", s)
	}
}

func TestJSONIsParsable(t *testing.T) {
	var out bytes.Buffer
	New(&out, Options{Format: FormatJSON}).Info("hello", Session, "s-1", Turns, 3, "list", []string{"a", "b\x1b"})
	var rec struct {
		Msg, Session, Level string
		Turns               int
		List                []string
	}
	if err := json.Unmarshal(out.Bytes(), &rec); err != nil {
		t.Fatal(err)
	}
	if rec.Msg != "hello" || rec.Session != "s-1" || rec.Turns != 3 || rec.Level != "INFO" || rec.List[1] != `b\x1b` {
		t.Errorf("record %+v", rec)
	}
}

func TestFormatsAndLevels(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want string // of the first byte of the first line
	}{
		{"auto on no terminal", Options{}, "{"},
		{"unknown format", Options{Format: "xml"}, "{"},
		{"json", Options{Format: FormatJSON}, "{"},
		{"text", Options{Format: FormatText}, "N"}, // Nov, from tint's time
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			l := New(&out, tt.o)
			l.Debug("hidden")
			if out.Len() != 0 {
				t.Errorf("debug is logged: %q", out.String())
			}
			l.Info("m")
			isJSON := strings.HasPrefix(out.String(), "{")
			if isJSON != (tt.want == "{") {
				t.Errorf("output %q", out.String())
			}
		})
	}
	if IsTerminal(new(bytes.Buffer)) {
		t.Error("a buffer is a terminal")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(null) {
		t.Error("the null device is a terminal")
	}
}

func TestParseLevel(t *testing.T) {
	for s, want := range map[string]slog.Level{"": 0, "INFO": 0, "debug": -4, "warn": 4, "error": 8} {
		if got, err := ParseLevel(s); got != want || err != nil {
			t.Errorf("ParseLevel(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseLevel("loud"); err == nil {
		t.Error("loud is a level")
	}
}

func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := slog.New(RateLimit(NewHandler(&out, Options{Format: FormatJSON}), time.Minute))
		lines := func() int {
			n := strings.Count(out.String(), "\n")
			return n
		}
		for i := range 100 {
			l.Warn("cannot read", "path", i)
			l.With("k", 1).Warn("cannot read")
		}
		l.Error("cannot read") // another level is another line
		l.Warn("other")
		if lines() != 3 {
			t.Fatalf("%d lines, want 3: %s", lines(), out.String())
		}
		out.Reset()
		<-time.After(time.Minute)
		l.WithGroup("g").Warn("cannot read")
		if s := out.String(); !strings.Contains(s, `"suppressed":199`) {
			t.Errorf("no count in %s", s)
		}
		out.Reset()
		<-time.After(time.Minute)
		l.Warn("cannot read")
		if s := out.String(); s == "" || strings.Contains(s, Suppressed) {
			t.Errorf("count where nothing was left out: %q", s)
		}
	})
}

func TestRateLimitIsBounded(t *testing.T) {
	h := RateLimit(slog.DiscardHandler, time.Hour).(*limiter)
	l := slog.New(h)
	for i := range 10 * maxLines {
		l.Info(fmt.Sprint(i))
		h.lines.pass(line{0, fmt.Sprint(i)}, time.Now())
	}
	if n := len(h.lines.seen); n > maxLines {
		t.Errorf("%d lines remembered", n)
	}
	if RateLimit(h, 0) != slog.Handler(h) {
		t.Error("no interval still limits")
	}
}

func TestOpenFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	New(f, Options{Format: FormatText}).Info("new")
	f.Close()
	data, _ := os.ReadFile(path)
	info, _ := os.Stat(path)
	if !strings.HasPrefix(string(data), "old\n") || !strings.Contains(string(data), "new") || info.Mode().Perm() != 0o600 {
		t.Errorf("%q with mode %v", data, info.Mode())
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	makeFIFO(t, fifo)
	for _, bad := range []string{link, fifo, dir, filepath.Join(dir, "none", "log")} {
		if f, err := OpenFile(bad); err == nil {
			f.Close()
			t.Errorf("OpenFile(%s) succeeds", bad)
		}
	}
}
