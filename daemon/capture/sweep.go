package capture

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"handoffd/daemon/control"
	"handoffd/daemon/logging"
	"handoffd/watch"
)

// request asks for a sweep.
type request struct {
	root string // of a source as given, "" for all
	now  bool   // what changed is due now
	// all makes due what changed before and is not captured yet, too.
	all bool
	// done is told what was made due, if it is not nil; it is buffered.
	done chan swept
}

// swept is what a sweep that was asked for came to.
type swept struct {
	due    []string
	failed []control.Failed // roots that could not be walked
	err    error            // of the first of them
}

// sweeper looks at every file now and then, and whenever a hint says that
// something below a root may have changed.
type sweeper struct {
	c    *Capturer
	wake chan struct{} // buffered by one
	// ended is closed when no more requests are answered.
	ended chan struct{}

	mu    sync.Mutex // guards what follows
	asked []request
	last  Sweep
}

func newSweeper(c *Capturer) *sweeper {
	return &sweeper{c: c, wake: make(chan struct{}, 1), ended: make(chan struct{}), last: Sweep{Errs: map[string]error{}}}
}

// ask never blocks. Requests that one sweep can answer are answered by one.
func (s *sweeper) ask(r request) {
	s.mu.Lock()
	if r.done != nil || !slices.ContainsFunc(s.asked, func(o request) bool {
		return o.done == nil && o.now == r.now && o.all == r.all && (o.root == r.root || o.root == "")
	}) {
		s.asked = append(s.asked, r)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

const (
	// clockEvery is how often the wall clock is compared with the other one.
	clockEvery = 5 * time.Second
	// clockJump is a difference that only a sleep, or someone who sets the
	// clock, makes.
	clockJump = 10 * time.Second
)

func (s *sweeper) run(ctx context.Context) {
	defer close(s.ended)
	s.sweep(ctx, request{})
	next := time.NewTimer(s.pause())
	defer next.Stop()
	clock := time.NewTicker(clockEvery)
	defer clock.Stop()
	before := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			for _, r := range s.take() {
				s.sweep(ctx, r)
			}
		case <-next.C:
			s.sweep(ctx, request{})
			next.Reset(s.pause())
		case now := <-clock.C:
			// Round strips the monotonic clock, which stands still while
			// the machine sleeps.
			wall, awake := now.Round(0).Sub(before.Round(0)), now.Sub(before)
			before = now
			if d := wall - awake; d > clockJump || d < -clockJump {
				s.c.conf.Log.Info("the clock jumped, looking at every file", logging.Took, d)
				s.sweep(ctx, request{})
			}
		}
	}
}

// pause is the time to the next sweep, spread so that machines, and roots on
// one server, do not sweep in step.
func (s *sweeper) pause() time.Duration {
	d := max(s.c.conf.Sweep, time.Second)
	return d*3/4 + rand.N(d/2)
}

func (s *sweeper) take() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// final is a sweep at the end, so that what was written a moment ago and not
// yet told of is captured too.
func (s *sweeper) final(ctx context.Context) { s.sweep(ctx, request{now: true}) }

// found is a file that changed.
type found struct {
	path  string
	mtime int64 // nanoseconds
	first bool
}

// sweep walks the roots and hands what changed to the schedule. What a first
// sweep of a root finds may be years of sessions: it goes behind everything
// else, newest first.
func (s *sweeper) sweep(ctx context.Context, r request) {
	began := time.Now()
	s.c.table.begin()
	s.mu.Lock()
	errs := maps.Clone(s.last.Errs)
	s.mu.Unlock()
	var changed []found
	files, unreadable := 0, 0
	for _, src := range s.c.conf.Sources {
		if r.root != "" && src.Root.Path != r.root {
			continue
		}
		list, sum, err := s.walk(ctx, src.Root)
		if ctx.Err() != nil {
			break
		}
		changed = append(changed, list...)
		files += sum.Files
		unreadable += sum.Unreadable
		delete(errs, src.Root.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs[src.Root.Path] = err
		}
	}
	if r.all {
		// A run that ends just now can have settled an older version of what
		// is new: then the table does not have it as pending.
		changed = append(changed, s.c.table.pending()...)
	}
	paths := s.schedule(changed, r.now)
	s.mu.Lock()
	s.last.Errs = errs
	if r.root == "" {
		s.last.Files, s.last.At, s.last.Took, s.last.Unreadable = files, began, time.Since(began), unreadable
	}
	s.mu.Unlock()
	s.c.conf.Log.Debug("swept", logging.Root, r.root, logging.Count, files, "changed", len(changed), logging.Took, time.Since(began))
	if r.done != nil && ctx.Err() == nil {
		out := swept{due: paths}
		for _, root := range slices.Sorted(maps.Keys(errs)) {
			out.failed = append(out.failed, control.Failed{Key: root, Err: errs[root].Error(), Attempts: 1})
			out.err = cmp.Or(out.err, errs[root])
		}
		r.done <- out
	}
}

func (s *sweeper) walk(ctx context.Context, root watch.Root) ([]found, watch.Summary, error) {
	var list []found
	first := s.c.table.firstSweep(root.Path)
	sum, err := watch.Walk(ctx, root, func(path string, info fs.FileInfo) {
		if owner(path) != path {
			return // its bundle is looked at with it
		}
		if !s.c.table.news(path, stampAt(path, info), first) {
			return
		}
		if b, ok := many(path); ok {
			if inside, err := s.c.unfold(path, b, first); err == nil {
				list = append(list, inside...)
				return
			}
			// The schedule tries again, and tells.
		}
		list = append(list, found{path, info.ModTime().UnixNano(), first})
	})
	if err == nil && !sum.Truncated && sum.Unreadable == 0 {
		// What is gone may come up under another name: the rest that every
		// change gets lets that be seen first.
		for _, path := range s.c.table.lose(sum.Real) {
			s.c.sched.Changed(path)
		}
	}
	return list, sum, err
}

func (s *sweeper) schedule(changed []found, atOnce bool) []string {
	slices.SortFunc(changed, func(a, b found) int { return cmp.Compare(b.mtime, a.mtime) })
	now := time.Now()
	paths := make([]string, 0, len(changed))
	for _, f := range changed {
		switch {
		case atOnce:
			s.c.sched.Now(f.path)
		case f.first:
			s.c.sched.Add(f.path, now)
		default:
			s.c.sched.Changed(f.path)
		}
		paths = append(paths, f.path)
	}
	return paths
}

func (s *sweeper) report() Sweep {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.last
	out.Errs = maps.Clone(s.last.Errs)
	return out
}
