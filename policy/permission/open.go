package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// openTries is how often a file that moves while it is opened is judged again.
const openTries = 5

var errMoved = errors.New("moved while it was opened")

// OpenRead decides about reading target and, when that is allowed, opens the
// file that was judged and no other: no link is followed that was not followed
// in judging, and where the open file is, is judged again. A refusal is in the
// decision, with neither file nor error. Only regular files are opened, and
// nothing blocks.
func (s Scope) OpenRead(risk Risk, target string) (*os.File, Decision, error) {
	var last error
	for range openTries {
		at, err := locate(s.disk, s.absolute(target))
		if err != nil {
			return nil, Decide(s.Policy, risk, ExternalPath), nil
		}
		d := Decide(s.Policy, risk, s.classify(at))
		if !d.Allowed() {
			return nil, d, nil
		}
		f, err := openPlace(at.path())
		if err == nil {
			now, known := locateOpen(f, s.disk, at)
			if known {
				if d := Decide(s.Policy, risk, s.classify(now)); !d.Allowed() {
					_ = f.Close()
					return nil, d, nil
				}
				return f, d, nil
			}
			_ = f.Close()
			err = errMoved
		}
		if last = err; !errors.Is(err, errMoved) {
			return nil, d, err
		}
	}
	return nil, Decide(s.Policy, risk, s.Classify(target)), fmt.Errorf("open %s: %w", target, last)
}

// openPlace opens a regular file at a path that has no links in it.
func openPlace(path string) (*os.File, error) {
	// A device may act on being opened, so it must not be.
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		return nil, errMoved
	}
	if !before.Mode().IsRegular() {
		return nil, notRegular(path, before)
	}
	f, err := openStraight(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func notRegular(path string, info fs.FileInfo) error {
	if info.IsDir() {
		return &fs.PathError{Op: "read", Path: path, Err: errors.New("is a directory")}
	}
	return &fs.PathError{Op: "read", Path: path, Err: errors.New("is not a regular file")}
}

// locateSame finds that the open file is the one at the place where it was
// looked for, judged by identity.
func locateSame(f *os.File, d Disk, at place) (place, bool) {
	now, err := locate(d, at.path())
	if err != nil {
		return place{}, false
	}
	there, err := os.Lstat(now.path())
	if err != nil {
		return place{}, false
	}
	info, err := f.Stat()
	return now, err == nil && os.SameFile(there, info)
}
