package harnesstest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/turn"
)

// damage checks that what is broken around the records of a JSONL source
// costs only itself.
func damage(t *testing.T, f harness.Format, s Sample, whole Result) {
	lines := units(f, s.Data)
	sound := join(lines)
	base := must(t, f, sound, s.Path)
	if d := sameResult(base, whole); d != "" {
		t.Fatalf("normalised: %s", d)
	}
	same := func(name string, data []byte) Result {
		t.Helper()
		got := must(t, f, data, s.Path)
		if d := sameResult(got, base); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		return got
	}

	same("BOM", slices.Concat([]byte("\ufeff"), sound))
	same("CRLF", bytes.ReplaceAll(sound, []byte("\n"), []byte("\r\n")))
	same("blank lines", bytes.ReplaceAll(sound, []byte("\n"), []byte("\n\n \t\n")))
	same("no final newline", bytes.TrimSuffix(sound, []byte("\n")))

	for _, junk := range []string{"this is not JSON", `{"torn": "rec`, `[1,2,3]`, `42`, `"text"`, `null`, "}{", "\xff\xfe\x00x"} {
		for _, at := range places(len(lines)) {
			got := same(fmt.Sprintf("junk %q before line %d", junk, at), join(insert(lines, at, []byte(junk))))
			// A torn record at the very end may still grow.
			if len(got.Rejects) == 0 && !(strings.HasPrefix(junk, "{") && at == len(lines)) {
				t.Errorf("junk %q before line %d is not rejected", junk, at)
			}
		}
	}
	for _, at := range places(len(lines)) {
		got := same(fmt.Sprintf("NULs before line %d", at), join(insert(lines, at, make([]byte, 300))))
		if len(got.Rejects) != 1 || got.Rejects[0].Reason != harness.ReasonNUL {
			t.Errorf("NULs before line %d: rejects %s", at, show(got.Rejects))
		}
		if at < len(lines) {
			nul := slices.Clone(lines)
			nul[at] = slices.Concat(make([]byte, 17), nul[at])
			same(fmt.Sprintf("NULs at the start of line %d", at), join(nul))
		}
	}
	for i := range len(lines) - 1 {
		glued := slices.Clone(lines)
		glued[i] = slices.Concat(lines[i], lines[i+1])
		same(fmt.Sprintf("lines %d and %d glued", i, i+1), join(slices.Delete(glued, i+1, i+2)))
	}
	same("all glued", append(bytes.Join(lines, nil), '\n'))

	torn(t, f, s, lines)
	foreign(t, f, s, lines, base)
	overlong(t, f, s, lines, base)
	mangled(t, f, s, sound, base)
}

// torn checks that an unfinished last line takes nothing with it.
func torn(t *testing.T, f harness.Format, s Sample, lines [][]byte) {
	last := len(lines) - 1
	rest := join(lines[:last])
	want := must(t, f, rest, s.Path)
	for _, n := range []int{1, len(lines[last]) / 3, len(lines[last]) / 2, len(lines[last]) - 1} {
		got := must(t, f, slices.Concat(rest, lines[last][:n]), s.Path)
		if d := differ("torn end, decided", got.Decided, want.Decided); d != "" {
			t.Error(d)
		}
		if d := differ("torn end", got.All(), want.All()); d != "" {
			t.Errorf("last line cut at %d: %s", n, d)
		}
		if len(got.Rejects) > 0 {
			t.Errorf("an unfinished end is rejected: %s", show(got.Rejects))
		}
	}
}

// foreign checks records of a type nobody knows, and repeated members.
func foreign(t *testing.T, f harness.Format, s Sample, lines [][]byte, base Result) {
	for _, at := range places(len(lines)) {
		for _, unit := range []string{`{"type":"harnesstest-unknown","harnesstest":{"a":[1,{}]}}`, `{"harnesstest":true}`, `{}`} {
			got := must(t, f, join(insert(lines, at, []byte(unit))), s.Path)
			if d := differ("unknown type", got.All(), base.All()); d != "" {
				t.Errorf("%s before line %d: %s", unit, at, d)
			}
			if strings.Contains(unit, "unknown") && len(got.Unknown) <= len(base.Unknown) && !f.Traits().Unlabelled {
				t.Errorf("%s is not counted as unknown", unit)
			}
		}
		if at == len(lines) {
			continue
		}
		twice := slices.Clone(lines)
		twice[at] = slices.Concat([]byte(`{"harnesstest":1,"harnesstest":2,`), bytes.TrimPrefix(twice[at], []byte("{")))
		got := must(t, f, join(twice), s.Path)
		if d := differ("duplicate key", got.All(), base.All()); d != "" {
			t.Errorf("line %d: %s", at, d)
		}
		if got.Flagged <= base.Flagged {
			t.Errorf("a duplicate key in line %d is not flagged", at)
		}
	}
}

// overlong checks a line above the limit: skipped, rejected in full.
func overlong(t *testing.T, f harness.Format, s Sample, lines [][]byte, base Result) {
	limit := 0
	for _, line := range lines {
		limit = max(limit, len(line))
	}
	limit += 16
	long := []byte(`{"harnesstest":"` + strings.Repeat("x", 5*limit+300<<10) + `"}`)
	for _, at := range places(len(lines)) {
		data := join(insert(lines, at, long))
		start := len(join(lines[:at]))
		for _, cuts := range [][]int{nil, {start + limit + 8}, {start + 10, start + 2*limit, start + len(long), start + len(long) + 1}} {
			got, err := read(reading{format: f, lineBytes: limit, cuts: cuts}, Sample{Data: data, Path: s.Path})
			if err != nil {
				t.Fatal(err)
			}
			if d := sameResult(got, base); d != "" {
				t.Errorf("long line before line %d, cuts %v: %s", at, cuts, d)
			}
			want := []Reject{{int64(start), harness.ReasonLong, string(long)}}
			if !slices.Equal(got.Rejects, want) {
				t.Errorf("long line before line %d, cuts %v: %d rejects, not the line", at, cuts, len(got.Rejects))
			}
		}
	}
}

// mangled checks a byte that is not UTF-8 inside what was said.
func mangled(t *testing.T, f harness.Format, s Sample, sound []byte, base Result) {
	for i, said := range base.All() {
		if said.Class != turn.User && said.Class != turn.Agent || len(said.Text) < 4 || !plainText(said.Text) {
			continue
		}
		quoted := []byte(`"` + said.Text + `"`)
		bad := bytes.Clone(quoted)
		bad[len(bad)/2] = 0xff
		data := bytes.ReplaceAll(sound, quoted, bad)
		if bytes.Equal(data, sound) {
			continue
		}
		got := must(t, f, data, s.Path)
		Check(t, f, got)
		if len(got.All()) != len(base.All()) {
			t.Errorf("invalid UTF-8 in turn %d: %d turns, want %d", i, len(got.All()), len(base.All()))
			continue
		}
		if !strings.Contains(got.All()[i].Text, "\ufffd") {
			t.Errorf("invalid UTF-8 in turn %d: text %q", i, got.All()[i].Text)
		}
		if got.Flagged <= base.Flagged {
			t.Errorf("invalid UTF-8 in turn %d is not flagged", i)
		}
	}
}

// plainText reports whether s stands in JSON as it is.
func plainText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// places are the first, a middle and the last place among n lines.
func places(n int) []int { return slices.Compact([]int{0, n / 2, n}) }

func insert(lines [][]byte, at int, line []byte) [][]byte {
	return slices.Insert(slices.Clone(lines), at, line)
}

func join(lines [][]byte) []byte {
	if len(lines) == 0 {
		return nil
	}
	return append(bytes.Join(lines, []byte("\n")), '\n')
}

func must(t *testing.T, f harness.Format, data []byte, path string) Result {
	t.Helper()
	r, err := read(reading{format: f}, Sample{Data: data, Path: path})
	if err != nil {
		t.Fatalf("pass: %v", err)
	}
	return r
}

// sameResult compares what a reader sees.
func sameResult(got, want Result) string {
	if d := differ("turns", got.All(), want.All()); d != "" {
		return d
	}
	if got.End != want.End {
		return "meta:\n got " + show(got.End) + "\nwant " + show(want.End)
	}
	return ""
}
