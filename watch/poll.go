package watch

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"
)

// DefaultPoll is how often Poll reads its roots, unless that takes long.
const DefaultPoll = 2 * time.Second

// pollShare bounds the cost: a pass that takes d is followed by a rest of at
// least pollShare times d.
const pollShare = 50

// Poll is a Source that walks its roots again and again and compares. The
// zero value is ready.
type Poll struct {
	// Interval is the rest between two passes; 0 is DefaultPoll. It grows
	// with the time that a pass takes, so that polling stays below 2 % of
	// one processor.
	Interval time.Duration

	status atomic.Pointer[[]RootStatus]
}

// Run implements Source.
func (p *Poll) Run(ctx context.Context, roots []Root, emit func(Event)) error {
	pollers := make([]*poller, 0, len(roots))
	for _, r := range roots {
		pollers = append(pollers, &poller{root: r})
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		start := time.Now()
		list := make([]RootStatus, 0, len(pollers))
		for _, l := range pollers {
			list = append(list, l.pass(ctx, emit))
		}
		p.status.Store(&list)
		timer.Reset(rest(p.Interval, time.Since(start)))
	}
}

// Status implements Source.
func (p *Poll) Status() []RootStatus { return copyStatus(p.status.Load()) }

// rest returns how long to wait after a pass that took d.
func rest(interval, d time.Duration) time.Duration {
	if interval <= 0 {
		interval = DefaultPoll
	}
	return max(interval, pollShare*d)
}

// stamp is what a pass remembers of a file.
type stamp struct {
	size    int64
	mtime   int64 // nanoseconds since 1970
	ino     uint64
	mode    fs.FileMode
	current bool // seen in the pass under way
}

// poller compares passes over one root. It belongs to one goroutine.
type poller struct {
	root   Root
	seen   map[string]stamp
	primed bool   // the root was there at the last pass
	real   string // where it was
}

// pass walks the root once and reports what differs from the pass before: one
// Rescan the first time, then files that are new, changed or gone.
func (p *poller) pass(ctx context.Context, emit func(Event)) RootStatus {
	if p.seen == nil {
		p.seen = map[string]stamp{}
	}
	sum, err := Walk(ctx, p.root, func(path string, info fs.FileInfo) {
		now := stamp{info.Size(), info.ModTime().UnixNano(), inode(info), info.Mode(), true}
		before, known := p.seen[path]
		p.seen[path] = now
		// A file seen before in this very pass (two names for one directory
		// cannot be, but a rename under way can) is not news.
		before.current = true
		if p.primed && (!known || before != now) {
			emit(Event{Root: p.root.Path, Path: path})
		}
	})
	if ctx.Err() != nil {
		return p.result(sum, ctx.Err())
	}
	if err != nil {
		if p.primed {
			emit(Event{Root: p.root.Path, Path: p.real, Rescan: true})
		}
		p.primed, p.seen = false, nil
		return p.result(sum, err)
	}
	moved := p.primed && p.real != sum.Real
	for path, s := range p.seen {
		if !s.current {
			delete(p.seen, path)
			if p.primed {
				emit(Event{Root: p.root.Path, Path: path})
			}
			continue
		}
		s.current = false
		p.seen[path] = s
	}
	if !p.primed || moved {
		emit(Event{Root: p.root.Path, Path: sum.Real, Rescan: true})
	}
	p.primed, p.real = true, sum.Real
	return p.result(sum, nil)
}

func (p *poller) result(sum Summary, err error) RootStatus {
	s := RootStatus{Root: p.root.Path, Mode: ModePolling, Dirs: sum.Dirs, Truncated: sum.Truncated}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.Mode = ModeMissing
	case err != nil:
		s.Mode, s.Err = ModeMissing, err.Error()
	case sum.Truncated:
		s.Err = truncatedText(withLimits(p.root))
	}
	return s
}
