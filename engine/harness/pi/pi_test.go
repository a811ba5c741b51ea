package pi

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Tree{}, harnesstest.Samples(t, "*.jsonl")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Tree{}, harnesstest.Samples(t, "*.jsonl")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Tree{}, harnesstest.Fixtures(t, "pi", ".jsonl")...)
}

func TestCases(t *testing.T) { harnesstest.Cases(t, "pi", Tree{}) }

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Tree{}, harnesstest.Samples(f, "*.jsonl")...)
}

func BenchmarkSynthetic(b *testing.B) {
	harnesstest.Bench(b, Tree{}, bytes.Repeat(harnesstest.Samples(b, "tree.jsonl")[0].Data, 200))
}

func BenchmarkReal(b *testing.B) {
	for _, s := range harnesstest.Fixtures(b, "pi", ".jsonl") {
		b.Run(s.Name, func(b *testing.B) { harnesstest.Bench(b, Tree{}, s.Data) })
	}
}
