package cursor

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, Lines{}, harnesstest.Samples(t, "*.jsonl")...)
	harnesstest.Run(t, Text{}, harnesstest.Samples(t, "*.txt")...)
}

func TestGolden(t *testing.T) {
	harnesstest.Golden(t, Lines{}, harnesstest.Samples(t, "*.jsonl")...)
	harnesstest.Golden(t, Text{}, harnesstest.Samples(t, "*.txt")...)
}

func TestReal(t *testing.T) {
	harnesstest.Real(t, Lines{}, harnesstest.Fixtures(t, "cursor", ".jsonl")...)
}

func FuzzDecode(f *testing.F) {
	harnesstest.Fuzz(f, Lines{}, harnesstest.Samples(f, "*.jsonl")...)
}

func FuzzText(f *testing.F) {
	harnesstest.Fuzz(f, Text{}, harnesstest.Samples(f, "*.txt")...)
}

func FuzzPrompt(f *testing.F) {
	f.Add("<timestamp>Sunday, Jul 26, 2026, 1:06 PM (UTC+3)</timestamp>\n<user_query>a</user_query>")
	f.Add("<attached_files>x</attached_files>\nwords <user_info>")
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := prompt(text)
		n := 0
		for _, s := range list {
			n += len(s.text)
		}
		if n > len(text) {
			t.Errorf("%d bytes of %d", n, len(text))
		}
	})
}

func BenchmarkSynthetic(b *testing.B) {
	harnesstest.Bench(b, Lines{}, bytes.Repeat(harnesstest.Samples(b, "plain.jsonl")[0].Data, 200))
}
