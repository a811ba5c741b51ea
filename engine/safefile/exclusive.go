package safefile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// strayMark ends the names of the temporaries that Swap and Create make.
const strayMark = ".tmp"

// strayName returns a name beside path that nobody else has: writers that
// share no lock must not write to one temporary.
func strayName(path string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return path + "." + strconv.Itoa(os.Getpid()) + "." + hex.EncodeToString(b[:]) + strayMark
}

// IsStray reports whether a file name is that of a temporary of Swap or
// Create, which a killed writer may leave behind.
func IsStray(name string) bool { return strings.HasSuffix(name, strayMark) }

// Swap replaces path by data, like Replace, but from a temporary whose name
// is drawn by lot, for files that are written without a common lock. The
// directory must exist.
func Swap(path string, data []byte) error {
	temp, err := stray(path, data)
	if err != nil {
		return err
	}
	if err := Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Create makes path with data in it, whole or not at all. A path that is
// taken, by whatever it is, is an error for which errors.Is(err, fs.ErrExist)
// holds, and stays as it is. The directory must exist.
func Create(path string, data []byte) error {
	temp, err := stray(path, data)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := before("create", path); err != nil {
		return err
	}
	err = os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without links: what is there is made first, and then
		// filled.
		err = createPlain(path, data)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

func createPlain(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// stray writes data to a temporary beside path and syncs it.
func stray(path string, data []byte) (string, error) {
	name := strayName(path)
	if err := before("create", name); err != nil {
		return "", err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
	if err != nil {
		return "", fmt.Errorf("create temporary: %w", err)
	}
	_, err = Write(f, data)
	if err == nil {
		err = before("sync", name)
	}
	if err == nil {
		err = datasync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(name)
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return name, nil
}

// Append adds data to the end of path in one write and syncs it; a file that
// does not exist is made.
func Append(path string, data []byte) error {
	if err := before("create", path); err != nil {
		return err
	}
	_, statErr := os.Lstat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|openFlags, FileMode)
	if err != nil {
		return fmt.Errorf("open to append: %w", err)
	}
	_, err = Write(f, data)
	if err == nil {
		err = before("sync", path)
	}
	if err == nil {
		err = datasync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("append to %s: %w", path, err)
	}
	if statErr != nil {
		return SyncDir(filepath.Dir(path))
	}
	return nil
}

// ErrLarge is a file that is larger than its reader takes.
var ErrLarge = errors.New("more than the limit")

// ReadOwn is ReadSmall for a file that is only taken as it is: no link in its
// place is followed.
func ReadOwn(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|lockFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !now.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: not a regular file", path)
	case now.Size() > limit:
		return nil, fmt.Errorf("read %s: %d bytes, %w of %d", path, now.Size(), ErrLarge, limit)
	}
	b := make([]byte, now.Size())
	if n, err := f.ReadAt(b, 0); err != nil && n < len(b) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return b, nil
}
