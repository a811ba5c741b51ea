package harnesstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/turn"
)

// Cases reads the transcripts of a harness in the case collection beside the
// project and compares classes and texts; it skips where there is none. Only
// cases of one source are read, whatever their container.
func Cases(t *testing.T, name string, formats ...harness.Format) {
	t.Helper()
	root := filepath.Join(shared(t), "cases")
	data, err := os.ReadFile(filepath.Join(root, "cases.json"))
	if err != nil {
		t.Skip("no cases at hand")
	}
	var list []struct {
		Name, Harness  string
		Steps          [][2]string
		Build          string
		Turns          [][2]*string
		TurnsNonOther  [][2]*string `json:"turns_nonother"`
		TurnsBySession any          `json:"turns_by_session"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Harness != name || c.TurnsBySession != nil {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			var src string
			for _, step := range c.Steps {
				if step[1] == c.Build {
					src = filepath.Join(root, step[0])
				}
			}
			data, err := os.ReadFile(src)
			if err != nil {
				t.Skip(err)
			}
			want := c.Turns
			var got []turn.Turn
			for _, turn := range Read(pick(formats, data), harness.Env{}, Sample{Data: data, Path: c.Build}).All() {
				if c.TurnsNonOther == nil || turn.Class != "OTHER" {
					got = append(got, turn)
				}
			}
			if c.TurnsNonOther != nil {
				want = c.TurnsNonOther
			}
			for i, w := range want {
				if i >= len(got) || string(got[i].Class) != *w[0] || w[1] != nil && got[i].Text != *w[1] {
					t.Fatalf("turn %d differs from %s; got %d turns:\n%s", i, show(w), len(got), lines(got))
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d turns, want %d:\n%s", len(got), len(want), lines(got))
			}
		})
	}
}

// pick is the first format that recognises the head of data.
func pick(formats []harness.Format, data []byte) harness.Format {
	for _, f := range formats {
		if f.Traits().Container == harness.Document && f.Recognize(data) == harness.Certain {
			return f
		}
	}
	return formats[0]
}

func lines(turns []turn.Turn) string {
	var text string
	for _, t := range turns {
		text += Line(t) + "\n"
	}
	return text
}

// shared is the directory beside the project that holds real data.
func shared(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("not inside a module")
		}
		dir = up
	}
	return filepath.Join(dir, "..", "shared")
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
