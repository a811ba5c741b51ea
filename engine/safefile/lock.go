package safefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"handoffd/engine/fault"
)

// LockWait is how long a mutating verb waits for another's lock.
const LockWait = 5 * time.Second

const lockPoll = 25 * time.Millisecond

// Lock is an advisory lock that the kernel frees when its holder ends,
// however it ends. The file is empty, never written and never deleted: taking
// a lock leaves no trace.
type Lock struct {
	fl   *flock.Flock
	path string
}

// inProcess keeps goroutines apart: a flock belongs to its open file, and
// waiting for another process's is a poll that goroutines would starve in.
var inProcess = struct {
	sync.Mutex
	held map[string]chan struct{}
}{held: map[string]chan struct{}{}}

// Acquire takes the lock at path, waiting at most wait. A lock that stays
// taken is fault.Locked and names the holder; a ctx that ends gives its error.
func Acquire(ctx context.Context, path string, wait time.Duration) (*Lock, error) {
	limited, cancel := context.WithTimeout(ctx, wait+time.Millisecond)
	defer cancel()
	if !enter(limited, path) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, held(path)
	}
	l, err := acquireFile(limited, path)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // the caller gave up; nobody may have held it
	}
	if err != nil {
		leave(path)
		return nil, err
	}
	return l, nil
}

func enter(ctx context.Context, path string) bool {
	for {
		inProcess.Lock()
		wait, busy := inProcess.held[path]
		if !busy {
			inProcess.held[path] = make(chan struct{})
			inProcess.Unlock()
			return true
		}
		inProcess.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return false
		}
	}
}

func leave(path string) {
	inProcess.Lock()
	close(inProcess.held[path])
	delete(inProcess.held, path)
	inProcess.Unlock()
}

func acquireFile(ctx context.Context, path string) (*Lock, error) {
	if err := MakeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fault.New(fault.Config, "lock %s is not a regular file", path).WithHint("move it away")
	}
	fl := newFlock(path)
	ok, err := fl.TryLock() // once at least, however short the wait
	if !ok && err == nil {
		ok, err = fl.TryLockContext(ctx, lockPoll)
	}
	if !ok {
		_ = fl.Close()
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return nil, held(path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// Someone may have deleted the file that we locked, and then the path
	// leads to another: whoever can lock it again is not protected by ours.
	for {
		again := newFlock(path)
		if ok, err := again.TryLock(); err != nil || !ok {
			_ = again.Close()
			break
		}
		_ = fl.Close()
		fl = again
	}
	return &Lock{fl: fl, path: path}, nil
}

func newFlock(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|lockFlags), flock.SetPermissions(FileMode))
}

// Release frees the lock.
func (l *Lock) Release() error {
	err := l.fl.Close()
	leave(l.path)
	return err
}

func held(path string) error {
	e := fault.New(fault.Locked, "held by another process")
	if pid := Holder(path); pid != "" {
		e = fault.New(fault.Locked, "held by process %s", pid)
	}
	return e.WithHint("try again when it has ended")
}
