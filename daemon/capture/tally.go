package capture

import (
	"sync"
	"time"

	"handoffd/daemon/control"
	"handoffd/engine/pipeline"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// tally counts what was done.
type tally struct {
	captures, skipped, passed, turns, damage, failed counter

	mu   sync.Mutex // guards what follows
	last time.Time
	// failures holds the last error of each failing key, so that it is
	// logged once.
	failures map[string]string
	// stale holds, for each payload that is due, the last capture.
	stale map[string]time.Time
	// quality holds what is not right with each session that has something.
	quality              map[store.Location]quality
	quarantined, unknown int
}

type quality struct{ quarantined, unknown int }

func newTally() *tally {
	return &tally{failures: map[string]string{}, stale: map[string]time.Time{}, quality: map[store.Location]quality{}}
}

func (t *tally) built(r *pipeline.Result) {
	t.captures.Add(1)
	t.turns.Add(int64(r.New))
	t.damage.Add(int64(max(0, r.NewDamage)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	q := t.quality[r.Location]
	q.quarantined = r.Quarantined
	t.set(r.Location, q)
}

// count takes over what a manifest says.
func (t *tally) count(l store.Location, m *session.Manifest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(l, quality{m.Quarantined, m.Unknown})
}

func (t *tally) set(l store.Location, q quality) {
	old := t.quality[l]
	t.quarantined += q.quarantined - old.quarantined
	t.unknown += q.unknown - old.unknown
	if q == (quality{}) {
		delete(t.quality, l)
	} else {
		t.quality[l] = q
	}
}

// isNewFailure notes a failure, and reports whether it is another than the
// last one of the key.
func (t *tally) isNewFailure(key string, err error) bool {
	t.failed.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures[key] == err.Error() {
		return false
	}
	t.failures[key] = err.Error()
	return true
}

func (t *tally) healed(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failures, key)
}

func (t *tally) restless(key string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale[key] = at
}

func (t *tally) restlessUntil(key string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stale[key]
}

func (t *tally) resting(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.stale, key)
}

// payloads is how many keys of the schedule are payloads.
func (t *tally) payloads() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.stale)
}

func (t *tally) fill(s *Stats) {
	s.Captures = control.Captures{
		Built: t.captures.Load(), Skipped: t.skipped.Load(), Passed: t.passed.Load(), Turns: t.turns.Load(), Damage: t.damage.Load(), Failed: t.failed.Load(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.last.IsZero() {
		s.Captures.Last = t.last.UTC().Format(time.RFC3339)
	}
	s.Quarantined, s.Unknown = t.quarantined, t.unknown
}
