package event

import (
	"context"
	"testing"
	"testing/synctest"

	"handoffd/daemon/control"
)

func collect(r *Ring, follow bool, ctx context.Context) (seqs []uint64) {
	for e := range r.All(ctx, follow) {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

func TestRingKeepsTheLast(t *testing.T) {
	var r Ring
	for range kept + 10 {
		r.Add(control.Event{Type: control.EventCaptured})
	}
	got := collect(&r, false, context.Background())
	if len(got) != kept || got[0] != 11 || got[kept-1] != kept+10 {
		t.Errorf("%d events from %d to %d", len(got), got[0], got[len(got)-1])
	}
}

func TestFollowersSeeWhatHappensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Ring
		r.Add(control.Event{})
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan []uint64, 1)
		go func() { got <- collect(&r, true, ctx) }()
		synctest.Wait()
		r.Add(control.Event{})
		r.Add(control.Event{})
		synctest.Wait()
		cancel()
		if seqs := <-got; len(seqs) != 3 || seqs[0] != 1 || seqs[2] != 3 {
			t.Errorf("followed %v", seqs)
		}
		if len(r.followers) != 0 {
			t.Error("a follower that left is still told")
		}
	})
}

func TestSlowFollowerIsLetGo(t *testing.T) {
	var r Ring
	r.Add(control.Event{})
	n := 0
	for range r.All(t.Context(), true) {
		if n++; n == 1 {
			for range backlog + 2 {
				r.Add(control.Event{})
			}
		}
	}
	if n != 1+backlog {
		t.Errorf("saw %d events, want what was remembered and %d of the backlog", n, backlog)
	}
}
