// Package event remembers the last things that happened and passes on what
// happens to those who follow. It never blocks whoever reports, and never
// keeps more than it was told to.
package event

import (
	"context"
	"iter"
	"sync"
	"time"

	"handoffd/daemon/control"
)

const (
	// kept is how many events a new follower is told of.
	kept = 256
	// backlog is how many events a follower may be behind; one who is further
	// behind is let go, and asks again from what is kept.
	backlog = 1024
)

// Ring is a log of events in memory. The zero value is ready.
type Ring struct {
	mu        sync.Mutex // guards what follows
	seq       uint64
	list      []control.Event // the last ones, oldest first
	followers map[*follower]bool
}

type follower struct{ events chan control.Event }

// Add numbers, dates and remembers an event, and passes it on.
func (r *Ring) Add(e control.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	e.Seq = r.seq
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	if len(r.list) == kept {
		copy(r.list, r.list[1:])
		r.list = r.list[:kept-1]
	}
	r.list = append(r.list, e)
	for f := range r.followers {
		select {
		case f.events <- e:
		default:
			delete(r.followers, f)
			close(f.events)
		}
	}
}

// All yields what is remembered and, with follow, what happens then until ctx
// ends or the loop falls too far behind.
func (r *Ring) All(ctx context.Context, follow bool) iter.Seq[control.Event] {
	return func(yield func(control.Event) bool) {
		r.mu.Lock()
		past := append([]control.Event(nil), r.list...)
		f := &follower{make(chan control.Event, backlog)}
		if follow {
			if r.followers == nil {
				r.followers = map[*follower]bool{}
			}
			r.followers[f] = true
			defer r.leave(f)
		}
		r.mu.Unlock()
		for _, e := range past {
			if !yield(e) {
				return
			}
		}
		for follow {
			select {
			case e, ok := <-f.events:
				if !ok || !yield(e) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (r *Ring) leave(f *follower) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.followers, f)
}
