package canonical

import (
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	// Lines without a seq of their own are numbered by their place, which
	// inserted damage changes; these all have one.
	harnesstest.Run(t, Format{}, harnesstest.Samples(t, "numbered.jsonl")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Format{}, harnesstest.Samples(t, "*.jsonl")...)
}

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Format{}, harnesstest.Samples(f, "*.jsonl")...)
}
