package render

import (
	"strings"
	"testing"

	"handoffd/engine/turn"
)

// BenchmarkAdd folds turns of the usual sizes: mostly tool output, and prose.
func BenchmarkAdd(b *testing.B) {
	prose := strings.Repeat("The parser keeps the order of nested lists, and each test passes now.\n", 30)
	for name, all := range map[string][]turn.Turn{
		"prose": {{Class: turn.Agent, Text: prose}, {Class: turn.User, Text: prose}},
		"mixed": append(small(), turn.Turn{Class: turn.Agent, Text: prose}, resulted("z", strings.Repeat(prose, 5))),
		"short": {{Class: turn.Agent, Text: prose[:400]}, {Class: turn.User, Text: prose[:400]}},
		"loops": {{Class: turn.Agent, Text: strings.Repeat("todo 1\ntodo 2\n", 10_000)}},
		"asks":  {{Class: turn.Agent, Text: strings.Repeat("?", 100_000)}, {Class: turn.Agent, Text: "？" + strings.Repeat(" a?b", 50_000)}},
		"huge":  {{Class: turn.Agent, Text: strings.Repeat(prose, 500)}},
	} {
		b.Run(name, func(b *testing.B) {
			size := 0
			for _, t := range all {
				size += len(t.Text)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			d := &Digest{}
			for b.Loop() {
				for i := range all {
					d.Add(&all[i])
				}
			}
		})
	}
}

func full() Input {
	in := inputOf(small())
	for range 200 {
		for _, t := range small() {
			in.D.Add(&t)
		}
	}
	return in
}

func BenchmarkBrief(b *testing.B) {
	in := full()
	in.MaxTokens = 30000
	b.ReportAllocs()
	for b.Loop() {
		Brief(in)
	}
}

func BenchmarkSummary(b *testing.B) {
	in := full()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Summary(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	in := full()
	for b.Loop() {
		if _, err := in.D.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
