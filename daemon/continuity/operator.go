package continuity

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/policy/continuation"
	"handoffd/policy/execute"
	"handoffd/policy/signed"
)

// operated is an answer of a verb that needs the key.
type operated[A any] struct {
	control.ContextHead
	Answer A `json:",embed"`
}

// operate runs a verb of the key's holder, in the user's own process.
func operate[A any](p Project, command string, q control.Continuity, keyless bool, verb func(continuation.Operator) (A, error)) (any, error) {
	head := control.ContextHead{Tool: "handoff", Command: command, DryRun: !q.Write}
	if !p.Private {
		return nil, fault.New(fault.Refused, "the project's key never enters a daemon").
			WithHint("handoffctl context %s does it in its own process", command)
	}
	root, err := project(q.Dir, p.CWD)
	if err != nil {
		return nil, operational(head, err)
	}
	o := continuation.Operator{DryRun: !q.Write, Ticket: p.Getenv("ADLC_TICKET"), Narrative: narrative, Tree: workingTree}
	o.Store, o.Ledger = p.stores(root)
	if !keyless {
		if o.Key, err = signed.ReadKey(p.Getenv(signed.KeyEnv), q.KeyFile); err != nil {
			return nil, operational(head, err)
		}
	}
	a, err := verb(o)
	if err != nil {
		return nil, operational(head, err)
	}
	return operated[A]{head, a}, nil
}

// Write does context write.
func (p Project) Write(ctx context.Context, q control.ContextWriteRequest) (any, error) {
	return operate(p, "write", q.Continuity, false, func(o continuation.Operator) (continuation.WriteResult, error) {
		return o.Write(ctx, continuation.WriteInput{Session: q.Session, Ticket: q.Ticket, Host: q.Host, Hash: q.Hash})
	})
}

// Resume does context resume.
func (p Project) Resume(ctx context.Context, q control.ContextResumeRequest) (any, error) {
	return operate(p, "resume", q.Continuity, false, func(o continuation.Operator) (continuation.ResumeResult, error) {
		return o.Resume(ctx, q.Session, q.Denier)
	})
}

// Bypass does context bypass.
func (p Project) Bypass(ctx context.Context, q control.ContextBypassRequest) (any, error) {
	return operate(p, "bypass", q.Continuity, false, func(o continuation.Operator) (continuation.BypassResult, error) {
		return o.Bypass(ctx, q.Session, q.Reason, q.Ticket)
	})
}

// Repair does context repair.
func (p Project) Repair(ctx context.Context, q control.ContextRepairRequest) (any, error) {
	return operate(p, "repair", q.Continuity, false, func(o continuation.Operator) (continuation.RepairResult, error) {
		switch {
		case q.Forget && q.Ledger:
			return continuation.RepairResult{}, fault.New(fault.Operational, "--forget and --ledger are two repairs")
		case q.Forget:
			return o.Forget(ctx, q.Session)
		case q.Ledger:
			return o.MendLedger(ctx)
		}
		return o.Repair(ctx, continuation.RepairInput{Session: q.Session, Ticket: q.Ticket, Hash: q.Hash, Host: q.Host})
	})
}

// Unlock does context unlock.
func (p Project) Unlock(ctx context.Context, q control.ContextUnlockRequest) (any, error) {
	return operate(p, "unlock", q.Continuity, true, func(o continuation.Operator) (continuation.UnlockResult, error) {
		return o.Unlock(ctx, continuation.UnlockInput{Session: q.Session, PID: q.PID, Started: q.Started, Host: q.Host, Nonce: q.Nonce})
	})
}

// Continue does context continue.
func (p Project) Continue(ctx context.Context, q control.ContextContinueRequest) (any, error) {
	return operate(p, "continue", q.Continuity, false, func(o continuation.Operator) (continuation.ContinueResult, error) {
		return o.Continue(ctx, continuation.ContinueInput{Denier: q.Denier, Successor: q.Session, From: q.From, Ticket: q.Ticket, Host: q.Host})
	})
}

const (
	treePatience = 10 * time.Second
	treeBytes    = 1 << 20
)

// workingTree asks git for the branch and the state of a checkout. It fails
// soft, and runs nothing that the checkout configures.
func workingTree(ctx context.Context, dir string) (branch string, status []string) {
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	git, err := exec.LookPath("git")
	if err != nil || !filepath.IsAbs(git) {
		return "", nil
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(ctx, git, append([]string{"-C", dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=true"}, args...)...)
		cmd.Env = append(execute.Scrub(cmd.Environ()), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		if err != nil {
			return ""
		}
		return string(out[:min(len(out), treeBytes)])
	}
	branch = strings.TrimSpace(run("symbolic-ref", "--short", "-q", "HEAD"))
	if branch == "" {
		branch = strings.TrimSpace(run("rev-parse", "--short", "HEAD"))
	}
	for l := range strings.Lines(run("status", "--porcelain")) {
		status = append(status, strings.TrimRight(l, "\n"))
	}
	return branch, status
}
