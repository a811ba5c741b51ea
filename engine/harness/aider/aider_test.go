package aider

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, History{}, harnesstest.Samples(t, "*.md")...)
}

func TestGolden(t *testing.T) { harnesstest.Golden(t, History{}, harnesstest.Samples(t, "*.md")...) }

func TestReal(t *testing.T) {
	harnesstest.Real(t, History{}, harnesstest.Fixtures(t, "aider", ".md")...)
}

func FuzzDecode(f *testing.F) { harnesstest.Fuzz(f, History{}, harnesstest.Samples(f, "*.md")...) }

func BenchmarkSynthetic(b *testing.B) {
	harnesstest.Bench(b, History{}, bytes.Repeat(harnesstest.Samples(b, "spaced.md")[0].Data, 200))
}
