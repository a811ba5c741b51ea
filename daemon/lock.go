package daemon

import (
	"context"
	"path/filepath"
	"time"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
)

// lockName is the daemon's lock in the store.
const lockName = "daemon.lock"

// lockWait lets a daemon that is ending end.
const lockWait = 250 * time.Millisecond

// locks are what keeps a second daemon away: from the store, and from the
// socket, which two daemons of two stores could share.
type locks struct{ held []*safefile.Lock }

// acquire takes both. The error is fault.Locked and names the other daemon.
func acquire(ctx context.Context, root, socket string) (*locks, error) {
	l := &locks{}
	for _, path := range []string{filepath.Join(root, store.LocksDir, lockName), socket + control.LockSuffix} {
		lock, err := safefile.Acquire(ctx, path, lockWait)
		if err != nil {
			l.release()
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err() // not tried to the end
		case fault.Is(err, fault.Locked):
			return nil, already(path)
		default:
			return nil, err
		}
		l.held = append(l.held, lock)
	}
	return l, nil
}

func already(path string) error {
	pid := safefile.Holder(path)
	if pid == "" {
		pid = "unknown"
	}
	return fault.New(fault.Locked, "already running, pid %s", pid).WithHint("see: handoffctl status")
}

func (l *locks) release() {
	for i := len(l.held) - 1; i >= 0; i-- {
		_ = l.held[i].Release()
	}
}
