// Package schedule runs one function per key, soon after the key changed but
// not too often, on a bounded number of workers.
//
// A key that changed at t is due when it has been quiet for Quiet and its last
// run is MinFresh old, and never later than Quiet+MinFresh after the first
// change that no run covers. A poke is due at once. A change during a run
// leads to another run, so the last change is always covered by a run that
// starts after it. One key never runs twice at once. A failed run is tried
// again with growing waits.
//
// The package knows neither what a key means nor what a run does. It never
// drops a change before Run ends, and it starts no goroutine outside Run.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

// Config says what to run, and when.
type Config struct {
	// Quiet is how long a key must be without a change; 0 runs at once.
	Quiet time.Duration
	// MinFresh is the least time between the starts of two runs of a key that
	// changes; 0 sets no least time.
	MinFresh time.Duration
	// Workers is how many runs there may be at once; 0 is 1.
	Workers int
	// Run does the work for a key. Its context ends when Run's or Drain's
	// does. An error that has a method Permanent() bool which returns true is
	// not tried again until the key changes. A panic is such an error.
	Run func(ctx context.Context, key string) error
	// RetryMin and RetryMax bound the doubling wait after failures; 0 is 1 s
	// and 5 min.
	RetryMin, RetryMax time.Duration
	// Jitter returns a number in [0, 1) that spreads retries; nil is random.
	Jitter func() float64
	// Forget is how long an idle key is remembered; 0 is the longer of one
	// hour and twice MinFresh. Forgetting makes the next change due after
	// Quiet alone.
	Forget time.Duration
}

// Scheduler decides and runs. Its methods may be called from any goroutine,
// before, during and after Run; none of them but Wait and Drain blocks.
type Scheduler struct {
	conf Config
	wake chan struct{} // buffered by one: the machine has news

	mu      sync.Mutex // guards the rest
	m       *machine
	started bool
	hard    context.CancelFunc // ends the runs
	err     error              // of Run
	drained chan struct{}      // closed when Run has ended; err is set
}

// New returns a scheduler to be started once with Run. It panics if
// Config.Run is nil.
func New(c Config) *Scheduler {
	if c.Run == nil {
		panic("schedule: Config.Run is nil")
	}
	c.Workers = max(c.Workers, 1)
	c.Quiet, c.MinFresh = max(c.Quiet, 0), max(c.MinFresh, 0)
	if c.RetryMin <= 0 {
		c.RetryMin = time.Second
	}
	if c.RetryMax <= 0 {
		c.RetryMax = 5 * time.Minute
	}
	c.RetryMax = max(c.RetryMax, c.RetryMin)
	if c.Jitter == nil {
		c.Jitter = rand.Float64
	}
	if c.Forget <= 0 {
		c.Forget = time.Hour
	}
	c.Forget = max(c.Forget, 2*c.MinFresh)
	return &Scheduler{conf: c, wake: make(chan struct{}, 1), m: newMachine(c), drained: make(chan struct{})}
}

// Changed notes that key changed now. It returns false once Drain has begun
// or Run has ended.
func (s *Scheduler) Changed(key string) bool { return s.mark(key, changed, time.Time{}) }

// Now makes key due at once, whether it changed or not and whenever it last
// ran or failed, and lets it overtake changes that were due little before. It
// returns as Changed does.
func (s *Scheduler) Now(key string) bool { return s.mark(key, poked, time.Time{}) }

// Add enters key for a run at or after notBefore that yields to every poke
// and change. Among themselves such runs go in the order of their entry. It
// returns as Changed does.
func (s *Scheduler) Add(key string, notBefore time.Time) bool {
	return s.mark(key, background, notBefore)
}

// Hasten makes key due at once as Now does, unless nothing is pending for it:
// a run under way that covers every mark is not followed by another. It
// returns as Changed does.
func (s *Scheduler) Hasten(key string) bool {
	s.mu.Lock()
	ok := !s.m.closed
	if j := s.m.jobs[key]; ok && j != nil && j.pending() {
		s.m.mark(key, poked, time.Now(), time.Time{})
	}
	s.mu.Unlock()
	s.nudge()
	return ok
}

func (s *Scheduler) mark(key string, c class, notBefore time.Time) bool {
	s.mu.Lock()
	ok := s.m.mark(key, c, time.Now(), notBefore)
	s.mu.Unlock()
	s.nudge()
	return ok
}

func (s *Scheduler) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Wait returns when everything marked for key before the call has been
// covered by a run, with that run's error; at once if it already has been. It
// returns ErrStopped if that run will not come, and ctx.Err() if ctx ends.
// It makes nothing due.
func (s *Scheduler) Wait(ctx context.Context, key string) error {
	s.mu.Lock()
	w, err := s.m.wait(key)
	s.mu.Unlock()
	if w == nil {
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		s.mu.Lock()
		s.m.forsake(key, w)
		s.mu.Unlock()
		return ctx.Err()
	}
}

// Run works until ctx ends or Drain is done, and waits for the runs it
// started. It returns nil after a complete drain, else why not.
func (s *Scheduler) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.started {
		s.mu.Unlock()
		return errors.New("schedule: Run was called twice")
	}
	s.started, s.hard = true, cancel
	s.mu.Unlock()

	err := s.loop(ctx)

	s.mu.Lock()
	s.err = err
	s.m.stop(time.Now())
	s.mu.Unlock()
	close(s.drained)
	return err
}

// result is the end of a run.
type result struct {
	j     *job
	start time.Time
	err   error
}

// loop starts runs and takes their results. No other goroutine does.
func (s *Scheduler) loop(ctx context.Context) error {
	results := make(chan result, s.conf.Workers)
	timer := time.NewTimer(0)
	defer timer.Stop()
	sweep := time.Now().Add(s.conf.Forget)
	running := 0
	for {
		now := time.Now()
		s.mu.Lock()
		if !now.Before(sweep) {
			s.m.forget(now, s.conf.Forget)
			sweep = now.Add(s.conf.Forget)
		}
		for running < s.conf.Workers && ctx.Err() == nil {
			j := s.m.next(now)
			if j == nil {
				break
			}
			running++
			go func() { results <- result{j, now, s.call(ctx, j.key)} }()
		}
		next := sweep
		// With all workers busy what is due has to wait for a result.
		if due, ok := s.m.nextDue(); ok && running < s.conf.Workers && due.Before(next) {
			next = due
		}
		over := s.m.closed && s.m.idle()
		s.mu.Unlock()
		if over {
			return nil
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-s.wake:
		case r := <-results:
			running--
			s.finish(r)
		case <-ctx.Done():
			for ; running > 0; running-- {
				s.finish(<-results)
			}
			return ctx.Err()
		}
	}
}

func (s *Scheduler) finish(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m.finish(r.j, r.start, time.Now(), r.err)
}

// call runs the function, so that a panic in it ends one run only.
func (s *Scheduler) call(ctx context.Context, key string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: string(debug.Stack())}
		}
	}()
	return s.conf.Run(ctx, key)
}

// Drain stops accepting, makes every change and poke that no run covers due
// at once, and waits for their runs and for Run to end. Background work that
// nothing changed is dropped, and a run that fails is not tried again. When
// ctx ends first, the runs' context is cancelled, Drain waits for Run to
// return, and says what was left. If Run has not begun, it may still do so;
// Drain does not wait for it when there is nothing to run.
func (s *Scheduler) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.m.shut(time.Now())
	nothing := !s.started && s.m.idle()
	s.mu.Unlock()
	if nothing {
		return nil
	}
	s.nudge()
	select {
	case <-s.drained:
		return s.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	left, hard := len(s.m.waiting.jobs)+len(s.m.ready.jobs)+s.m.running, s.hard
	s.mu.Unlock()
	if hard != nil {
		hard()
		<-s.drained
		if s.err == nil {
			return nil // it was done after all
		}
	}
	return fmt.Errorf("%d keys were not run to the end: %w", left, ctx.Err())
}
