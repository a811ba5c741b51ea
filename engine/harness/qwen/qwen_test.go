package qwen

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Tree{}, harnesstest.Samples(t, "*.jsonl")...)
}

func TestGolden(t *testing.T) { harnesstest.Golden(t, Tree{}, harnesstest.Samples(t, "*.jsonl")...) }

func FuzzDecode(f *testing.F) { harnesstest.Fuzz(f, Tree{}, harnesstest.Samples(f, "*.jsonl")...) }

func BenchmarkSynthetic(b *testing.B) {
	harnesstest.Bench(b, Tree{}, bytes.Repeat(harnesstest.Samples(b, "session.jsonl")[0].Data, 100))
}
