package gemini

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Log{}, harnesstest.Samples(t, "*.jsonl")...)
	harnesstest.Run(t, Document{}, harnesstest.Samples(t, "*.json")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Log{}, harnesstest.Samples(t, "*.jsonl")...)
	harnesstest.Golden(t, Document{}, harnesstest.Samples(t, "*.json")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Document{}, harnesstest.Fixtures(t, "gemini-cli", ".json")...)
}

func TestCases(t *testing.T) { harnesstest.Cases(t, "gemini-cli", Log{}, Document{}) }

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Log{}, harnesstest.Samples(f, "*.jsonl")...)
}

func FuzzDocument(f *testing.F) {
	harnesstest.Fuzz(f, Document{}, harnesstest.Samples(f, "*.json")...)
}

func BenchmarkSynthetic(b *testing.B) {
	harnesstest.Bench(b, Log{}, bytes.Repeat(harnesstest.Samples(b, "log.jsonl")[0].Data, 200))
}
