package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/engine/session"
)

// Mark is how far an appended file is decided: the bytes, and the state of
// their hash so that it can go on without reading them.
type Mark struct {
	Bytes int64  `json:"bytes"`
	Hash  []byte `json:"hash,omitempty"`
}

// appender grows one append-only file of a session. Bytes before the mark are
// decided for ever. Bytes after it stand for the unfinished end of a source:
// if the same bytes are written again they stay, else the file is replaced, so
// that a reader who goes by the manifest never sees them change under it.
type appender struct {
	dir, name string
	hash      *seal.Hash
	size      int64 // written so far, decided or not
	mark      Mark  // as of the last build, then as set by settle
	committed session.Artifact
	before    int64 // committed bytes of the last build

	old  []byte // undecided bytes of the last build that were not met yet
	f    *os.File
	buf  []byte // whole lines or entries, not written yet
	temp bool
}

// appendBuffer is how much is gathered before it is written. What one Write
// brings is never parted, so that a reader meets whole lines.
const appendBuffer = 128 << 10

// openAppender checks the file against what is committed and cuts off what is
// not. Damage within the decided bytes is fault.Integrity.
func openAppender(dir, name string, mark Mark, committed session.Artifact) (*appender, error) {
	hash, err := seal.RestoreHash(mark.Hash)
	if err != nil {
		return nil, fault.New(fault.Integrity, "%s: %w", name, err)
	}
	a := &appender{dir: dir, name: name, hash: hash, size: mark.Bytes, mark: mark, committed: committed, before: max(mark.Bytes, committed.Bytes)}
	info, err := os.Lstat(a.path())
	if errors.Is(err, fs.ErrNotExist) {
		if mark.Bytes > 0 {
			return nil, fault.New(fault.Integrity, "%s missing", name)
		}
		return a, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "look at %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New(fault.Integrity, "%s is not a regular file", name)
	}
	if info.Size() < mark.Bytes {
		return nil, fault.New(fault.Integrity, "%s torn: %d of %d bytes", name, info.Size(), mark.Bytes)
	}
	end := min(committed.Bytes, info.Size())
	if end > mark.Bytes {
		f, err := os.Open(a.path())
		if err != nil {
			return nil, fault.New(fault.Internal, "open %s: %w", name, err)
		}
		defer f.Close()
		a.old = make([]byte, end-mark.Bytes)
		if _, err := f.ReadAt(a.old, mark.Bytes); err != nil {
			return nil, fault.New(fault.Internal, "read %s: %w", name, err)
		}
	}
	return a, nil
}

func (a *appender) path() string { return filepath.Join(a.dir, a.name) }

// intact reports whether the file is as committed, undecided end included.
func (a *appender) intact() bool {
	info, err := os.Lstat(a.path())
	if err != nil {
		return a.committed.Bytes == 0 && errors.Is(err, fs.ErrNotExist)
	}
	if info.Size() != a.committed.Bytes {
		return false
	}
	if len(a.old) == 0 {
		return true
	}
	h := a.hash.Clone()
	_, _ = h.Write(a.old)
	return h.Sum() == a.committed.SHA256
}

// Write implements io.Writer.
func (a *appender) Write(p []byte) (int, error) {
	n := len(p)
	if len(a.old) > 0 {
		met := min(len(a.old), len(p))
		if !bytes.Equal(a.old[:met], p[:met]) {
			if err := a.replace(); err != nil {
				return 0, err
			}
		} else {
			a.old = a.old[met:]
			_, _ = a.hash.Write(p[:met])
			a.size += int64(met)
			p = p[met:]
			if len(p) == 0 {
				return n, nil
			}
		}
	}
	if len(a.buf)+len(p) > appendBuffer {
		if err := a.flush(); err != nil {
			return 0, err
		}
	}
	a.buf = append(a.buf, p...)
	_, _ = a.hash.Write(p)
	a.size += int64(len(p))
	return n, nil
}

// flush writes what was gathered.
func (a *appender) flush() error {
	if len(a.buf) == 0 {
		return nil
	}
	if err := a.open(a.size - int64(len(a.buf))); err != nil {
		return err
	}
	if _, err := safefile.Write(a.f, a.buf); err != nil {
		return fmt.Errorf("append to %s: %w", a.name, err)
	}
	a.buf = a.buf[:0]
	return nil
}

// open positions the file for appending at the given offset, dropping what a
// crashed build left behind it.
func (a *appender) open(at int64) error {
	if a.f != nil {
		return nil
	}
	if err := safefile.MakeDir(filepath.Dir(a.path())); err != nil {
		return err
	}
	f, err := os.OpenFile(a.path(), os.O_RDWR|os.O_CREATE, safefile.FileMode)
	if err != nil {
		return fmt.Errorf("open %s: %w", a.name, err)
	}
	a.f = f
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at %s: %w", a.name, err)
	}
	if info.Size() > at {
		if err := safefile.Truncate(f, at); err != nil {
			return fmt.Errorf("cut %s: %w", a.name, err)
		}
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return fmt.Errorf("seek %s: %w", a.name, err)
	}
	return nil
}

// replace continues in a copy, because undecided bytes turned out otherwise.
func (a *appender) replace() error {
	src, err := os.Open(a.path())
	if err != nil {
		return fmt.Errorf("open %s: %w", a.name, err)
	}
	defer src.Close()
	f, err := safefile.CreateTemp(a.path())
	if err != nil {
		return err
	}
	if _, err := io.Copy(fileWriter{f}, io.LimitReader(src, a.size-int64(len(a.buf)))); err != nil {
		_ = f.Close()
		return fmt.Errorf("copy %s: %w", a.name, err)
	}
	a.f, a.temp, a.old = f, true, nil
	return nil
}

// settle marks everything written so far as decided.
func (a *appender) settle() { a.mark = Mark{Bytes: a.size, Hash: a.hash.Save()} }

// finish hands the file over to the group that commits the build.
func (a *appender) finish(g *safefile.Group) error {
	if len(a.old) > 0 { // the new end is shorter than the old one
		if err := a.replace(); err != nil {
			return err
		}
	}
	a.committed = session.Artifact{Name: a.name, Bytes: a.size, SHA256: a.hash.Sum()}
	if err := a.flush(); err != nil {
		return err
	}
	if a.f == nil {
		return nil
	}
	to := ""
	if a.temp {
		to = a.path()
	}
	g.Add(a.f, to)
	a.f = nil
	return nil
}

// discard drops what was written. A failure leaves it behind the committed
// bytes, where the next build drops it.
func (a *appender) discard() {
	if a.f == nil {
		return
	}
	if info, err := a.f.Stat(); err == nil && !a.temp && info.Size() > a.before {
		_ = safefile.Truncate(a.f, a.before)
	}
	_ = a.f.Close()
	if a.temp || a.before == 0 {
		_ = os.Remove(a.f.Name())
	}
	a.f = nil
}

// fileWriter writes through the one place that tests can fail.
type fileWriter struct{ f *os.File }

func (w fileWriter) Write(p []byte) (int, error) { return safefile.Write(w.f, p) }
