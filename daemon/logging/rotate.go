package logging

import (
	"os"
	"sync"
)

// Rotated is a log file that is replaced when it has grown too long; its
// predecessor is kept with the suffix ".1". It is safe for concurrent use.
type Rotated struct {
	path string
	max  int64 // 0 never replaces

	mu   sync.Mutex // guards what follows
	f    *os.File
	size int64
}

// OpenRotated opens a log file for appending, as OpenFile does. max is the
// length in bytes at which it is replaced, 0 for never.
func OpenRotated(path string, max int64) (*Rotated, error) {
	r := &Rotated{path: path, max: max}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Rotated) open() error {
	f, err := OpenFile(r.path)
	if err != nil {
		return err
	}
	r.f, r.size = f, 0
	if info, err := f.Stat(); err == nil {
		r.size = info.Size()
	}
	return nil
}

// Write implements io.Writer. A file that cannot be replaced is written on.
func (r *Rotated) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.max > 0 && r.size > 0 && r.size+int64(len(p)) > r.max {
		old := r.f
		if os.Rename(r.path, r.path+".1") == nil && r.open() == nil {
			_ = old.Close()
		}
	}
	n, err := r.f.Write(p)
	r.size += int64(n)
	return n, err
}

// Reopen opens the path again, after somebody else has moved the file away.
func (r *Rotated) Reopen() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.f
	if err := r.open(); err != nil {
		return err
	}
	return old.Close()
}

// Close closes the file.
func (r *Rotated) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.f.Close()
}
