package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig runs a scheduler in fake time and keeps what it ran.
type rig struct {
	*Scheduler
	t      *testing.T
	zero   time.Time
	runs   []string // "key@seconds", appended by runs: one worker, or look after Wait
	takes  time.Duration
	fail   func(key string, attempt int) error
	count  map[string]int
	cancel context.CancelFunc
	done   chan error
}

func newRig(t *testing.T, c Config) *rig {
	r := &rig{t: t, zero: time.Now(), count: map[string]int{}, done: make(chan error, 1)}
	if c.Quiet == 0 {
		c.Quiet, c.MinFresh = 2*time.Second, 60*time.Second
	}
	c.Jitter = func() float64 { return 0.5 }
	c.Run = func(ctx context.Context, key string) error {
		r.runs = append(r.runs, fmt.Sprintf("%s@%v", key, time.Since(r.zero).Seconds()))
		r.count[key]++
		if r.takes > 0 {
			select {
			case <-time.After(r.takes):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if r.fail != nil {
			return r.fail(key, r.count[key])
		}
		return nil
	}
	r.Scheduler = New(c)
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.done <- r.Run(ctx) }()
	return r
}

func (r *rig) stop() {
	r.cancel()
	<-r.done
}

// at waits until the given second and for everything to settle.
func (r *rig) at(sec float64) {
	<-time.After(time.Until(r.zero.Add(time.Duration(sec * float64(time.Second)))))
	synctest.Wait()
}

func (r *rig) want(runs ...string) {
	r.t.Helper()
	if !slices.Equal(r.runs, runs) {
		r.t.Errorf("runs %v, want %v", r.runs, runs)
	}
}

func TestTwoClocks(t *testing.T) {
	tests := []struct {
		name string
		do   func(r *rig)
		want []string
	}{
		{"first change waits for quiet", func(r *rig) { r.Changed("a") }, []string{"a@2"}},
		{"quiet counts from the last change", func(r *rig) {
			r.Changed("a")
			r.at(1)
			r.Changed("a")
		}, []string{"a@3"}},
		{"the tail less than min-fresh after a run is run", func(r *rig) {
			r.Changed("a")
			r.at(5)
			r.Changed("a")
		}, []string{"a@2", "a@62"}},
		{"a change after min-fresh waits for quiet", func(r *rig) {
			r.Changed("a")
			r.at(100)
			r.Changed("a")
		}, []string{"a@2", "a@102"}},
		{"a busy key is run at the bound", func(r *rig) {
			for i := range 100 {
				r.at(float64(i))
				r.Changed("a")
			}
		}, []string{"a@62", "a@122"}},
		{"a poke is due at once", func(r *rig) {
			r.Now("a")
			r.at(1)
			r.Now("a")
			r.at(3)
			r.Changed("a")
			r.at(4)
			r.Now("a")
		}, []string{"a@0", "a@1", "a@4"}},
		{"a change does not delay a poke's run nor is it lost", func(r *rig) {
			r.takes = 3 * time.Second
			r.Now("a")
			r.at(1)
			r.Changed("a")
		}, []string{"a@0", "a@60"}},
		{"a poke during a run leads to another at once", func(r *rig) {
			r.takes = 3 * time.Second
			r.Now("a")
			r.at(1)
			r.Now("a")
			r.Now("a")
		}, []string{"a@0", "a@3"}},
		{"background goes in order and yields", func(r *rig) {
			r.takes = time.Second
			r.Add("x", r.zero)
			r.Add("w", r.zero)
			r.Add("v", r.zero)
			r.Add("late", r.zero.Add(10*time.Second))
			r.at(0.5)
			r.Now("p")
		}, []string{"x@0", "p@1", "w@2", "v@3", "late@10"}},
		{"a poke overtakes changes, for a while", func(r *rig) {
			r.takes = 8 * time.Second
			r.Now("busy")
			r.Changed("a") // due at 2
			r.at(7)
			r.Now("p1") // ranks before 2
			r.at(15)
			r.Now("p2") // does not
		}, []string{"busy@0", "p1@8", "a@16", "p2@24"}},
		{"a change lifts a background key", func(r *rig) {
			r.takes = 5 * time.Second
			r.Add("x", r.zero)
			r.Add("y", r.zero)
			r.Add("z", r.zero)
			r.at(1)
			r.Changed("z")
		}, []string{"x@0", "z@5", "y@10"}},
		{"entering a pending key changes nothing", func(r *rig) {
			r.Changed("a")
			r.Add("a", r.zero.Add(time.Hour))
		}, []string{"a@2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				defer r.stop()
				synctest.Wait()
				tt.do(r)
				r.at(1000)
				r.want(tt.want...)
				if st := r.Stats(); st != (Stats{}) {
					t.Errorf("stats at rest %+v", st)
				}
			})
		})
	}
}

type permanent struct{ error }

func (permanent) Permanent() bool { return true }
func (p permanent) Unwrap() error { return p.error }

func TestFailures(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name    string
		fail    func(key string, n int) error
		do      func(r *rig)
		until   float64
		want    []string
		failing int
	}{
		{"doubling until it works", func(_ string, n int) error {
			if n < 4 {
				return boom
			}
			return nil
		}, func(r *rig) { r.Changed("a") }, 100, []string{"a@2", "a@3", "a@5", "a@9"}, 0},
		{"a change keeps the wait", func(_ string, n int) error {
			if n < 4 {
				return boom
			}
			return nil
		}, func(r *rig) {
			r.Changed("a")
			r.at(5.5)
			r.Changed("a")
		}, 100, []string{"a@2", "a@3", "a@5", "a@9"}, 0},
		{"a poke does not", func(_ string, n int) error {
			if n < 4 {
				return boom
			}
			return nil
		}, func(r *rig) {
			r.Changed("a")
			r.at(5.5)
			r.Now("a")
		}, 100, []string{"a@2", "a@3", "a@5", "a@5.5"}, 0},
		{"permanent waits for a change", func(_ string, n int) error {
			if n == 1 {
				return fmt.Errorf("wrapped: %w", permanent{boom})
			}
			return nil
		}, func(r *rig) {
			r.Changed("a")
			r.at(500)
			if f := r.Failures(0); len(f) != 1 || !f[0].Next.IsZero() || f[0].Attempts != 1 || !errors.Is(f[0].Err, boom) {
				r.t.Errorf("failures %+v", f)
			}
			r.Changed("a")
		}, 1000, []string{"a@2", "a@502"}, 0},
		{"a panic is permanent", func(string, int) error { panic("bad line") }, func(r *rig) {
			r.Changed("a")
			r.Changed("b")
		}, 100, []string{"a@2", "b@2"}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				defer r.stop()
				r.fail = tt.fail
				synctest.Wait()
				tt.do(r)
				r.at(tt.until)
				r.want(tt.want...)
				if st := r.Stats(); st.Failing != tt.failing {
					t.Errorf("%d failing, want %d", st.Failing, tt.failing)
				}
			})
		})
	}
}

func TestBackoffIsBounded(t *testing.T) {
	for _, jitter := range []float64{0, 0.5, 0.999} {
		m := newMachine(Config{RetryMin: time.Second, RetryMax: 5 * time.Minute, Jitter: func() float64 { return jitter }})
		for n := range 100 {
			d := m.backoff(n)
			nominal := min(time.Second<<min(n, 20), 5*time.Minute)
			if d < nominal*3/4 || d > nominal*5/4 || d > 5*time.Minute {
				t.Errorf("backoff(%d) = %v with jitter %v", n, d, jitter)
			}
		}
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		defer r.stop()
		boom := errors.New("boom")
		r.takes = 2 * time.Second
		r.fail = func(key string, _ int) error {
			if key == "bad" {
				return boom
			}
			return nil
		}
		if err := r.Wait(t.Context(), "unknown"); err != nil {
			t.Errorf("unknown key: %v", err)
		}
		r.Now("a")
		r.at(1)
		r.Now("a") // a mark during a run is covered by the next run only
		if err := r.Wait(t.Context(), "a"); err != nil || time.Since(r.zero) != 4*time.Second {
			t.Errorf("waited %v: %v", time.Since(r.zero), err)
		}
		if err := r.Wait(t.Context(), "a"); err != nil || time.Since(r.zero) != 4*time.Second {
			t.Errorf("nothing to wait for, yet: %v, %v", time.Since(r.zero), err)
		}
		r.Now("bad")
		if err := r.Wait(t.Context(), "bad"); err != boom {
			t.Errorf("failed run: %v", err)
		}
		if err := r.Wait(t.Context(), "bad"); err != boom {
			t.Errorf("after a failed run: %v", err)
		}
		r.Changed("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Wait(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("impatient: %v", err)
		}
		if n := len(r.m.jobs["a"].waiters); n != 0 {
			t.Errorf("%d waiters left behind", n)
		}
		synctest.Wait()
	})
}

func TestDrainRunsTrailingEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.takes = time.Second
		r.Now("a")
		r.at(0.5)
		r.Changed("a")
		r.Changed("b")
		r.Add("old", r.zero)
		waited := make(chan error, 1)
		go func() { waited <- r.Wait(t.Context(), "old") }()
		synctest.Wait()
		if err := r.Drain(t.Context()); err != nil {
			t.Errorf("Drain: %v", err)
		}
		if err := <-r.done; err != nil {
			t.Errorf("Run: %v", err)
		}
		slices.Sort(r.runs)
		r.want("a@0", "a@2", "b@1")
		if err := <-waited; !errors.Is(err, ErrStopped) {
			t.Errorf("waiter of dropped work: %v", err)
		}
		if r.Changed("c") || r.Now("c") || r.Add("c", r.zero) {
			t.Error("accepted work after Drain")
		}
		if err := r.Wait(t.Context(), "c"); err != nil {
			t.Errorf("wait for work that was refused: %v", err)
		}
	})
}

func TestDrainTriesFailuresOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.fail = func(string, int) error { return errors.New("boom") }
		r.Now("a")
		r.at(0.1)
		if err := r.Drain(t.Context()); err != nil {
			t.Errorf("Drain: %v", err)
		}
		r.want("a@0", "a@0.1")
		<-r.done
	})
}

func TestDrainBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.takes = time.Hour
		r.Now("a")
		r.Now("b")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := r.Drain(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(r.zero) != 5*time.Second {
			t.Errorf("Drain after %v: %v", time.Since(r.zero), err)
		}
		if err := <-r.done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		r.want("a@0")
	})
}

func TestEndOfRunAnswersWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.Changed("a")
		waited := make(chan error, 1)
		go func() { waited <- r.Wait(t.Context(), "a") }()
		synctest.Wait()
		r.stop()
		if err := <-waited; !errors.Is(err, ErrStopped) {
			t.Errorf("Wait: %v", err)
		}
		if err := r.Drain(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("Drain after a hard end: %v", err)
		}
		if err := r.Run(t.Context()); err == nil {
			t.Error("Run ran twice")
		}
	})
}

func TestDrainWithoutRun(t *testing.T) {
	s := New(Config{Run: func(context.Context, string) error { return nil }})
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Errorf("Run after Drain: %v", err)
	}
}

func TestDrainBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		s := New(Config{Run: func(_ context.Context, key string) error { ran = append(ran, key); return nil }})
		s.Changed("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain: %v", err)
		}
		if err := s.Run(t.Context()); err != nil || len(ran) != 1 {
			t.Errorf("Run: %v, ran %v", err, ran)
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Errorf("second Drain: %v", err)
		}
	})
}

func TestIdleKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		defer r.stop()
		r.fail = func(key string, _ int) error {
			if key == "bad" {
				return permanent{errors.New("boom")}
			}
			return nil
		}
		for i := range 1000 {
			r.Changed(fmt.Sprint(i))
		}
		r.Changed("bad")
		r.at(3 * 3600)
		r.mu.Lock()
		n := len(r.m.jobs)
		r.mu.Unlock()
		if n != 1 || r.Stats().Failing != 1 {
			t.Errorf("%d keys kept, %d failing", n, r.Stats().Failing)
		}
		r.at(27 * 3600)
		if st := r.Stats(); st != (Stats{}) || len(r.m.jobs) != 0 {
			t.Errorf("stats after a day %+v", st)
		}
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		defer r.stop()
		r.takes = 10 * time.Second
		r.Now("a")
		synctest.Wait()
		r.Changed("b")
		r.Add("c", r.zero)
		r.at(5)
		want := Stats{Queued: 2, Background: 1, Running: 1, Lag: 3 * time.Second}
		if st := r.Stats(); st != want {
			t.Errorf("stats %+v, want %+v", st, want)
		}
	})
}

func BenchmarkChanged(b *testing.B) {
	s := New(Config{Quiet: time.Second, MinFresh: time.Minute, Run: func(context.Context, string) error { return nil }})
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint("/some/where/session-", i)
	}
	i := 0
	for b.Loop() {
		s.Changed(keys[i%len(keys)])
		i++
	}
}
