package text

import (
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Format{}, harnesstest.Samples(t, "*.txt")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Format{}, harnesstest.Samples(t, "*.txt")...)
}

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Format{}, harnesstest.Samples(f, "*.txt")...)
}
