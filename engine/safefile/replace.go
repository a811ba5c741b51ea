// Package safefile does what the engine does to files: replace, append,
// create exclusively, lock, and open what a stranger may have put there. A
// file is replaced or appended, never edited in place, and nothing is
// acknowledged before it is synced.
package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// The modes of everything that is written.
const (
	DirMode  fs.FileMode = 0o700
	FileMode fs.FileMode = 0o600
)

// interceptor is called before each effect on the disk.
var interceptor atomic.Pointer[func(op, path string) error]

// Intercept lets a test fail, or stop, before an effect: op is one of create,
// write, sync, rename, truncate, remove, syncdir. It returns how to undo it.
func Intercept(f func(op, path string) error) (restore func()) {
	old := interceptor.Swap(&f)
	return func() { interceptor.Store(old) }
}

// before asks the interceptor about an effect.
func before(op, path string) error {
	if f := interceptor.Load(); f != nil {
		return (*f)(op, path)
	}
	return nil
}

// Replace writes data to path: a temporary file in the same directory, synced,
// renamed, and the directory synced.
func Replace(path string, data []byte) error {
	var g Group
	defer g.Discard()
	if err := g.Replace(path, data); err != nil {
		return err
	}
	return g.Commit()
}

// Group is a set of files that are published together. The temporary files
// are written as they come, synced together, then renamed in the order they
// were added; the last rename is the commit point. It is used by one
// goroutine.
type Group struct {
	synced  []*os.File // appended files that must be on disk before any rename
	renames []rename
	dirs    []string // to sync besides those of the renames
	done    bool
}

type rename struct{ from, to string }

// tempSuffix marks temporaries, so that recovery can remove them.
const tempSuffix = ".tmp~"

// TempName returns the name of the temporary from which path is replaced. It
// is fixed: the holder of the session lock is the only writer.
func TempName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+tempSuffix)
}

// IsTemp reports whether a file name is that of a temporary.
func IsTemp(name string) bool {
	return len(name) > len(tempSuffix) && name[0] == '.' && name[len(name)-len(tempSuffix):] == tempSuffix
}

// Replace adds the replacement of path by data.
func (g *Group) Replace(path string, data []byte) error {
	f, err := CreateTemp(path)
	if err != nil {
		return err
	}
	if _, err := Write(f, data); err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	g.Add(f, path)
	return nil
}

// CreateTemp creates the temporary from which path will be replaced.
func CreateTemp(path string) (*os.File, error) {
	name := TempName(path)
	if err := before("create", name); err != nil {
		return nil, err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove stale %s: %w", name, err)
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, FileMode)
	if err != nil {
		return nil, fmt.Errorf("create temporary: %w", err)
	}
	return f, nil
}

// Add takes over an open file that must be on disk before the commit, and
// when to is not empty, renames it to that path.
func (g *Group) Add(f *os.File, to string) {
	g.synced = append(g.synced, f)
	if to != "" {
		g.renames = append(g.renames, rename{f.Name(), to})
	}
}

// SyncDir adds a directory that must be synced at the commit.
func (g *Group) SyncDir(dir string) { g.dirs = append(g.dirs, dir) }

// Commit syncs, renames and syncs the directories. After an error nothing
// that was added later than the failing rename is visible; where an earlier
// one is, the temporaries of the rest stay, so that what was begun can be
// completed.
func (g *Group) Commit() error {
	g.done = true
	if err := g.sync(); err != nil {
		g.removeTemps(0)
		return err
	}
	dirs := map[string]bool{}
	for _, d := range g.dirs {
		dirs[d] = true
	}
	for i, r := range g.renames {
		if err := Rename(r.from, r.to); err != nil {
			if i == 0 {
				g.removeTemps(0)
			}
			return err
		}
		dirs[filepath.Dir(r.to)] = true
	}
	for d := range dirs {
		if err := SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// sync flushes the files at the same time: each waits for the same disk.
func (g *Group) sync() error {
	errs := make([]error, len(g.synced))
	var wg sync.WaitGroup
	for i, f := range g.synced {
		if err := before("sync", f.Name()); err != nil {
			errs[i] = err
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = datasync(f)
		}()
	}
	wg.Wait()
	for i, f := range g.synced {
		if err := f.Close(); err != nil && errs[i] == nil {
			errs[i] = err
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("sync %s: %w", f.Name(), errs[i])
		}
	}
	g.synced = nil
	return errors.Join(errs...)
}

func (g *Group) removeTemps(from int) {
	for _, r := range g.renames[from:] {
		_ = os.Remove(r.from)
	}
}

// Discard closes and removes what was not committed. It is a no-op after
// Commit.
func (g *Group) Discard() {
	if g.done {
		return
	}
	g.done = true
	for _, f := range g.synced {
		_ = f.Close()
	}
	g.removeTemps(0)
}

// Rename moves from over to.
func Rename(from, to string) error {
	if err := before("rename", to); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// Truncate cuts an open file.
func Truncate(f *os.File, size int64) error {
	if err := before("truncate", f.Name()); err != nil {
		return err
	}
	return f.Truncate(size)
}

// Write appends p to an open file.
func Write(f *os.File, p []byte) (int, error) {
	if err := before("write", f.Name()); err != nil {
		return 0, err
	}
	return f.Write(p)
}

// Remove deletes a file; one that does not exist is no error.
func Remove(path string) error {
	if err := before("remove", path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncDir makes renames and creations in a directory durable. File systems
// that cannot do it are left alone.
func SyncDir(dir string) error {
	if err := before("syncdir", dir); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open directory to sync: %w", err)
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	if err != nil && !notSupported(err) {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// MakeDir creates a private directory and its parents.
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, DirMode); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	return nil
}
