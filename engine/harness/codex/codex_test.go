package codex

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Rollout{}, harnesstest.Samples(t, "*.jsonl")...)
	harnesstest.Run(t, Document{}, harnesstest.Samples(t, "*.json")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Rollout{}, harnesstest.Samples(t, "*.jsonl")...)
	harnesstest.Golden(t, Document{}, harnesstest.Samples(t, "*.json")...)
}

func TestCases(t *testing.T) { harnesstest.Cases(t, "codex", Rollout{}, Document{}) }

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Rollout{}, harnesstest.Samples(f, "*.jsonl")...)
}

func FuzzDocument(f *testing.F) {
	harnesstest.Fuzz(f, Document{}, harnesstest.Samples(f, "*.json")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Rollout{}, harnesstest.Fixtures(t, "codex", ".jsonl")...)
}

func BenchmarkSynthetic(b *testing.B) {
	var data []byte
	for _, s := range harnesstest.Samples(b, "*.jsonl") {
		data = append(data, s.Data...)
	}
	harnesstest.Bench(b, Rollout{}, bytes.Repeat(data, 100))
}

func BenchmarkReal(b *testing.B) {
	for _, s := range harnesstest.Fixtures(b, "codex", ".jsonl") {
		if len(s.Data) > 1<<20 {
			b.Run(s.Name[:8], func(b *testing.B) { harnesstest.Bench(b, Rollout{}, s.Data) })
		}
	}
}
