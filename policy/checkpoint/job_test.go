package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/policy/execute"
	"handoffd/policy/permission"
)

// fatal is *testing.T or *rapid.T.
type fatal interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func jobsIn(t fatal, dir string, change func(*permission.Policy)) *Jobs {
	t.Helper()
	s, err := permission.Resolve(permission.Input{CWD: dir, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&s.Policy)
	}
	records, err := execute.OpenRecords(s, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return &Jobs{Scope: s, Records: records, Now: time.Now}
}

func newJobs(t *testing.T, change func(*permission.Policy)) *Jobs {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return jobsIn(t, dir, change)
}

func (j *Jobs) logOf(session string) string {
	return filepath.Join(j.Scope.StateDir, JobsDir, fileName(session), LogName)
}

func (j *Jobs) checkpointOf(session string) string {
	return filepath.Join(j.Scope.StateDir, Dir, fileName(session)+".json")
}

// logged holds the work log to steps 1 to n, each once and in order.
func (j *Jobs) logged(t fatal, session string, n int) {
	t.Helper()
	raw, err := os.ReadFile(j.logOf(session))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(raw), "\n")
	if len(lines) != n+1 || lines[n] != "" {
		t.Fatalf("%d lines for %d steps:\n%.300s", len(lines)-1, n, raw)
	}
	for i, line := range lines[:n] {
		if !strings.HasPrefix(line, fmt.Sprintf("step %d at 2", i+1)) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
}

func TestJob(t *testing.T) {
	j := newJobs(t, nil)
	r, err := j.Start(t.Context(), "s", 5, 4)
	if err != nil || r.KilledAt != 4 || r.Seq != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	st, err := j.Status("s")
	if err != nil || st != (Status{"s", 3, 5, false, 3}) {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := j.Start(t.Context(), "s", 5, 0); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), "already exists") {
		t.Error(err)
	}
	if _, err := j.Resume(t.Context(), "s", 6); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), "mismatches") {
		t.Error(err)
	}
	r, err = j.Resume(t.Context(), "s", 5)
	if err != nil || !r.Completed || r.Already || r.Seq != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	j.logged(t, "s", 5)
	r, err = j.Resume(t.Context(), "s", 99)
	if err != nil || !r.Already || r.Seq != 5 || r.Steps != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := j.Resume(t.Context(), "other", 5); !fault.Is(err, fault.NoCheckpoint) {
		t.Error(err)
	}
	if _, err := j.Status("other"); !fault.Is(err, fault.NoCheckpoint) {
		t.Error(err)
	}
	// Every step was decided about, and is on record.
	names, _ := filepath.Glob(filepath.Join(j.Scope.StateDir, execute.RecordsDir, "*.json"))
	if len(names) != 5 {
		t.Errorf("%d records of 5 steps", len(names))
	}
	if runtime.GOOS != "windows" {
		for path, mode := range map[string]os.FileMode{j.logOf("s"): 0o600, j.checkpointOf("s"): 0o600, filepath.Dir(j.logOf("s")): 0o700, j.Scope.StateDir: 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
}

// The names of the seed's holes: each job has its own files, and all stay in
// the state directory.
func TestJobNames(t *testing.T) {
	j := newJobs(t, nil)
	names := []string{"a/b", "a_b", "..", ".", "../../x", "/abs", "a b", strings.Repeat("n", 400)}
	for i, name := range names {
		if _, err := j.Start(t.Context(), name, int64(i)+1, 0); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for i, name := range names {
		if st, err := j.Status(name); err != nil || st.Seq != int64(i)+1 || st.LogLines != int64(i)+1 {
			t.Errorf("%q: %+v, %v", name, st, err)
		}
	}
	if entries, _ := os.ReadDir(j.Scope.Workspace); len(entries) != 1 {
		t.Errorf("%v", entries)
	}
	if entries, _ := os.ReadDir(filepath.Join(j.Scope.StateDir, JobsDir)); len(entries) != len(names) {
		t.Errorf("%v", entries)
	}
}

// A corrupt checkpoint is refused by every verb, and nothing is changed.
func TestCorruptIsNotRestarted(t *testing.T) {
	j := newJobs(t, nil)
	if _, err := j.Start(t.Context(), "s", 4, 3); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", "null", "{}", strings.Repeat("\x00", 500), publishedSealed("s")[:40], strings.Replace(publishedSealed("s"), "2", "3", 1), publishedSealed("x")} {
		if err := os.WriteFile(j.checkpointOf("s"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, start := j.Start(t.Context(), "s", 4, 0)
		_, resume := j.Resume(t.Context(), "s", 4)
		_, status := j.Status("s")
		for verb, err := range map[string]error{"job": start, "resume": resume, "status": status} {
			if !fault.Is(err, fault.CorruptCheckpoint) {
				t.Errorf("%s over %.20q: %v", verb, text, err)
			}
		}
		if raw, _ := os.ReadFile(j.checkpointOf("s")); string(raw) != text {
			t.Errorf("%.20q became %.20q", text, raw)
		}
		j.logged(t, "s", 2)
	}
}

// A work log that is not in step is brought there if that is sure, else
// refused.
func TestReconcile(t *testing.T) {
	const at = " at 2026-01-02T03:04:05.006Z\n"
	for _, c := range []struct {
		what, log string
		ok        bool
	}{
		{"in step", "step 1" + at + "step 2" + at, true},
		{"one ahead, as after a kill", "step 1" + at + "step 2" + at + "step 3" + at, true},
		{"a torn line", "step 1" + at + "step 2" + at + "step 3 at 20", true},
		{"a torn line of one byte", "step 1" + at + "step 2" + at + "s", true},
		{"a long torn line", "step 1" + at + "step 2" + at + strings.Repeat("\x00", 100000), false},
		{"zeros where a line was", "step 1" + at + "step 2" + at + strings.Repeat("\x00", 40), true},
		{"behind", "step 1" + at, false},
		{"torn behind", "step 1" + at + "step 2", false},
		{"empty", "", false},
		{"none", "none", false},
		{"twice", "step 1" + at + "step 2" + at + "step 2" + at, false},
		{"out of order", "step 2" + at + "step 1" + at, false},
		{"beyond the end", "step 1" + at + "step 2" + at + "step 3" + at + "step 4" + at, false},
		{"a strange line", "step 1" + at + "hello\n", false},
		{"a blank line", "step 1" + at + "\nstep 2" + at, false},
	} {
		j := newJobs(t, nil)
		for path, text := range map[string]string{j.checkpointOf("s"): publishedSealed("s"), j.logOf("s"): c.log} {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if text == "none" {
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := j.Resume(t.Context(), "s", 3)
		switch {
		case c.ok && (err != nil || !r.Completed):
			t.Errorf("%s: %+v, %v", c.what, r, err)
		case c.ok:
			j.logged(t, "s", 3)
			if st, err := j.Status("s"); err != nil || st != (Status{"s", 3, 3, true, 3}) {
				t.Errorf("%s: %+v, %v", c.what, st, err)
			}
		case !fault.Is(err, fault.CorruptCheckpoint):
			t.Errorf("%s: %v", c.what, err)
		default:
			if raw, _ := os.ReadFile(j.logOf("s")); c.log != "none" && string(raw) != c.log {
				t.Errorf("%s: a refused log was changed to %q", c.what, raw)
			}
			if raw, _ := os.ReadFile(j.checkpointOf("s")); string(raw) != publishedSealed("s") {
				t.Errorf("%s: a refused checkpoint was changed", c.what)
			}
		}
	}
}

func TestLogWithoutCheckpoint(t *testing.T) {
	j := newJobs(t, nil)
	if _, err := j.Start(t.Context(), "s", 3, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(j.checkpointOf("s")); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Start(t.Context(), "s", 3, 0); !fault.Is(err, fault.Usage) {
		t.Errorf("steps are logged twice: %v", err)
	}
	j.logged(t, "s", 3)
}

func TestPermission(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*permission.Policy)
		kind   fault.Kind
	}{
		{"no writing", func(p *permission.Policy) { p.Grants[permission.WorkspaceWrite] = "deny" }, fault.Denied},
		{"asking first", func(p *permission.Policy) { p.Grants[permission.WorkspaceWrite] = "needs_auth" }, fault.NeedsAuth},
		{"a denied root", func(p *permission.Policy) { p.DeniedRoots = []string{".agents-handoff/jobs"} }, fault.Denied},
		{"no such risk", func(p *permission.Policy) { delete(p.RiskToLevel, "R1") }, fault.Denied},
	} {
		j := newJobs(t, c.change)
		if _, err := j.Start(t.Context(), "s", 3, 0); !fault.Is(err, c.kind) || !strings.HasPrefix(err.Error(), "step 1 not permitted: ") {
			t.Errorf("%s: %v", c.what, err)
		}
		if _, err := j.Status("s"); !fault.Is(err, fault.NoCheckpoint) {
			t.Errorf("%s: %v", c.what, err)
		}
		if _, err := os.Stat(j.logOf("s")); err == nil {
			t.Errorf("%s: there is a work log", c.what)
		}
		names, _ := filepath.Glob(filepath.Join(j.Scope.StateDir, execute.RecordsDir, "*.json"))
		if len(names) != 1 {
			t.Errorf("%s: %d records", c.what, len(names))
		}
	}
}

// Whoever plants a link in the state directory moves nothing out of it.
func TestPlantedLinks(t *testing.T) {
	for _, at := range []string{"jobs/s", "jobs/s/work.log", "jobs", "checkpoints", "locks"} {
		j := newJobs(t, nil)
		away := t.TempDir()
		target := away
		if strings.HasSuffix(at, ".log") {
			target = filepath.Join(away, "victim")
		}
		path := filepath.Join(j.Scope.StateDir, filepath.FromSlash(at))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Skipf("symbolic links cannot be made here: %v", err)
		}
		if _, err := j.Start(t.Context(), "s", 2, 0); err == nil {
			t.Errorf("%s: a job runs through a planted link", at)
		}
		if entries, _ := os.ReadDir(away); len(entries) != 0 {
			t.Errorf("%s: %v was written", at, entries)
		}
	}
}

// Resumes at the same time do each step once.
func TestConcurrentResumes(t *testing.T) {
	j := newJobs(t, nil)
	const steps = 60
	if _, err := j.Start(t.Context(), "s", steps, 2); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range 8 {
		wait.Go(func() {
			own := jobsIn(t, j.Scope.Workspace, nil)
			r, err := own.Resume(context.Background(), "s", steps)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && r.Completed:
				done++
			case !fault.Is(err, fault.Locked):
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wait.Wait()
	if done == 0 {
		t.Error("nobody finished the job")
	}
	j.logged(t, "s", steps)
}

var errKilled = errors.New("killed")

// A job is stopped before any effect on the disk, or in the middle of a write,
// as often as chance will have it. After each stop the checkpoint is whole and
// the log no more than one step ahead, and in the end each step was done once.
func TestStoppedAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "checkpoint")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			rt.Fatal(err)
		}
		const steps = 3
		begun := false
		for stop := 0; ; stop++ {
			if stop > 200 {
				rt.Fatal("the job never ends")
			}
			after := rapid.IntRange(0, 40).Draw(rt, "effects")
			torn := rapid.IntRange(0, 20).Draw(rt, "torn bytes")
			count, dead := 0, false
			j := jobsIn(rt, dir, nil)
			restore := safefile.Intercept(func(op, path string) error {
				if dead {
					return errKilled
				}
				if count++; count > after {
					dead = true
					if op == "write" && strings.HasSuffix(path, LogName) && torn > 0 {
						f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
						if err == nil {
							_, _ = f.WriteString("step 99 at 2026-01-02T03:04:05.006Z\n"[:torn])
							_ = f.Close()
						}
					}
					return errKilled
				}
				return nil
			})
			var r Result
			if begun {
				r, err = j.Resume(context.Background(), "s", steps)
			} else {
				r, err = j.Start(context.Background(), "s", steps, 0)
			}
			restore()
			if err == nil && r.Completed {
				break
			}
			if !errors.Is(err, errKilled) {
				rt.Fatalf("stop %d after %d effects: %+v, %v", stop, after, r, err)
			}
			st, err := j.Status("s")
			if fault.Is(err, fault.NoCheckpoint) && !begun {
				continue
			}
			begun = true
			if err != nil || st.LogLines < st.Seq || st.LogLines > st.Seq+1 {
				rt.Fatalf("stop %d after %d effects: %+v, %v", stop, after, st, err)
			}
		}
		j := jobsIn(rt, dir, nil)
		j.logged(rt, "s", steps)
		if st, err := j.Status("s"); err != nil || st != (Status{"s", steps, steps, true, steps}) {
			rt.Fatalf("%+v, %v", st, err)
		}
	})
}

// A job that is interrupted stops between two steps.
func TestInterrupted(t *testing.T) {
	j := newJobs(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	defer safefile.Intercept(func(op, path string) error {
		if op == "write" && strings.HasSuffix(path, LogName) {
			if n++; n == 3 {
				cancel()
			}
		}
		return nil
	})()
	if _, err := j.Start(ctx, "s", 10, 0); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if st, err := j.Status("s"); err != nil || st.Seq != 3 || st.LogLines != 3 {
		t.Errorf("%+v, %v", st, err)
	}
	if r, err := j.Resume(t.Context(), "s", 10); err != nil || !r.Completed {
		t.Errorf("%+v, %v", r, err)
	}
	j.logged(t, "s", 10)
}

// A checkpoint of the published engine is gone on with.
func TestResumesThePublished(t *testing.T) {
	j := newJobs(t, nil)
	for path, text := range map[string]string{
		j.checkpointOf("s"): publishedSealed("s"),
		j.logOf("s"):        "step 1 at 2026-01-02T03:04:05.005Z\nstep 2 at 2026-01-02T03:04:05.006Z\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := j.Resume(t.Context(), "s", 3); err != nil || !r.Completed || r.Seq != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	j.logged(t, "s", 3)
}

func BenchmarkStep(b *testing.B) {
	for _, steps := range []int64{100, 1000, 4000} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			for range b.N {
				j := jobsIn(b, b.TempDir(), nil)
				if _, err := j.Start(b.Context(), "s", steps, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(int64(b.N)*steps), "us/step")
		})
	}
}
