package watch

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// NotifyConfig sets the clocks of Notify. The zero value is ready.
type NotifyConfig struct {
	// Check is how often every watched directory is compared with what is
	// there, which finds roots that appeared, were unmounted, or whose
	// ancestor was renamed; 0 is 5 s. It grows if checking is slow.
	Check time.Duration
	// Poll is the interval of roots that fell back to polling; see Poll.
	Poll time.Duration
	// RetryMin and RetryMax bound the doubling wait before a polled root is
	// watched again; 0 is 10 s and 10 min.
	RetryMin, RetryMax time.Duration
	// Report, if set, is called from Run's goroutine when the mode or the
	// error of a root changes.
	Report func(RootStatus)
}

const (
	// checkShare bounds the cost of checks as pollShare does of passes.
	checkShare = 200
	// Lost events are answered by building the trees anew. A flood of losses
	// is answered at most this often, and never later than resyncMax.
	resyncMin = 50 * time.Millisecond
	resyncMax = 2 * time.Second
)

// Notify is a Source over the kernel's file events: one fsnotify watcher for
// all roots, with a watch on each directory. A root that cannot be watched,
// because the system is out of watches or has no usable events, is polled and
// tried again later.
type Notify struct {
	conf   NotifyConfig
	open   func() (backend, error)
	status atomic.Pointer[[]RootStatus]

	// The rest belongs to the goroutine of Run.
	ctx   context.Context
	emit  func(Event)
	trees []*tree
	back  backend // nil while there is none
	// watched counts the trees that need the watch on a directory.
	watched  map[string]int
	changed  bool // status must be published
	checkAt  time.Time
	resyncAt time.Time // zero: nothing was lost
	resyncIn time.Duration
}

// NewNotify returns a Notify to be run once.
func NewNotify(conf NotifyConfig) *Notify {
	setDefault(&conf.Check, 5*time.Second)
	setDefault(&conf.Poll, DefaultPoll)
	setDefault(&conf.RetryMin, 10*time.Second)
	setDefault(&conf.RetryMax, 10*time.Minute)
	return &Notify{conf: conf, open: openBackend, watched: map[string]int{}, resyncIn: resyncMin}
}

func setDefault(d *time.Duration, v time.Duration) {
	if *d <= 0 {
		*d = v
	}
}

// Status implements Source.
func (n *Notify) Status() []RootStatus { return copyStatus(n.status.Load()) }

// Run implements Source.
func (n *Notify) Run(ctx context.Context, roots []Root, emit func(Event)) error {
	n.ctx, n.emit = ctx, emit
	defer n.closeBackend()
	for _, r := range roots {
		n.trees = append(n.trees, newTree(r))
	}
	for _, t := range n.trees {
		n.start(t)
	}
	n.checkAt = time.Now().Add(n.conf.Check)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		n.publish()
		timer.Reset(time.Until(n.nextDeadline()))
		// A nil channel blocks for ever, which is right without a backend.
		var events <-chan fsnotify.Event
		var errs <-chan error
		if n.back != nil {
			events, errs = n.back.Events(), n.back.Errors()
		}
		select {
		case <-ctx.Done():
		case ev, ok := <-events:
			if !ok {
				n.lost()
				break
			}
			n.handle(ev)
		case err, ok := <-errs:
			if !ok {
				n.lost()
				break
			}
			if err != nil {
				// An overflow or a failed read: something was not told.
				n.scheduleResync(time.Now())
			}
		case now := <-timer.C:
			n.tick(now)
		}
	}
	return ctx.Err()
}

// nextDeadline returns when tick has something to do.
func (n *Notify) nextDeadline() time.Time {
	next := n.checkAt
	if !n.resyncAt.IsZero() && n.resyncAt.Before(next) {
		next = n.resyncAt
	}
	for _, t := range n.trees {
		if t.mode == ModePolling && t.pollAt.Before(next) {
			next = t.pollAt
		}
	}
	return next
}

// tick does what is due.
func (n *Notify) tick(now time.Time) {
	if !n.resyncAt.IsZero() && !now.Before(n.resyncAt) {
		n.resyncAt = time.Time{}
		for _, t := range n.trees {
			if t.mode == ModeEvents {
				n.resync(t)
			}
		}
	}
	for _, t := range n.trees {
		if t.mode == ModePolling && !now.Before(t.pollAt) {
			n.poll(t)
		}
	}
	if !now.Before(n.checkAt) {
		start := time.Now()
		n.check(start)
		n.checkAt = time.Now().Add(max(n.conf.Check, checkShare*time.Since(start)))
		if n.resyncAt.IsZero() {
			n.resyncIn = resyncMin // quiet since the last check
		}
	}
}

// scheduleResync makes all trees be built anew, once for many losses.
func (n *Notify) scheduleResync(now time.Time) {
	if !n.resyncAt.IsZero() {
		return
	}
	n.resyncAt = now.Add(n.resyncIn)
	n.resyncIn = min(2*n.resyncIn, resyncMax)
}

// lost handles a backend that ended by itself.
func (n *Notify) lost() {
	n.closeBackend()
	for _, t := range n.trees {
		if t.mode == ModeEvents {
			n.degrade(t, errors.New("the watcher ended"))
		}
	}
}

func (n *Notify) closeBackend() {
	if n.back == nil {
		return
	}
	back := n.back
	n.back = nil
	clear(n.watched)
	// Close waits for the backend's goroutine, which may be sending.
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = back.Close()
	}()
	events, errs := back.Events(), back.Errors()
	for {
		select {
		case <-done:
			return
		case _, ok := <-events:
			if !ok {
				events = nil
			}
		case _, ok := <-errs:
			if !ok {
				errs = nil
			}
		}
	}
}

// publish makes the status visible and reports what changed.
func (n *Notify) publish() {
	if !n.changed {
		return
	}
	n.changed = false
	list := make([]RootStatus, 0, len(n.trees))
	for _, t := range n.trees {
		s := t.status()
		list = append(list, s)
		if s.Mode != t.reported.Mode || s.Err != t.reported.Err {
			t.reported = s
			if n.conf.Report != nil {
				n.conf.Report(s)
			}
		}
	}
	n.status.Store(&list)
}
