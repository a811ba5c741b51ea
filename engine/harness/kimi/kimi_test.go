package kimi

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Context{}, harnesstest.Samples(t, "*.jsonl")...)
	harnesstest.Run(t, Wire{}, harnesstest.Samples(t, "code/*.jsonl")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Context{}, harnesstest.Samples(t, "*.jsonl")...)
	harnesstest.Golden(t, Wire{}, harnesstest.Samples(t, "code/*.jsonl")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Context{}, harnesstest.Fixtures(t, "kimi", "context.jsonl")...)
}

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Context{}, harnesstest.Samples(f, "*.jsonl")...)
}

func FuzzWire(f *testing.F) { harnesstest.Fuzz(f, Wire{}, harnesstest.Samples(f, "code/*.jsonl")...) }

func BenchmarkSynthetic(b *testing.B) {
	harnesstest.Bench(b, Context{}, bytes.Repeat(harnesstest.Samples(b, "context.jsonl")[0].Data, 100))
}
