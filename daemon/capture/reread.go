package capture

import (
	"context"
	"sync"
	"time"
)

// rereadAfter are the times after a poke at which a source is looked at again:
// a harness may say that a turn has ended before its last record is written.
var rereadAfter = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}

// maxRereads bounds the memory; the sweep finds what is dropped.
const maxRereads = 4096

// rereads are the looks still to come.
type rereads struct {
	wake chan struct{} // buffered by one

	mu   sync.Mutex // guards what follows
	list []reread   // few, in no order
}

type reread struct {
	path string
	at   time.Time
}

// add plans the looks after a poke at now. A later poke takes the place of an
// earlier one.
func (r *rereads) add(path string, now time.Time) {
	r.mu.Lock()
	kept := r.list[:0]
	for _, e := range r.list {
		if e.path != path {
			kept = append(kept, e)
		}
	}
	r.list = kept
	for _, d := range rereadAfter {
		if len(r.list) < maxRereads {
			r.list = append(r.list, reread{path, now.Add(d)})
		}
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// due takes what is due at now, and says how long the next has to wait.
func (r *rereads) due(now time.Time) (paths []string, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = time.Hour
	kept := r.list[:0]
	for _, e := range r.list {
		if !e.at.After(now) {
			paths = append(paths, e.path)
			continue
		}
		kept = append(kept, e)
		wait = min(wait, e.at.Sub(now))
	}
	r.list = kept
	return paths, wait
}

func (r *rereads) run(ctx context.Context, look func(path string)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		paths, wait := r.due(time.Now())
		for _, p := range paths {
			look(p)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
	}
}
