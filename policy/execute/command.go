package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"handoffd/policy/permission"
)

// Command is a program that a verb runs for the user who asks: with the user's
// environment and rights, without a shell, without input, for a limited time.
// What it leaves running on purpose when it ends goes on.
type Command struct {
	Argv []string // the first is an absolute path
	Dir  string
	Env  []string
	// Timeout is how long it may run; Limit bounds what is kept of each
	// output, in bytes.
	Timeout time.Duration
	Limit   int64
	// Stream takes the output instead, however much it is; its error ends the
	// program.
	Stream io.Writer
}

// Finished is what a command came to.
type Finished struct {
	// Started says that the program ran at all, whatever became of it.
	Started        bool
	Stdout, Stderr []byte
	Exit           int // -1 when a signal ended it
	TimedOut       bool
	Cut            bool // more output than was kept
}

// secrets are names in the environment that no child is given: the key that
// signs continuations.
var secrets = []string{"ADLC_MANIFEST_KEY", "ADLC_ADMIN_KEY"}

// Scrub returns an environment without what no child is given.
func Scrub(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(secrets, func(s string) bool { return strings.EqualFold(s, name) })
	})
}

// Run runs the command if the guard lets its program run. The error is the
// guard's, or says why nothing ran, or is that of ctx or of Stream.
func (c Command) Run(ctx context.Context, g *permission.Guard) (Finished, error) {
	if err := g.Execute(c.Argv[0]); err != nil {
		return Finished{}, err
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, Scrub(c.Env)
	stdout, stderr := &kept{limit: c.Limit}, &kept{limit: c.Limit}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if c.Stream != nil {
		cmd.Stdout = c.Stream
	}
	ownGroup(cmd)
	cmd.WaitDelay = drainPatience
	if err := cmd.Start(); err != nil {
		return Finished{}, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	err := cmd.Wait()
	f := Finished{
		Started: true,
		Stdout:  stdout.data, Stderr: stderr.data, Exit: cmd.ProcessState.ExitCode(), Cut: stdout.cut,
		TimedOut: ctx.Err() == nil && limited.Err() != nil && cmd.ProcessState.ExitCode() != 0,
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return f, ctx.Err()
	case err == nil, f.TimedOut, errors.As(err, &exit), errors.Is(err, exec.ErrWaitDelay):
		return f, nil
	}
	return f, err
}

// kept is the beginning of an output.
type kept struct {
	data  []byte
	limit int64
	cut   bool
}

// Write implements io.Writer.
func (k *kept) Write(p []byte) (int, error) {
	room := min(int64(len(p)), k.limit-int64(len(k.data)))
	k.data = append(k.data, p[:room]...)
	k.cut = k.cut || room < int64(len(p))
	return len(p), nil
}
