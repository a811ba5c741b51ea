package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/engine/session"
)

// Holds reports whether the committed bytes of an appended file are what the
// manifest says. It reads all of them.
func Holds(dir string, a session.Artifact) bool {
	f, err := os.Open(filepath.Join(dir, a.Name))
	if err != nil {
		return false
	}
	defer f.Close()
	h := seal.NewHash()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(f, a.Bytes), make([]byte, 256<<10))
	return err == nil && n == a.Bytes && h.Sum() == a.SHA256
}

// CutBehind drops what stands behind the committed bytes of appended files,
// and files of which nothing is committed.
func CutBehind(dir string, committed []session.Artifact) error {
	for _, name := range journalNames {
		var size int64
		for _, a := range committed {
			if a.Name == name {
				size = a.Bytes
			}
		}
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= size {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at %s: %w", name, err)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", name, err)
		}
		err = safefile.Truncate(f, size)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return fmt.Errorf("cut %s: %w", name, err)
		}
	}
	return nil
}

// SetAside keeps a damaged file in quarantine under a name of its own.
func SetAside(dir, name string, revision int) error {
	if err := safefile.MakeDir(filepath.Join(dir, QuarantineDir)); err != nil {
		return err
	}
	to := filepath.Join(dir, QuarantineDir, fmt.Sprintf("damaged-r%d-%s", revision, name))
	if err := safefile.Rename(filepath.Join(dir, name), to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
