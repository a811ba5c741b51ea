package schedule

import (
	"slices"
	"strings"
	"time"
)

// Stats is a snapshot.
type Stats struct {
	Queued     int // keys with pending work, whether due or not; background included
	Background int // of Queued, those that only Add entered
	Running    int
	Failing    int           // keys whose last run failed
	Lag        time.Duration // how long the oldest due key, background aside, has waited
}

// Stats returns the present figures.
func (s *Scheduler) Stats() Stats {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Queued: len(s.m.waiting.jobs) + len(s.m.ready.jobs), Running: s.m.running, Failing: s.m.failing}
	for _, j := range s.m.jobs {
		switch {
		case !j.pending():
		case j.class == background:
			if j.index >= 0 {
				st.Background++
			}
		default:
			st.Lag = max(st.Lag, now.Sub(j.due))
		}
	}
	return st
}

// Open lists the keys with a mark that no finished run covers, background and
// running ones included, in the order of their names.
func (s *Scheduler) Open() []string {
	s.mu.Lock()
	var list []string
	for _, j := range s.m.jobs {
		if j.done < j.marked || j.pending() {
			list = append(list, j.key)
		}
	}
	s.mu.Unlock()
	slices.Sort(list)
	return list
}

// Failure is a key whose last run failed.
type Failure struct {
	Key      string
	Err      error
	Attempts int       // failed runs in a row
	Next     time.Time // of the next run; zero if only a change brings one
}

// Failures returns up to limit failing keys, in the order of their names; all
// of them if limit is not positive.
func (s *Scheduler) Failures(limit int) []Failure {
	s.mu.Lock()
	var list []Failure
	for _, j := range s.m.jobs {
		if j.err == nil {
			continue
		}
		f := Failure{Key: j.key, Err: j.err, Attempts: j.attempts}
		if j.pending() {
			f.Next = j.due
		}
		list = append(list, f)
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b Failure) int { return strings.Compare(a.Key, b.Key) })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list
}
