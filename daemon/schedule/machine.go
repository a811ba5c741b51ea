package schedule

import (
	"container/heap"
	"time"
)

// class says how a key became due. A lower class wins over a higher one.
type class int

const (
	poked      class = iota // someone waits for it
	changed                 // due by the two clocks
	background              // nobody waits: an initial scan
)

// job is what the machine knows of a key.
type job struct {
	key string

	// Pending work. first is zero when there is none.
	first, last time.Time // of the changes not yet covered by a run
	class       class
	due         time.Time
	seq         uint64 // of the job's entry into its class, for a stable order
	ready       bool   // due has passed: in the ready heap, not in the waiting one
	index       int    // in its heap, -1 if in none

	running bool
	lastRun time.Time // start of the last run that succeeded

	// marked counts marks; taken is its value when the current run began;
	// done is its value when the last finished run began.
	marked, taken, done uint64

	attempts int   // failed runs in a row
	err      error // of the last run
	retryAt  time.Time
	idleAt   time.Time // when the job last had nothing to do

	waiters []*waiter
}

// pokeAhead is how far a poke overtakes changes that were due before it. It is
// bounded, so that a stream of pokes delays a change but never starves it.
const pokeAhead = 10 * time.Second

// rank orders due jobs.
func (j *job) rank() time.Time {
	if j.class == poked {
		return j.due.Add(-pokeAhead)
	}
	return j.due
}

func (j *job) pending() bool { return !j.first.IsZero() }

// waiter waits until a run that began after mark target has ended.
type waiter struct {
	target uint64
	done   chan error // buffered by one
}

// machine is the state of a Scheduler. It is pure: it reads no clock, starts
// nothing, never blocks, and is for one goroutine at a time.
type machine struct {
	quiet, minFresh    time.Duration
	retryMin, retryMax time.Duration
	jitter             func() float64

	jobs    map[string]*job
	waiting jobHeap // by due
	ready   jobHeap // background last, then by rank, then by entry
	running int
	seq     uint64
	failing int
	closed  bool
}

func newMachine(c Config) *machine {
	return &machine{
		quiet: c.Quiet, minFresh: c.MinFresh, retryMin: c.RetryMin, retryMax: c.RetryMax, jitter: c.Jitter,
		jobs:    map[string]*job{},
		waiting: jobHeap{less: func(a, b *job) bool { return a.due.Before(b.due) }},
		ready: jobHeap{less: func(a, b *job) bool {
			if aside := a.class == background; aside != (b.class == background) {
				return !aside
			} else if x, y := a.rank(), b.rank(); !aside && !x.Equal(y) {
				return x.Before(y)
			}
			return a.seq < b.seq
		}},
	}
}

// mark notes work for a key at now. notBefore is used by the background class
// only. It reports false, and does nothing, once the machine is closed.
func (m *machine) mark(key string, c class, now, notBefore time.Time) bool {
	if m.closed {
		return false
	}
	j := m.jobs[key]
	if j == nil {
		j = &job{key: key, index: -1}
		m.jobs[key] = j
	}
	j.marked++
	fresh := !j.pending()
	if fresh {
		j.first = now
	}
	if c == background {
		if !fresh {
			return true // what is pending already goes sooner
		}
	} else {
		if fresh || j.class == background {
			// The bound counts from the first change, and entering the
			// background is none.
			j.first = now
		}
		j.last = now
	}
	if fresh || c < j.class {
		j.class = c
		m.seq++
		j.seq = m.seq
	}
	switch j.class {
	case poked:
		if fresh || c == poked {
			j.due = now
		}
	case changed:
		j.due = m.dueOf(j)
	case background:
		j.due = notBefore
	}
	m.queue(j, now)
	return true
}

// dueOf applies the two clocks, and a failed job's wait.
func (m *machine) dueOf(j *job) time.Time {
	due := j.last.Add(m.quiet)
	if !j.lastRun.IsZero() {
		if fresh := j.lastRun.Add(m.minFresh); fresh.After(due) {
			due = fresh
		}
	}
	if bound := j.first.Add(m.minFresh + m.quiet); due.After(bound) {
		due = bound
	}
	if j.retryAt.After(due) {
		due = j.retryAt
	}
	return due
}

// queue puts a pending job into the heap it belongs to.
func (m *machine) queue(j *job, now time.Time) {
	if j.running {
		return // finish will
	}
	m.unqueue(j)
	j.ready = !j.due.After(now)
	if j.ready {
		heap.Push(&m.ready, j)
	} else {
		heap.Push(&m.waiting, j)
	}
}

func (m *machine) unqueue(j *job) {
	if j.index < 0 {
		return
	}
	if j.ready {
		heap.Remove(&m.ready, j.index)
	} else {
		heap.Remove(&m.waiting, j.index)
	}
}

// next begins the run of the most urgent job that is due, nil if there is
// none. The caller must call finish.
func (m *machine) next(now time.Time) *job {
	for len(m.waiting.jobs) > 0 && !m.waiting.jobs[0].due.After(now) {
		j := m.waiting.jobs[0]
		m.unqueue(j)
		m.queue(j, now)
	}
	if len(m.ready.jobs) == 0 {
		return nil
	}
	j := m.ready.jobs[0]
	m.unqueue(j)
	j.running = true
	j.taken = j.marked
	// What is marked from now on is not covered by this run.
	j.first, j.last = time.Time{}, time.Time{}
	m.running++
	return j
}

// nextDue returns when a job becomes due that is not yet.
func (m *machine) nextDue() (time.Time, bool) {
	if len(m.waiting.jobs) == 0 {
		return time.Time{}, false
	}
	return m.waiting.jobs[0].due, true
}

// finish ends the run of j, which began at start, with err.
func (m *machine) finish(j *job, start, now time.Time, err error) {
	m.running--
	j.running = false
	j.done = j.taken
	if (err == nil) != (j.err == nil) {
		if err == nil {
			m.failing--
		} else {
			m.failing++
		}
	}
	j.err = err
	switch {
	case err == nil:
		j.lastRun, j.attempts, j.retryAt = start, 0, time.Time{}
	case isPermanent(err):
		j.attempts++
		j.retryAt = time.Time{}
	default:
		j.retryAt = now.Add(m.backoff(j.attempts))
		j.attempts++
	}
	m.wake(j)
	switch {
	case j.pending():
		// lastRun or retryAt moved since this was marked.
		if j.class == changed {
			j.due = m.dueOf(j)
		}
		if m.closed {
			j.due = now
		}
		m.queue(j, now)
	case !j.retryAt.IsZero() && !m.closed:
		j.first, j.last, j.class = now, now, changed
		j.due = j.retryAt
		m.seq++
		j.seq = m.seq
		m.queue(j, now)
	default:
		j.idleAt = now
	}
}

// backoff returns the wait after a failure that followed n others: doubling,
// between three quarters and five quarters of the nominal time.
func (m *machine) backoff(n int) time.Duration {
	d := m.retryMax
	if n < 32 && m.retryMin<<n < m.retryMax && m.retryMin<<n > 0 {
		d = m.retryMin << n
	}
	return min(m.retryMax, d*3/4+time.Duration(m.jitter()*float64(d/2)))
}

// wait registers a waiter for all marks of key so far. It returns nil, and
// the result of the last run, if a run has already covered them.
func (m *machine) wait(key string) (*waiter, error) {
	j := m.jobs[key]
	if j == nil {
		return nil, nil
	}
	if j.done >= j.marked {
		return nil, j.err
	}
	w := &waiter{target: j.marked, done: make(chan error, 1)}
	j.waiters = append(j.waiters, w)
	return w, nil
}

// forsake removes a waiter whose owner has gone.
func (m *machine) forsake(key string, w *waiter) {
	j := m.jobs[key]
	if j == nil {
		return
	}
	for i, x := range j.waiters {
		if x == w {
			j.waiters = append(j.waiters[:i], j.waiters[i+1:]...)
			return
		}
	}
}

// wake answers the waiters that the finished run covers.
func (m *machine) wake(j *job) { j.answer(j.done, j.err) }

// answer ends the wait of those who wait for a mark up to target.
func (j *job) answer(target uint64, err error) {
	left := j.waiters[:0]
	for _, w := range j.waiters {
		if w.target <= target {
			w.done <- err
		} else {
			left = append(left, w)
		}
	}
	clear(j.waiters[len(left):])
	j.waiters = left
}

// shut stops accepting. Changes become due at once; background work that
// nothing has changed is dropped.
func (m *machine) shut(now time.Time) {
	if m.closed {
		return
	}
	m.closed = true
	for _, j := range m.jobs {
		if !j.pending() {
			continue
		}
		if j.class == background {
			m.drop(j, now)
			continue
		}
		j.due = now
		m.queue(j, now)
	}
}

// stop drops everything that is pending.
func (m *machine) stop(now time.Time) {
	m.closed = true
	for _, j := range m.jobs {
		if j.pending() {
			m.drop(j, now)
		}
	}
}

// drop forgets a job's pending work and tells who waits that no run will
// come. A run under way still answers for what it covers.
func (m *machine) drop(j *job, now time.Time) {
	m.unqueue(j)
	j.first, j.last = time.Time{}, time.Time{}
	if !j.running {
		j.done, j.idleAt = j.marked, now
		j.answer(j.marked, ErrStopped)
		return
	}
	covered := j.waiters[:0:0]
	for _, w := range j.waiters {
		if w.target <= j.taken {
			covered = append(covered, w)
		} else {
			w.done <- ErrStopped
		}
	}
	j.waiters, j.marked = covered, j.taken
}

// idle reports whether nothing is running or will run by itself.
func (m *machine) idle() bool {
	return m.running == 0 && len(m.waiting.jobs) == 0 && len(m.ready.jobs) == 0
}

// forget drops keys that have been idle for age, and failing ones for a day:
// a fault should be visible for as long as someone may come to look.
func (m *machine) forget(now time.Time, age time.Duration) {
	for key, j := range m.jobs {
		if j.running || j.pending() || len(j.waiters) > 0 {
			continue
		}
		keep := age
		if j.err != nil {
			keep = max(age, 24*time.Hour)
		}
		if now.Sub(j.idleAt) < keep {
			continue
		}
		if j.err != nil {
			m.failing--
		}
		delete(m.jobs, key)
	}
}
