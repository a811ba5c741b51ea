package cline

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Cline, harnesstest.Samples(t, "*.json")...)
	harnesstest.Run(t, Roo, harnesstest.Samples(t, "roo/*.json")...)
	harnesstest.Run(t, Kilo, harnesstest.Samples(t, "kilo/*.json")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Cline, harnesstest.Samples(t, "*.json")...)
	harnesstest.Golden(t, Roo, harnesstest.Samples(t, "roo/*.json")...)
	harnesstest.Golden(t, Kilo, harnesstest.Samples(t, "kilo/*.json")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Cline, harnesstest.Fixtures(t, "cline", ".json")...)
}

func FuzzDecode(f *testing.F) { harnesstest.Fuzz(f, Cline, harnesstest.Samples(f, "*.json")...) }

func BenchmarkSynthetic(b *testing.B) {
	data := harnesstest.Samples(b, "messages.json")[0].Data
	body := bytes.TrimSuffix(bytes.TrimSpace(data), []byte("]"))
	many := bytes.Repeat(append(bytes.Clone(body[1:]), ','), 100)
	harnesstest.Bench(b, Cline, append(append([]byte("["), bytes.TrimSuffix(many, []byte(","))...), ']'))
}
