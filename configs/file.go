package configs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"handoffd/engine/fault"
)

// FileMax is the size of the largest configuration that is read, in bytes.
const FileMax = 1 << 20

// errAbsent says that nothing is at the path.
var errAbsent = errors.New("no such file")

// errUnsearchable is in the chain of readFile's error when nobody can tell
// whether the file is there.
var errUnsearchable = errors.New("its directory may not be searched")

// readFile returns the content of the file at path and what was opened. The
// error is errAbsent when nothing is there, else a fault.Config. A link that
// leads nowhere is there, and wrong.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	if _, err := os.Lstat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
			return nil, nil, errAbsent
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil, fault.New(fault.Config, "cannot read %s: %w", path, errUnsearchable)
		}
		return nil, nil, fault.New(fault.Config, "cannot read %s: %w", path, cause(err))
	}
	// Opening a FIFO would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, fault.New(fault.Config, "cannot read %s: %w", path, cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, fault.New(fault.Config, "cannot read %s: %w", path, cause(err))
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fault.New(fault.Config, "%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, FileMax+1))
	if err != nil {
		return nil, nil, fault.New(fault.Config, "cannot read %s: %w", path, cause(err))
	}
	if len(text) > FileMax {
		return nil, nil, fault.New(fault.Config, "%s is larger than %d bytes", path, FileMax)
	}
	return text, info, nil
}

// cause strips the path that a message names already.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// trusted refuses a file, open as info, that somebody other than the user or
// root could have written or can put another in the place of.
func trusted(path string, info fs.FileInfo) error {
	link, err := os.Lstat(path)
	if err != nil {
		return fault.New(fault.Config, "cannot read %s: %w", path, cause(err))
	}
	for _, i := range []fs.FileInfo{info, link} {
		if uid, foreign := foreignOwner(i); foreign {
			return fault.New(fault.Config, "%s belongs to user %d", path, uid).
				WithHint("the daemon reads only a configuration of its own user or root: chown it, or copy it")
		}
	}
	if hasModes && info.Mode().Perm()&0o022 != 0 {
		return fault.New(fault.Config, "%s can be written by other users (mode %#o)", path, info.Mode().Perm()).
			WithHint("chmod go-w %s", path)
	}
	// A link is as good as the directory that holds it and the one it leads to.
	dirs := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	for _, dir := range dirs {
		d, err := os.Stat(dir)
		if err != nil {
			return fault.New(fault.Config, "cannot read %s: %w", dir, cause(err))
		}
		if uid, foreign := foreignOwner(d); foreign {
			return fault.New(fault.Config, "%s is in a directory of user %d", path, uid).
				WithHint("move it into a directory of your own")
		}
		if hasModes && d.Mode().Perm()&0o002 != 0 && d.Mode()&fs.ModeSticky == 0 {
			return fault.New(fault.Config, "%s is in a directory that everybody can write", path).
				WithHint("chmod o-w %s", dir)
		}
	}
	return nil
}
