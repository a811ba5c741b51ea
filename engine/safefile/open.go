package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"handoffd/engine/fault"
)

// OpenSource opens a file that a stranger may have put there: only a regular
// file, without blocking on a FIFO, and the file that was looked at. Links
// are followed once; real is the path behind them.
func OpenSource(path string) (f *os.File, real string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, "", fault.New(fault.Usage, "resolve %s: %w", path, err)
	}
	real, err = filepath.EvalSymlinks(abs)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, "", fault.New(fault.SourceMissing, "source not found: %s", path)
		}
		return nil, "", fault.New(fault.SourceMissing, "source cannot be resolved: %w", err)
	}
	f, err = os.OpenFile(real, os.O_RDONLY|openFlags, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, "", fault.New(fault.SourceMissing, "source not found: %s", path)
		}
		return nil, "", fault.New(fault.SourceMissing, "open source: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.New(fault.SourceMissing, "source is not a regular file: %s", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, "", err
	}
	return f, real, nil
}

// ReadSmall reads a file of at most limit bytes; a larger one is an error.
func ReadSmall(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a regular file", path)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("read %s: %d bytes, more than %d", path, info.Size(), limit)
	}
	b := make([]byte, info.Size())
	n, err := f.ReadAt(b, 0)
	if err != nil && n < len(b) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return b, nil
}
