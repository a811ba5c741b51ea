// Package lockfile takes the locks of the published continuity tool, which are
// files that exist while their holder lives, under a lock of the kernel, which
// decides. Live locks of the published tool are honoured and its dead ones are
// moved away. It never waits for a live one and never removes a lock that it
// did not read.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
)

// maxLock bounds a lock file, in bytes.
const maxLock = 16 << 10

// wait is how long the kernel's lock is waited for: its holder is one of ours
// and writes a few small files.
const wait = 2 * time.Second

// Owner is who holds a lock, as far as its file says.
type Owner struct {
	PID  int
	Host string
	// Known says that the file could be read and names somebody.
	Known bool
	// Ours says that this program made it, which held the kernel's lock then:
	// whoever holds that now knows that the maker is dead, whatever its id.
	Ours bool
}

// Format is a kind of lock file.
type Format struct {
	// Body is what our own file says. It must differ from that of any other
	// lock.
	Body []byte
	// Parse reads whoever's.
	Parse func(raw []byte) Owner
	// Host is the name of this machine.
	Host string
}

// Lock is held until Release.
type Lock struct {
	kernel *safefile.Lock
	path   string
	body   []byte
}

// Take takes the lock at path. The kernel's is on another file, beside in
// .locks, so that nobody takes it for the published tool's. The error is
// fault.Refused when somebody else has it.
func Take(ctx context.Context, path string, f Format) (*Lock, error) {
	kernel, err := safefile.Acquire(ctx, Kernel(path), wait)
	if err != nil {
		if fault.Is(err, fault.Locked) {
			return nil, fault.New(fault.Refused, "%s is %w", path, err).WithHint("try again when it has ended")
		}
		return nil, err
	}
	l := &Lock{kernel, path, f.Body}
	if err := l.show(f); err != nil {
		_ = kernel.Release()
		return nil, err
	}
	return l, nil
}

// Kernel is the file that the kernel's lock is on.
func Kernel(path string) string {
	return filepath.Join(filepath.Dir(path), ".locks", filepath.Base(path))
}

// show makes the file that the published tool looks at.
func (l *Lock) show(f Format) error {
	for range 3 {
		err := safefile.Create(l.path, f.Body)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		raw, err := safefile.ReadSmall(l.path, maxLock)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fault.New(fault.Refused, "the lock %s cannot be read: %w", l.path, err).WithHint("see who made it, and move it away")
		}
		owner := f.Parse(raw)
		switch {
		case !owner.Known:
			return fault.New(fault.Refused, "the lock %s is not understood", l.path).WithHint("see who made it, and move it away")
		case owner.Host != f.Host:
			return fault.New(fault.Refused, "the lock %s is held on another machine (%s)", l.path, owner.Host)
		case !owner.Ours && owner.PID != os.Getpid() && Alive(owner.PID):
			return fault.New(fault.Refused, "the lock %s is held by process %d", l.path, owner.PID).WithHint("try again when it has ended")
		}
		if err := Reclaim(l.path, raw); err != nil {
			return err
		}
	}
	return fault.New(fault.Refused, "the lock %s is fought over", l.path).WithHint("try again")
}

// Reclaim removes a dead lock that reads raw. Between the reading and the
// removing another may have taken its place, so it is moved aside first, and
// put back if it is not the one that was read.
func Reclaim(path string, raw []byte) error {
	aside := path + ".dead." + time.Now().UTC().Format("20060102T150405.000000000") + ".tmp"
	if err := safefile.Rename(path, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("reclaim lock: %w", err)
	}
	moved, err := safefile.ReadSmall(aside, maxLock)
	if err == nil && string(moved) == string(raw) {
		return safefile.Remove(aside)
	}
	if linkErr := os.Link(aside, path); linkErr != nil && !errors.Is(linkErr, fs.ErrExist) {
		return fmt.Errorf("put back the lock %s from %s: %w", path, aside, linkErr)
	}
	_ = os.Remove(aside)
	return fault.New(fault.Refused, "the lock %s changed hands", path).WithHint("try again")
}

// Release gives the lock back: the file only if it is still ours.
func (l *Lock) Release() error {
	raw, err := safefile.ReadSmall(l.path, maxLock)
	if err == nil && string(raw) == string(l.body) {
		err = safefile.Remove(l.path)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.kernel.Release())
}
