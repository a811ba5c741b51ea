package harnesstest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"handoffd/engine/harness"
	"handoffd/engine/turn"
)

// exhaustive is the size below which a sample is cut at every byte.
const exhaustive = 4 << 10

// Run checks a format against samples that it reads without damage.
func Run(t *testing.T, f harness.Format, samples ...Sample) {
	t.Helper()
	t.Run("empty", func(t *testing.T) { empty(t, f) })
	for _, s := range samples {
		t.Run(s.Name, func(t *testing.T) {
			whole, err := read(reading{format: f}, s)
			if err != nil {
				t.Fatalf("pass: %v", err)
			}
			if len(whole.All()) == 0 {
				t.Fatal("the sample has no turns")
			}
			Check(t, f, whole)
			if _, bundle := f.(harness.Bundle); !bundle { // which its files tell
				t.Run("recognised", func(t *testing.T) { recognised(t, f, s) })
			}
			t.Run("errors", func(t *testing.T) { untouched(t, f, s) })
			if f.Traits().Container.Whole() {
				return // it is never read from where it was left
			}
			t.Run("cuts", func(t *testing.T) { everyCut(t, f, s) })
			t.Run("random cuts", func(t *testing.T) { randomCuts(t, f, s, whole) })
			if f.Traits().Container == harness.JSONL {
				t.Run("damage", func(t *testing.T) { damage(t, f, s, whole) })
			}
		})
	}
}

// Check checks what must hold of any turns.
func Check(t testing.TB, f harness.Format, r Result) {
	t.Helper()
	for i, got := range r.All() {
		if got.Text == "" {
			t.Errorf("turn %d (%s at %s) has no text", i, got.Class, got.TS)
		}
		switch got.Class {
		case turn.User, turn.Agent, turn.Thought, turn.ToolUse, turn.Other:
		default:
			t.Errorf("turn %d has class %q", i, got.Class)
		}
		if got.Tool != nil && got.Class != turn.ToolUse {
			t.Errorf("turn %d is %s and has a tool", i, got.Class)
		}
		if got.Tool != nil && got.Tool.Phase != turn.Call && got.Tool.Phase != turn.Result {
			t.Errorf("turn %d has tool phase %q", i, got.Tool.Phase)
		}
		if f.Traits().Identity == harness.BySource && got.ID != "" {
			t.Errorf("turn %d has an id in a format without", i)
		}
		if bad := invalid(reflect.ValueOf(got)); bad != "" {
			t.Errorf("turn %d is not UTF-8: %q", i, bad)
		}
	}
	if bad := invalid(reflect.ValueOf(r.End)); bad != "" {
		t.Errorf("meta is not UTF-8: %q", bad)
	}
}

// invalid returns a string inside v that is not valid UTF-8, or "".
func invalid(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return v.String()
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if bad := invalid(v.Field(i)); bad != "" {
				return bad
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if bad := invalid(v.Index(i)); bad != "" {
				return bad
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return invalid(v.Elem())
		}
	}
	return ""
}

// empty checks sources without a record.
func empty(t *testing.T, f harness.Format) {
	if f.Traits().Container == harness.Document {
		return
	}
	for _, data := range []string{"", "\n", "\n\n\r\n", "\ufeff", "\ufeff\n"} {
		r, err := read(reading{format: f}, Sample{Data: []byte(data)})
		if err != nil {
			t.Errorf("%q: %v", data, err)
		}
		if f.Traits().Container == harness.JSONL && (len(r.All()) > 0 || len(r.Rejects) > 0) {
			t.Errorf("%q gave %d turns, %d rejects", data, len(r.All()), len(r.Rejects))
		}
	}
}

// recognised checks that the format knows its own sample.
func recognised(t *testing.T, f harness.Format, s Sample) {
	best := harness.No
	if f.Traits().Container == harness.Document {
		best = f.Recognize(s.Data)
	} else {
		for line := range bytes.Lines(s.Data) {
			line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
			if len(line) > 0 {
				best = max(best, f.Recognize(line))
			}
		}
	}
	if best == harness.No && !f.Traits().Unlabelled {
		t.Error("no unit is recognised")
	}
	for _, junk := range []string{"", "{", "[]", "null", `"x"`, "{}", "\xff", `{"type":`, "plain text"} {
		if f.Recognize([]byte(junk)) == harness.Certain {
			t.Errorf("%q is recognised for certain", junk)
		}
		f.Record([]byte(junk))
	}
}

// untouched checks that a refused unit leaves Out and the state as they were.
func untouched(t *testing.T, f harness.Format, s Sample) {
	if f.Traits().Container == harness.Lines {
		return
	}
	dec, err := f.Decoder(nil, harness.Env{})
	if err != nil {
		t.Fatal(err)
	}
	var out harness.Out
	meta := Result{}.Meta
	out.Meta = &meta
	bad := []string{`{"type":`, `nonsense`, `{"a":1}}`, `[1,2]`, `"text"`, `17`, `null`, ``}
	lines := units(f, s.Data)
	for i, line := range lines {
		half := line[:len(line)/2]
		for _, unit := range append(bad, string(half)) {
			before, err := dec.State()
			if err != nil {
				t.Fatal(err)
			}
			was := Result{Meta: meta, Decided: append([]turn.Turn(nil), out.Turns...)}
			err = dec.Decode([]byte(unit), harness.Position{}, &out)
			if err == nil {
				t.Fatalf("%.60q decodes without error", unit)
			}
			after, stateErr := dec.State()
			if stateErr != nil {
				t.Fatal(stateErr)
			}
			if meta != was.Meta || out.Unknown != "" || out.Flagged || !sameTurns(out.Turns, was.Decided) {
				t.Fatalf("unit %d: Out changed with error %v", i, err)
			}
			if !bytes.Equal(before, after) {
				t.Fatalf("unit %d: state changed with error %v: %s", i, err, after)
			}
			if !json.Valid(after) {
				t.Fatalf("state is not JSON: %.200s", after)
			}
		}
		if err := dec.Decode(bytes.Clone(line), harness.Position{}, &out); err != nil {
			t.Fatalf("unit %d: %v", i, err)
		}
		out.Unknown, out.Flagged = "", false
	}
}

// units returns what a format's decoder is given of a sound source.
func units(f harness.Format, data []byte) [][]byte {
	if f.Traits().Container == harness.Document {
		return [][]byte{data}
	}
	var list [][]byte
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			list = append(list, line)
		}
	}
	return list
}

// Cuts reads the sample in two passes, cut here and there, and compares with
// one pass.
func Cuts(t *testing.T, f harness.Format, env harness.Env, s Sample) {
	t.Helper()
	cuts(t, f, env, s, max(5, len(s.Data)/160))
}

// everyCut is Cuts with a cut at every byte, unless the sample is large.
func everyCut(t *testing.T, f harness.Format, s Sample) {
	step := 1
	if len(s.Data) > exhaustive {
		step = len(s.Data)/160 + 1
	} else if testing.Short() {
		step = 13
	}
	cuts(t, f, harness.Env{}, s, step)
}

func cuts(t *testing.T, f harness.Format, env harness.Env, s Sample, step int) {
	t.Helper()
	whole := Read(f, env, s)
	for n := 0; n <= len(s.Data); n += step {
		for _, keep := range []bool{false, true} {
			if keep && n/step%4 != 0 {
				continue // what a restart keeps, a running daemon keeps too
			}
			got, err := read(reading{format: f, env: env, cuts: []int{n}, keep: keep}, s)
			if err != nil {
				t.Fatalf("cut at %d of %d: %v", n, len(s.Data), err)
			}
			if d := difference(got, whole); d != "" {
				t.Fatalf("cut at %d of %d, keep %v, before %.80q: %s", n, len(s.Data), keep, s.Data[n:], d)
			}
		}
	}
}

// randomCuts reads the sample in several passes.
func randomCuts(t *testing.T, f harness.Format, s Sample, whole Result) {
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOfN(rapid.IntRange(0, len(s.Data)), 1, 6).Draw(rt, "cuts")
		sortInts(list)
		compare(rt, whole, reading{
			format: f, cuts: list,
			keep:   rapid.Bool().Draw(rt, "keep"),
			byByte: len(s.Data) < exhaustive && rapid.Bool().Draw(rt, "byByte"),
		}, s)
	})
}

// failer is what comparing needs of a test.
type failer interface {
	Fatalf(format string, args ...any)
	Helper()
}

// compare reads a sample in some way and compares with the expected result.
func compare(t failer, want Result, how reading, s Sample) {
	t.Helper()
	got, err := read(how, s)
	if err != nil {
		t.Fatalf("pass: %v", err)
	}
	if d := difference(got, want); d != "" {
		t.Fatalf("%s", d)
	}
}

// difference says how two results differ, or "".
func difference(got, want Result) string {
	if d := differ("decided", got.Decided, want.Decided); d != "" {
		return d
	}
	if d := differ("provisional", got.Provisional, want.Provisional); d != "" {
		return d
	}
	if got.Meta != want.Meta {
		return strings.Join([]string{"meta:\n got", show(got.Meta), "\nwant", show(want.Meta)}, " ")
	}
	if got.End != want.End {
		return strings.Join([]string{"provisional meta:\n got", show(got.End), "\nwant", show(want.End)}, " ")
	}
	if !reflect.DeepEqual(got.Rejects, want.Rejects) {
		return strings.Join([]string{"rejects:\n got", show(got.Rejects), "\nwant", show(want.Rejects)}, " ")
	}
	if !reflect.DeepEqual(got.Unknown, want.Unknown) || got.Flagged != want.Flagged {
		return strings.Join([]string{"unknown:\n got", show(got.Unknown), "\nwant", show(want.Unknown)}, " ")
	}
	return ""
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
