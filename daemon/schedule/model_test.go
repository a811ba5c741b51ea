package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestEveryChangeIsRun is the promise: whatever happens, each change is
// followed by a run that starts after it and within the bound, one key never
// runs twice at once, and there are never more runs than workers.
func TestEveryChangeIsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Without the Deadline method of T, which a bubble forbids.
		rapid.Check(struct{ testing.TB }{t}, checkModel)
	})
}

func checkModel(t *rapid.T) {
	quiet := time.Duration(rapid.IntRange(0, 3000).Draw(t, "quiet")) * time.Millisecond
	fresh := time.Duration(rapid.IntRange(0, 10_000).Draw(t, "fresh")) * time.Millisecond
	workers := rapid.IntRange(1, 3).Draw(t, "workers")
	takes := time.Duration(rapid.IntRange(0, 4000).Draw(t, "takes")) * time.Millisecond
	mayFail := rapid.Bool().Draw(t, "mayFail")
	failAt := rapid.SliceOfN(rapid.IntRange(0, 3), 64, 64).Draw(t, "fails")

	type span struct{ start, end time.Time }
	var (
		runs            = map[string][]span{}
		all, concurrent int
		active          = map[string]bool{}
		problems        []string
		mu              = make(chan struct{}, 1)
	)
	lock := func(f func()) { mu <- struct{}{}; f(); <-mu }
	s := New(Config{Quiet: quiet, MinFresh: fresh, Workers: workers, Jitter: func() float64 { return 0.5 },
		RetryMin: time.Second, RetryMax: 4 * time.Second,
		Run: func(ctx context.Context, key string) error {
			var fail bool
			start := time.Now()
			lock(func() {
				if active[key] {
					problems = append(problems, key+" runs twice at once")
				}
				active[key] = true
				if concurrent++; concurrent > workers {
					problems = append(problems, "more runs than workers")
				}
				fail = mayFail && failAt[all%len(failAt)] == 0
				all++
			})
			<-time.After(takes)
			lock(func() {
				delete(active, key)
				concurrent--
				if !fail {
					runs[key] = append(runs[key], span{start, time.Now()})
				}
			})
			if fail {
				return errors.New("boom")
			}
			return nil
		}})
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()

	type mark struct {
		key   string
		at    time.Time
		bound time.Duration
	}
	var marks []mark
	keys := []string{"a", "b", "c", "d"}
	for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
		key := rapid.SampledFrom(keys).Draw(t, fmt.Sprint("key", i))
		now := time.Now()
		switch rapid.IntRange(0, 5).Draw(t, fmt.Sprint("what", i)) {
		case 0:
			s.Now(key)
			marks = append(marks, mark{key, now, 0})
		case 1:
			s.Add(key, now.Add(time.Second))
			marks = append(marks, mark{key, now, -1})
		default:
			s.Changed(key)
			marks = append(marks, mark{key, now, quiet + fresh})
		}
		<-time.After(time.Duration(rapid.IntRange(0, 3000).Draw(t, fmt.Sprint("gap", i))) * time.Millisecond)
	}
	// Everything settles by itself, or is drained.
	if rapid.Bool().Draw(t, "settle") {
		<-time.After(2 * time.Minute)
		if st := s.Stats(); st.Queued != 0 || st.Running != 0 || st.Failing != 0 {
			t.Fatalf("not settled: %+v", st)
		}
	} else if !mayFail {
		marks = slices.DeleteFunc(marks, func(m mark) bool { return m.bound < 0 }) // dropped by Drain
	} else {
		marks = nil
	}
	if err := s.Drain(context.Background()); err != nil {
		t.Fatalf("Drain: %v", err)
	}
	if err := <-done; err != nil {
		t.Fatalf("Run: %v", err)
	}
	if len(problems) > 0 {
		t.Fatalf("%v", problems)
	}
	// A due key may have to wait for the runs of all others, and its own.
	wait := pokeAhead + time.Duration(len(keys)+1)*takes
	for _, m := range marks {
		i := slices.IndexFunc(runs[m.key], func(r span) bool { return !r.start.Before(m.at) })
		if i < 0 {
			t.Fatalf("no run of %s after its mark", m.key)
		}
		if lag := runs[m.key][i].start.Sub(m.at); !mayFail && m.bound >= 0 && lag > m.bound+wait {
			t.Fatalf("%s ran %v after its mark, bound %v", m.key, lag, m.bound+wait)
		}
	}
}
