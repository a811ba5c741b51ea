package harnesstest

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/turn"
)

// Fixtures reads the real transcripts of a harness with one of the endings
// from beside the project, and skips the test where there are none. They are
// strangers' data: read, never copied.
func Fixtures(t testing.TB, name string, ends ...string) []Sample {
	t.Helper()
	root := filepath.Join(shared(t), "fixtures", "transcripts", name)
	var list []Sample
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(p, end) }) {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		list = append(list, Sample{Name: rel, Data: data, Path: p})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Skipf("no transcripts of %s at hand", name)
	}
	return list
}

// Real reads real transcripts: the turns must be sound and the same however
// the file grew. It logs what was found.
func Real(t *testing.T, f harness.Format, samples ...Sample) {
	t.Helper()
	for _, s := range samples {
		t.Run(filepath.Base(s.Name), func(t *testing.T) {
			whole, err := read(reading{format: f}, s)
			if err != nil {
				t.Fatal(err)
			}
			Check(t, f, whole)
			var n turn.Counts
			for _, got := range whole.All() {
				n.Add(got.Class)
			}
			t.Logf("%d bytes: USER %d AGENT %d THOUGHT %d TOOL %d OTHER %d; provisional %d, rejected %d, flagged %d, unknown %q",
				len(s.Data), n.User, n.Agent, n.Thought, n.Tool, n.Other,
				len(whole.Provisional), len(whole.Rejects), whole.Flagged, unique(whole.Unknown))
			t.Logf("meta %s", show(whole.End))
			if f.Traits().Container.Whole() {
				return
			}
			random := rand.New(rand.NewPCG(1, uint64(len(s.Data))))
			for range 8 {
				list := []int{random.IntN(len(s.Data) + 1), random.IntN(len(s.Data) + 1), random.IntN(len(s.Data) + 1)}
				slices.Sort(list)
				compare(t, whole, reading{format: f, cuts: list, keep: random.IntN(2) == 0}, s)
			}
		})
	}
}

func unique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
