package harnesstest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoffd/engine/harness"
)

var update = flag.Bool("update", false, "write the golden files")

// Samples reads the samples in testdata whose names match pattern.
func Samples(t testing.TB, pattern string) []Sample {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no samples match %s: %v", pattern, err)
	}
	var list []Sample
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, Sample{Name: filepath.Base(name), Data: data, Path: name})
	}
	return list
}

// Golden compares the turns of samples with the files beside them that end in
// ".golden".
func Golden(t *testing.T, f harness.Format, samples ...Sample) {
	t.Helper()
	for _, s := range samples {
		t.Run(s.Name, func(t *testing.T) {
			r := Read(f, harness.Env{}, s)
			var b strings.Builder
			for _, got := range r.All() {
				b.WriteString(Line(got) + "\n")
			}
			fmt.Fprintf(&b, "meta %s\n", show(r.End))
			for _, unknown := range r.Unknown {
				fmt.Fprintf(&b, "unknown %s\n", unknown)
			}
			name := s.Path + ".golden"
			if *update {
				if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != string(want) {
				t.Errorf("%s differs; got\n%s", name, got)
			}
		})
	}
}
