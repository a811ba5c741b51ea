package harnesstest

import (
	"io"
	"testing"

	"bytes"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Fuzz checks that no bytes break a format: they are read without panic, the
// turns are sound, and a cut changes nothing.
func Fuzz(f *testing.F, format harness.Format, seeds ...Sample) {
	for _, s := range seeds {
		f.Add(s.Data, uint16(len(s.Data)/2))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		if format.Traits().Container.Whole() {
			r, err := read(reading{format: format}, Sample{Data: data})
			if err == nil {
				Check(t, format, r)
			}
			return
		}
		const limit = 4 << 10
		whole, err := read(reading{format: format, lineBytes: limit}, Sample{Data: data})
		if err != nil {
			t.Fatal(err)
		}
		Check(t, format, whole)
		compare(t, whole, reading{format: format, lineBytes: limit, cuts: []int{min(int(at), len(data))}}, Sample{Data: data})
	})
}

// Bench measures reading data through the shared loop.
func Bench(b *testing.B, f harness.Format, data []byte) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var meta session.Meta
		follower := &harness.Follower{Format: f}
		if err := follower.Pass(bytes.NewReader(data), harness.Cursor{}, &meta, discard{}); err != nil && err != io.EOF {
			b.Fatal(err)
		}
	}
}

// discard implements harness.Handler.
type discard struct{}

func (discard) Unit(*harness.Out, harness.Position) error        { return nil }
func (discard) Reject(harness.Fragment) error                    { return nil }
func (discard) Settled(cur harness.Cursor, _ *harness.Out) error { return nil }
