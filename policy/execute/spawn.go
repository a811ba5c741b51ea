package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"handoffd/policy/permission"
)

// EnvExecution marks what a child starts as its own.
const EnvExecution = "HANDOFF_EXECUTION"

const (
	// endPatience is how long the processes of a tree may take to go.
	endPatience = 5 * time.Second
	// drainPatience is how long the rest of an output may take to come.
	drainPatience = 2 * time.Second
)

// Spawn is what running the program came to. It was executed, or refused by
// the decision, or could not be started.
type Spawn struct {
	Decision permission.Decision
	Executed bool
	ExitCode *int   // nil when a signal ended it
	Signal   string // "" when none did
	TimedOut bool
	Record   string // path of the record, as it is shown
	Err      error  // why an allowed program was not started
}

// outcome is how a child ended.
type outcome struct {
	exit     *int
	signal   string
	timedOut bool
}

// Spawn runs the program that the policy names with the arguments of a command
// line, see Split: in the workspace, with a scrubbed environment, no input, and
// at most Timeout. With the child its whole process tree ends. On Linux the
// tree is confined as far as the kernel can; the record says to what. The
// error is a bad command line, a record that could not be written, or a ctx
// that ended.
func (r *Runner) Spawn(ctx context.Context, risk permission.Risk, line string) (Spawn, error) {
	args, err := Split(line)
	if err != nil {
		return Spawn{}, err
	}
	d := r.Scope.Evaluate(risk, r.Scope.Workspace)
	path, missing := r.program()
	if missing == nil && d.Allowed() && r.Scope.Classify(path) == permission.DeniedRoot {
		d = permission.Decide(r.Scope.Policy, risk, permission.DeniedRoot)
	}
	out := Spawn{Decision: d}
	rec := r.Records.New(OpSpawn, d)
	if !d.Allowed() {
		rec.Set("executed", false)
		rec.Set("args", line)
		r.Records.describe(rec, d)
		out.Record, err = rec.Write()
		return out, err
	}
	rec.Set("executed", missing == nil)
	rec.Set("command", r.Scope.Policy.Program)
	rec.Set("args", args)
	if missing == nil {
		missing = r.spawn(ctx, d, path, args, rec, &out)
	}
	if missing != nil {
		out.Err = missing
		rec.Set("executed", false)
		rec.Set("execution_error", missing.Error())
	}
	r.Records.describe(rec, d)
	shown, err := rec.Write()
	out.Record = shown
	if err == nil {
		err = ctx.Err()
	}
	return out, err
}

// spawn runs the child. Its error says why nothing ran.
func (r *Runner) spawn(ctx context.Context, d permission.Decision, path string, args []string, rec *Record, out *Spawn) error {
	private, err := os.MkdirTemp("", "handoff-run-")
	if err != nil {
		return fmt.Errorf("make the child's private directory: %w", err)
	}
	defer os.RemoveAll(private)
	if real, err := filepath.EvalSymlinks(private); err == nil {
		private = real
	}
	stdout, err := newOutput(r.Scope.Policy.MaxOutputBytes)
	if err != nil {
		return err
	}
	stderr, err := newOutput(r.Scope.Policy.MaxOutputBytes)
	if err != nil {
		stdout.discard()
		return err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = r.Scope.Workspace, r.environment(path, private, rec.id)
	cmd.Stdout, cmd.Stderr = stdout.write, stderr.write
	c := &child{cmd: cmd, mark: EnvExecution + "=" + rec.id, sole: r.Sole}

	// The record says that something runs before it does: whoever kills this
	// process cannot make it look as if nothing had.
	rec.Set("started", stamp(r.Records.now()))
	for _, name := range []string{"ended", "exit_code", "signal"} {
		rec.Set(name, nil)
	}
	if _, err := rec.Write(); err != nil {
		stdout.discard()
		stderr.discard()
		return err
	}
	limit := r.Timeout
	if limit == 0 {
		limit = Timeout
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	started := func() {
		_, _ = stdout.write.Close(), stderr.write.Close()
		go stdout.follow()
		go stderr.follow()
	}
	rule := r.rule()
	end, confined, err := c.run(limited, r.cage(d, path, private), started)
	if aside := rule.restore(); aside != "" {
		rec.Set("policy_restored", true)
		rec.Set("policy_of_child", aside)
	}
	rec.Set("ended", stamp(r.Records.now()))
	if err != nil {
		stdout.discard()
		stderr.discard()
		return fmt.Errorf("start %s: %w", path, err)
	}
	end.timedOut = end.timedOut && ctx.Err() == nil
	stdout.finish(drainPatience)
	stderr.finish(drainPatience)
	out.Executed, out.ExitCode, out.Signal, out.TimedOut = true, end.exit, end.signal, end.timedOut
	rec.Set("exit_code", end.exit)
	rec.Set("signal", orNull(end.signal))
	rec.Set("stdout_sha256", stdout.digest())
	rec.Set("stderr_sha256", stderr.digest())
	rec.Set("stdout_bytes", stdout.bytes)
	rec.Set("stderr_bytes", stderr.bytes)
	rec.Set("timed_out", end.timedOut)
	rec.Set("output_limited", stdout.limited || stderr.limited)
	rec.Set("program", path)
	rec.Set("confined_by", confined.by)
	if confined.why != "" {
		rec.Set("unconfined_because", confined.why)
	}
	return nil
}

// discard gives back the pipe of a child that was not started.
func (o *output) discard() {
	_ = o.write.Close()
	_ = o.read.Close()
}

// stamp is a time as the records write it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// environment is all that a child learns of ours: where programs are, how
// people write here, and a private directory for everything else.
func (r *Runner) environment(program, private, id string) []string {
	env := []string{EnvExecution + "=" + id}
	if runtime.GOOS == "windows" {
		root := os.Getenv("SystemRoot")
		env = append(env, "SystemRoot="+root, "PATH="+filepath.Dir(program)+";"+root+`\System32;`+root, "TEMP="+private, "TMP="+private, "USERPROFILE="+private)
	} else {
		env = append(env, "PATH="+strings.Join([]string{filepath.Dir(program), "/usr/local/bin", "/usr/bin", "/bin"}, ":"), "HOME="+private, "TMPDIR="+private)
	}
	for _, name := range []string{"LANG", "LC_ALL", "LC_CTYPE", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// cage is what a child may reach, where the kernel can hold it to that.
type cage struct {
	read   []string // and execute
	look   []string // read, not execute
	write  []string // read, execute and write
	devs   []string // files to read and write
	denied []string // nothing, wherever it is
	online bool     // may use the network
}

// confinement is what became of a cage.
type confinement struct {
	by  string // "none", or what holds the child
	why string // why nothing does
}

// cage makes the cage of a decision: what the level writes, what programs
// need, and nothing else.
func (r *Runner) cage(d permission.Decision, program, private string) cage {
	s := r.Scope
	system := permission.Builtin(runtime.GOOS, "", "").SystemReadOnlyRoots
	c := cage{
		read:   append(s.Places(append(system, s.Policy.SystemReadOnlyRoots...)), program),
		look:   []string{"/proc", "/sys/fs/cgroup", "/sys/devices/system", "/dev/random", "/dev/urandom"},
		write:  []string{private},
		devs:   []string{"/dev/null", "/dev/zero", "/dev/full"},
		denied: s.Places(s.Policy.DeniedRoots),
		online: d.Level == permission.ExternalEffect,
	}
	if c.online {
		c.look = append(c.look, "/run/systemd/resolve") // where /etc/resolv.conf often leads
	}
	approved := s.Places(s.Policy.ApprovedWorkspaces)
	if d.Level.Reads() {
		c.read = append(c.read, approved...)
	} else {
		c.write = append(c.write, approved...)
	}
	return c
}

// child is one child with its tree.
type child struct {
	cmd  *exec.Cmd
	mark string
	sole bool
}

// run starts the child in its cage, calls started, and returns when the child
// and its tree have ended, because of themselves or of ctx.
func (c *child) run(ctx context.Context, in cage, started func()) (outcome, confinement, error) {
	type result struct {
		end      outcome
		confined confinement
		err      error
	}
	done := make(chan result, 1)
	go func() {
		// This thread takes on the confinement that the child inherits, and
		// ends with this goroutine: it is never unlocked. It has to outlive
		// the child, whose death signal is tied to it.
		runtime.LockOSThread()
		var res result
		defer func() { done <- res }()
		if res.confined, res.err = confine(in); res.err != nil {
			return
		}
		t := newTree(c)
		defer t.release()
		if res.err = c.cmd.Start(); res.err != nil {
			return
		}
		if res.err = t.begin(c.cmd.Process); res.err != nil {
			_ = c.cmd.Process.Kill()
			_ = c.cmd.Wait()
			return
		}
		started()
		stop := context.AfterFunc(ctx, t.end)
		err := c.cmd.Wait()
		ours := !stop()
		t.end()
		res.end = ending(c.cmd.ProcessState)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			res.err = err
		}
		// One that ended by itself at the last instant was not too slow.
		killed := res.end.signal != "" || runtime.GOOS == "windows"
		res.end.timedOut = ours && killed && errors.Is(ctx.Err(), context.DeadlineExceeded)
	}()
	res := <-done
	return res.end, res.confined, res.err
}
