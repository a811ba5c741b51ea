// Package capture keeps the store up to date with the sources: it knows which
// files there are, which of them changed, and captures those through the
// engine when the schedule says so. Events are only hints to it; a sweep finds
// what they did not tell. It reads no configuration file and serves nobody.
package capture

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"handoffd/daemon/control"
	"handoffd/daemon/schedule"
	"handoffd/engine/fault"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
	"handoffd/watch"
)

// Config says what to capture and how.
type Config struct {
	Sources []Source
	Builder *pipeline.Builder
	// Watch reports changes; it is run once.
	Watch watch.Source
	// Quiet, MinFresh and Workers are the schedule's.
	Quiet, MinFresh time.Duration
	Workers         int
	// Sweep is the time between two looks at every file, before jitter.
	Sweep time.Duration
	Log   *slog.Logger
	// Emit is told what happened. It must not block.
	Emit func(control.Event)
}

// Capturer follows sources. Run it once; the other methods may be called from
// any goroutine, before, during and after.
type Capturer struct {
	conf    Config
	table   *Table
	sched   *schedule.Scheduler
	sweeper *sweeper
	rereads rereads
	bundles bundles
	folder  *folder
	tally   *tally
	// restored is closed when the store's manifests have been read.
	restored chan struct{}
	goesOn   bool // an earlier capturer read them
}

// New returns a capturer that goes on from what an earlier one, or nobody,
// has found.
func New(c Config, before *Capturer) *Capturer {
	r := &Capturer{conf: c, table: newTable(), tally: newTally(), restored: make(chan struct{})}
	if before != nil {
		r.table, r.tally = before.table, before.tally
		r.table.forgetPending()
		select {
		case <-before.restored:
			r.goesOn = true
		default:
		}
	}
	r.folder = newFolder(c.Builder, c.Log)
	r.sched = schedule.New(schedule.Config{
		Quiet: c.Quiet, MinFresh: c.MinFresh, Workers: c.Workers, Run: r.run,
		// Another process may hold a session for a moment.
		RetryMin: 500 * time.Millisecond,
	})
	r.sweeper = newSweeper(r)
	r.rereads.wake = make(chan struct{}, 1)
	return r
}

// Run captures until ctx ends, and returns when all it started has ended. The
// schedule goes on until Drain.
func (c *Capturer) Run(ctx context.Context) {
	var all sync.WaitGroup
	// The schedule outlives ctx: what it holds is drained, not dropped.
	all.Go(func() { _ = c.sched.Run(context.WithoutCancel(ctx)) })
	c.folder.kick() // what a crash left to be written
	all.Go(func() { c.folder.run(ctx) })
	all.Go(func() {
		if !c.goesOn {
			c.restore(ctx)
		}
		close(c.restored)
		c.sweeper.run(ctx)
	})
	all.Go(func() { c.rereads.run(ctx, c.reread) })
	all.Go(func() { _ = c.conf.Watch.Run(ctx, c.roots(), c.event) })
	all.Wait()
}

func (c *Capturer) roots() []watch.Root {
	list := make([]watch.Root, len(c.conf.Sources))
	for i, s := range c.conf.Sources {
		list[i] = s.Root
	}
	return list
}

// event takes a hint of the watcher.
func (c *Capturer) event(e watch.Event) {
	if e.Rescan {
		c.sweeper.ask(request{root: e.Root})
		return
	}
	source := owner(e.Path)
	if _, ok := many(source); ok {
		// A look at a bundle costs little; its sessions rest before they are
		// captured, and it need not as well.
		c.sched.Now(source)
		return
	}
	c.sched.Changed(source)
}

// Drain captures what changed and is not captured, then brings the index up to
// date. When ctx ends first it says what was left.
func (c *Capturer) Drain(ctx context.Context) error {
	c.sweeper.final(ctx)
	err := c.sched.Drain(ctx)
	if err == nil {
		// A run that was cut off can end before Drain sees that time is up.
		err = ctx.Err()
	}
	// The index is written whatever happened: it costs little, and the list
	// of changes is kept if it cannot be.
	if foldErr := c.folder.fold(context.WithoutCancel(ctx)); err == nil {
		err = foldErr
	}
	return err
}

// Poke makes sources due now, everything that changed if there are none, and
// with wait returns when their newest bytes are stored.
func (c *Capturer) Poke(ctx context.Context, paths []string, wait bool) error {
	if len(paths) == 0 {
		return c.pokeAll(ctx, wait)
	}
	for i, p := range paths {
		paths[i] = canonical(p)
		c.rereads.add(paths[i], time.Now())
	}
	paths, err := c.pokeBundles(paths)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if !c.sched.Now(p) {
			return schedule.ErrStopped
		}
	}
	if !wait {
		return nil
	}
	for _, p := range paths {
		if err := c.wait(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *Capturer) pokeAll(ctx context.Context, wait bool) error {
	done := make(chan swept, 1)
	c.sweeper.ask(request{now: true, all: true, done: done})
	if !wait {
		return nil
	}
	var found swept
	select {
	case found = <-done:
	case <-c.sweeper.ended:
		return schedule.ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	// What the sweep did not find to be new can be under way all the same.
	due := found.due
	for _, key := range c.sched.Open() {
		if _, payload := parsePayloadKey(key); !payload {
			if !c.sched.Hasten(key) {
				return schedule.ErrStopped
			}
			due = append(due, key)
		}
	}
	slices.Sort(due)
	failed, first := found.failed, found.err
	for _, p := range slices.Compact(due) {
		// One source that cannot be captured is no reason not to wait for the
		// others. One that is passed over is no failure here: nobody named it.
		err := c.sched.Wait(ctx, p)
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, schedule.ErrStopped):
			return err
		default:
			failed = append(failed, control.Failed{Key: KeyText(p), Err: err.Error(), Attempts: 1})
			if first == nil {
				first = err
			}
		}
	}
	if first == nil {
		return nil
	}
	return control.NotCaptured(fault.New(fault.Internal, "%d source(s) cannot be captured: %s: %w", len(failed), failed[0].Key, first), failed)
}

// wait returns when what is marked for a source is captured, with the reason
// why it was passed over, if it was.
func (c *Capturer) wait(ctx context.Context, path string) error {
	if err := c.sched.Wait(ctx, path); err != nil {
		return err
	}
	return c.table.verdict(path)
}

// Origin finds the source of the session with the given id among the files
// that were seen, for pipeline.Options.
func (c *Capturer) Origin(id string) (path string, ok bool) { return c.table.named(id) }

// Built takes over what a verb built by itself.
func (c *Capturer) Built(path string, r *pipeline.Result) {
	c.note(canonical(path), r)
}

// Moved makes the index follow a session that a verb moved.
func (c *Capturer) Moved(store.Location) { c.folder.kick() }

// Stats are the present figures.
func (c *Capturer) Stats() Stats {
	q := c.sched.Stats()
	s := Stats{Queue: q, Failures: c.sched.Failures(maxFailures), Watch: c.conf.Watch.Status()}
	s.Behind = max(0, q.Queued-c.tally.payloads())
	s.Live = c.table.changedSince(time.Now().Add(-liveFor))
	s.Initial, s.Done, s.Todo = c.table.progress()
	s.Sweep = c.sweeper.report()
	s.FoldErr = c.folder.failure()
	c.tally.fill(&s)
	return s
}

const (
	// liveFor is how long after its last change a source counts as live.
	liveFor = 10 * time.Minute
	// maxFailures bounds how many failing sources are told of.
	maxFailures = 20
)

// Stats is a snapshot for status and metrics.
type Stats struct {
	Queue    schedule.Stats
	Failures []schedule.Failure
	Watch    []watch.RootStatus
	Behind   int
	Live     int
	// Initial says that the first scan is not worked off yet: Done of Todo.
	Initial    bool
	Done, Todo int
	Sweep      Sweep
	FoldErr    error
	Captures   control.Captures
	// Quarantined and Unknown are summed over the sessions.
	Quarantined, Unknown int
}

// Sweep says how the last look at every file went.
type Sweep struct {
	Files      int
	At         time.Time
	Took       time.Duration
	Unreadable int
	// Errs are roots that could not be walked.
	Errs map[string]error
}

// counter is shared by the goroutines of the workers.
type counter = atomic.Int64
