package copilot

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Events{}, harnesstest.Samples(t, "*.jsonl")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Events{}, harnesstest.Samples(t, "*.jsonl")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Events{}, harnesstest.Fixtures(t, "copilot-cli", ".jsonl")...)
}

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Events{}, harnesstest.Samples(f, "*.jsonl")...)
}

func BenchmarkSynthetic(b *testing.B) {
	harnesstest.Bench(b, Events{}, bytes.Repeat(harnesstest.Samples(b, "session.jsonl")[0].Data, 100))
}
