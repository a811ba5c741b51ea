package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/policy/execute"
	"handoffd/policy/permission"
)

// OpStep is a job's step, as it stands in decision records.
const OpStep = stepOp

// locksDir is where the locks of jobs are in a state directory.
const locksDir = "locks"

// Jobs runs jobs within a scope. It is for one goroutine at a time; the lock of
// a job keeps processes apart.
type Jobs struct {
	Scope   permission.Scope
	Records *execute.Records
	Now     func() time.Time
}

// Result is what a job came to.
type Result struct {
	Session   string
	Completed bool
	Already   bool  // it had been completed before
	Steps     int64 // that were asked for
	Seq       int64 // the last one done
	KilledAt  int64 // the step before which the simulated kill came, 0 for none
	WorkLog   string
}

// Status is what the disk says of a job.
type Status struct {
	Session   string
	Seq       int64
	Total     int64 // 0 when the checkpoint does not say
	Completed bool
	LogLines  int64
}

// job is a job whose lock is held.
type job struct {
	*Jobs
	name, path string
	log        *workLog
	state      *state
}

// Start begins a job and runs it to its end, or to before step failAt if that
// is not 0. A checkpoint that is there is never overwritten: fault.Usage if it
// is whole, fault.CorruptCheckpoint if not. A job at work is fault.Locked; a
// step that the policy does not allow is fault.Denied or fault.NeedsAuth.
func (j *Jobs) Start(ctx context.Context, session string, steps, failAt int64) (Result, error) {
	return j.locked(ctx, session, func(run *job) (Result, error) {
		_, err := read(run.path, session)
		switch {
		case err == nil:
			return Result{}, fault.New(fault.Usage, "checkpoint already exists for session %q — use resume", session)
		case !fault.Is(err, fault.NoCheckpoint):
			return Result{}, err
		}
		if err := run.permit(1); err != nil {
			return Result{}, err
		}
		if run.log, err = openLog(j.Scope.StateDir, run.name, true); err != nil {
			return Result{}, err
		}
		defer run.log.close()
		if info, err := run.log.file.Stat(); err != nil || info.Size() > 0 {
			return Result{}, fault.New(fault.Usage, "session %q has a work log and no checkpoint", session).
				WithHint("to start over, move %s away", run.log.path)
		}
		// From here on there is something to resume.
		run.state = &state{total: steps, session: session}
		if err := run.state.write(run.path, j.Now()); err != nil {
			return Result{}, err
		}
		return run.work(ctx, 1, failAt)
	})
}

// Resume runs a job from where its checkpoint says to its end. It fails like
// Start, and with fault.NoCheckpoint if there is nothing to resume. One that is
// completed is not run again.
func (j *Jobs) Resume(ctx context.Context, session string, steps int64) (Result, error) {
	return j.locked(ctx, session, func(run *job) (Result, error) {
		var err error
		if run.state, err = read(run.path, session); err != nil {
			return Result{}, err
		}
		s := run.state
		if s.completed {
			return Result{Session: session, Completed: true, Already: true, Steps: s.total, Seq: s.seq}, nil
		}
		if s.total != 0 && s.total != steps {
			return Result{}, fault.New(fault.Usage, "--steps %d mismatches the durable checkpoint (steps_total %d) — resume must match the recorded job shape", steps, s.total)
		}
		if s.seq > steps {
			return Result{}, fault.New(fault.Usage, "--steps %d is less than the %d steps done", steps, s.seq)
		}
		s.total = steps
		first := min(s.seq+1, steps)
		if err := run.permit(first); err != nil {
			return Result{}, err
		}
		run.log, err = openLog(j.Scope.StateDir, run.name, s.seq == 0)
		if errors.Is(err, fs.ErrNotExist) {
			return Result{}, run.behind(0)
		}
		if err != nil {
			return Result{}, err
		}
		defer run.log.close()
		if err := run.reconcile(); err != nil {
			return Result{}, err
		}
		return run.work(ctx, first, 0)
	})
}

// Status reads; it takes no lock and changes nothing.
func (j *Jobs) Status(session string) (Status, error) {
	name := fileName(session)
	s, err := read(filepath.Join(j.Scope.StateDir, Dir, name+".json"), session)
	if err != nil {
		return Status{}, err
	}
	lines, err := countLines(filepath.Join(j.Scope.StateDir, JobsDir, name, LogName))
	return Status{session, s.seq, s.total, s.completed, lines}, err
}

func (j *Jobs) locked(ctx context.Context, session string, do func(*job) (Result, error)) (Result, error) {
	for _, room := range []string{Dir, JobsDir} {
		if _, err := execute.StateRoom(j.Scope, room); err != nil {
			return Result{}, err
		}
	}
	locks, err := execute.StateRoom(j.Scope, locksDir)
	if err != nil {
		return Result{}, err
	}
	name := fileName(session)
	lock, err := safefile.Acquire(ctx, filepath.Join(locks, name+".lock"), 0)
	if fault.Is(err, fault.Locked) {
		return Result{}, fault.New(fault.Locked, "job %q is at work: %w", session, err).WithHint("%s", fault.HintOf(err))
	}
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = lock.Release() }()
	return do(&job{Jobs: j, name: name, path: filepath.Join(j.Scope.StateDir, Dir, name+".json")})
}

// permit decides about a step, and records the decision before it is acted on.
func (run *job) permit(seq int64) error {
	target := filepath.Join(run.Scope.StateDir, JobsDir, run.name, LogName)
	d := run.Scope.Evaluate(permission.R1, target)
	rec := run.Records.New(OpStep, d)
	rec.Set("target", target)
	rec.Set("job", run.name)
	rec.Set("step", seq)
	write := rec.Note
	if !d.Allowed() {
		rec.Set("executed", false)
		write = rec.Write
	}
	if _, err := write(); err != nil {
		return err
	}
	if err := d.Err(); err != nil {
		return fault.New(fault.KindOf(err), "step %d not permitted: %w", seq, err).WithHint("%s", fault.HintOf(err))
	}
	return nil
}

func (run *job) behind(lines int64) error {
	return fault.New(fault.CorruptCheckpoint, "the work log of session %q has %d of the %d steps of its checkpoint", run.state.session, lines, run.state.seq).
		WithHint("nothing was changed; to start over, move both away")
}

// reconcile brings the checkpoint up to the work log. A step is logged before it
// is checkpointed, so after a kill the log may have one more, which was done,
// or a part of one, which was not.
func (run *job) reconcile() error {
	s := run.state
	lines, beyond, err := run.log.scan(s.seq)
	if err != nil {
		return err
	}
	if lines < s.seq {
		return run.behind(lines)
	}
	if lines > s.total {
		return fault.New(fault.CorruptCheckpoint, "the work log of session %q has %d steps of %d", s.session, lines, s.total)
	}
	if err := run.log.mend(); err != nil || len(beyond) == 0 {
		return err
	}
	for _, st := range beyond {
		s.seq = st.Seq
		s.steps.add(st)
	}
	return s.write(run.path, run.Now())
}

// work does the steps that are left. One of them may have been permitted
// already.
func (run *job) work(ctx context.Context, permitted, failAt int64) (Result, error) {
	s := run.state
	r := Result{Session: s.session, Steps: s.total, WorkLog: run.log.path}
	for s.seq < s.total {
		next := s.seq + 1
		r.Seq = s.seq
		if next == failAt {
			r.KilledAt = failAt
			return r, nil
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if next != permitted {
			if err := run.permit(next); err != nil {
				return r, err
			}
		}
		done := step{next, stamp(run.Now())}
		if err := run.log.append(done); err != nil {
			return r, err
		}
		s.seq = next
		s.steps.add(done)
		// The last step completes the job, in the same replacement.
		s.completed = next == s.total
		if err := s.write(run.path, run.Now()); err != nil {
			return r, err
		}
	}
	if !s.completed {
		s.completed = true
		if err := s.write(run.path, run.Now()); err != nil {
			return r, err
		}
	}
	r.Completed, r.Seq = true, s.seq
	return r, nil
}
