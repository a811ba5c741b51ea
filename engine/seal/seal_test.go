package seal_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/seal"
)

func TestCompact(t *testing.T) {
	for in, want := range map[string]string{
		`{ "b" : 1.0, "a":[1e21,1e-7,0.1,-0,100000000000000000000,1.50,12e2] }`: `{"b":1,"a":[1e+21,1e-7,0.1,0,100000000000000000000,1.5,1200]}`,
		`{"s":"\u00e9\u2028\/\u0001\b\"\\ <&>\u007f"}`:                          "{\"s\":\"é\u2028/\\u0001\\b\\\"\\\\ <&>\u007f\"}",
		`{"x":null,"sum":"gone","y":{"sum":"stays"},"z":[true,false,{}]}`:       `{"x":null,"y":{"sum":"stays"},"z":[true,false,{}]}`,
	} {
		got, _, err := seal.Compact([]byte(in), "sum")
		if err != nil || string(got) != want {
			t.Errorf("%s:\n got %s (%v)\nwant %s", in, got, err, want)
		}
	}
	for _, bad := range []string{``, `[]`, `null`, `{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`, `{} {}`, `{"sum":1}`, `{"a":1e999}`, "{\"a\":\"\xff\"}"} {
		if got, _, err := seal.Compact([]byte(bad), "sum"); err == nil {
			t.Errorf("%q accepted as %s", bad, got)
		}
	}
}

// TestJavaScript compares with JSON.stringify itself.
func TestJavaScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: JSON.stringify itself is not asked")
	}
	var docs []string
	gen := rapid.Custom(func(t *rapid.T) string {
		doc := map[string]any{
			"s": rapid.String().Draw(t, "s"), "f": rapid.Float64Range(-1e25, 1e25).Draw(t, "f"), "g": rapid.Float64Range(-1e-5, 1e-5).Draw(t, "g"),
			"i": rapid.Int32().Draw(t, "i"), "l": rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "l"),
		}
		raw, _ := json.Marshal(doc)
		return string(raw)
	})
	for i := range 300 {
		docs = append(docs, gen.Example(i))
	}
	cmd := exec.Command(node, "-e", `require('fs').readFileSync(0,'utf8').split('\n').filter(Boolean).forEach(l=>process.stdout.write(JSON.stringify(JSON.parse(l))+'\n'))`)
	cmd.Stdin = strings.NewReader(strings.Join(docs, "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
	if len(lines) != len(docs) {
		t.Fatalf("%d lines for %d documents", len(lines), len(docs))
	}
	for i, d := range docs {
		got, _, err := seal.Compact([]byte(d), "")
		if err != nil || !bytes.Equal(got, lines[i]) {
			t.Errorf("%s:\n got %s (%v)\n js %s", d, got, err, lines[i])
		}
	}
}

func TestHashContinues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		cut := rapid.IntRange(0, len(data)).Draw(t, "cut")
		h := seal.NewHash()
		_, _ = h.Write(data[:cut])
		restored, err := seal.RestoreHash(h.Save())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = restored.Write(data[cut:])
		if restored.Sum() != seal.Sum(data) {
			t.Fatal("a saved hash goes on wrongly")
		}
	})
	if _, err := seal.RestoreHash([]byte("not a state")); err == nil {
		t.Error("garbage is a state")
	}
}

func FuzzCompact(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",null],"sum":"s"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, _, err := seal.Compact(raw, "sum")
		if err != nil {
			if once != nil {
				t.Fatal("an error with a result")
			}
			return
		}
		twice, _, err := seal.Compact(once, "sum")
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not stable: %q %q %v", once, twice, err)
		}
	})
}
