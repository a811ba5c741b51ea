package claude

import (
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Format{}, harnesstest.Samples(t, "*.jsonl")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Format{}, harnesstest.Samples(t, "*.jsonl")...)
}

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Format{}, harnesstest.Samples(f, "*.jsonl")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Format{}, harnesstest.Fixtures(t, "claude-code", ".jsonl")...)
}
