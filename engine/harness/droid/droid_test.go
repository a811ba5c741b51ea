package droid

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Log{}, harnesstest.Samples(t, "*.jsonl")...)
}

func TestGolden(t *testing.T) { harnesstest.Golden(t, Log{}, harnesstest.Samples(t, "*.jsonl")...) }

func TestReal(t *testing.T) {
	harnesstest.Real(t, Log{}, harnesstest.Fixtures(t, "factory-droid", ".jsonl")...)
}

func FuzzDecode(f *testing.F) { harnesstest.Fuzz(f, Log{}, harnesstest.Samples(f, "*.jsonl")...) }

func BenchmarkSynthetic(b *testing.B) {
	harnesstest.Bench(b, Log{}, bytes.Repeat(harnesstest.Samples(b, "session.jsonl")[0].Data, 200))
}
