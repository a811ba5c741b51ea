package continuation

import (
	"context"
	"os"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/policy/deny"
	"handoffd/policy/lockfile"
)

// UnlockInput is what the lock says, all of it: whoever gives it has read it.
type UnlockInput struct {
	Session, Started, Host, Nonce string
	PID                           int
}

// UnlockResult is what came of an unlock.
type UnlockResult struct {
	Lock    *deny.LockFile `json:"lock,omitempty"`
	Removed bool           `json:"removed"`
}

// Unlock removes the lock of a process of this machine that is dead.
func (o Operator) Unlock(ctx context.Context, in UnlockInput) (r UnlockResult, err error) {
	if err := named("session", in.Session); err != nil {
		return r, err
	}
	if in.Started == "" || in.Host == "" || in.Nonce == "" || in.PID <= 0 {
		return r, fault.New(fault.Operational, "unlock needs --session, --pid, --started-at, --host and --nonce, as the lock has them")
	}
	l, raw, err := o.Store.ReadLock(in.Session)
	if err != nil {
		return r, err
	}
	r.Lock = &l
	switch {
	case l.Session != in.Session || l.PID != in.PID || l.Started != in.Started || l.Host != in.Host || l.Nonce != in.Nonce:
		return r, fault.New(fault.Refused, "the lock of session %q is another one", in.Session)
	case l.Host != o.Store.Host:
		return r, fault.New(fault.Refused, "the lock of session %q is of another machine (%s)", in.Session, l.Host)
	}
	// Whoever of ours holds it holds the kernel's too.
	kernel, err := safefile.Acquire(ctx, lockfile.Kernel(o.Store.LockPath(in.Session)), 0)
	if err != nil {
		if fault.Is(err, fault.Locked) {
			err = fault.New(fault.Refused, "the lock of session %q is %w", in.Session, err)
		}
		return r, err
	}
	defer func() { _ = kernel.Release() }()
	if !l.Ours() && (l.PID == os.Getpid() || lockfile.Alive(l.PID)) {
		return r, fault.New(fault.Refused, "the lock of session %q is held by process %d, which lives", in.Session, l.PID)
	}
	if o.DryRun {
		return r, nil
	}
	if err := lockfile.Reclaim(o.Store.LockPath(in.Session), raw); err != nil {
		return r, err
	}
	r.Removed = true
	return r, nil
}
