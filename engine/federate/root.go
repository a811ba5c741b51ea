// Package federate reads the sessions of another store, which may be anyone's:
// nothing outside of its directory is opened, nothing that is no regular file,
// and nothing without a limit; what it says of itself is checked before it
// counts. It writes nothing, and nothing it reads is taken as a path of ours.
package federate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"handoffd/engine/fault"
	"handoffd/engine/store"
)

// Limits of what is read of another store.
const (
	// maxSessions bounds the sessions of one root.
	maxSessions = 200_000
	// maxManifest, maxBrief and maxTimeline bound its files, in bytes.
	maxManifest = 8 << 20
	maxBrief    = 4 << 20
	maxTimeline = 8 << 30
	// maxLine bounds a line of a timeline, in bytes.
	maxLine = 64 << 20
	// maxTurns bounds the turns of a session.
	maxTurns = 20_000_000
	// maxName bounds ids, labels and other short text, in bytes.
	maxName = 4 << 10
)

// Root is another store, open for reading.
type Root struct {
	// Name is the root as the user gave it.
	Name string
	dir  *os.Root
}

// Open opens the store whose directory is dir. The error is fault.Missing when
// there is no store.
func Open(name, dir string) (*Root, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Missing, "no such directory")
	case err != nil:
		return nil, fault.New(fault.Missing, "cannot be read: %w", err)
	case !info.IsDir():
		return nil, fault.New(fault.Missing, "not a directory")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.New(fault.Missing, "cannot be read: %w", err)
	}
	if info, err := root.Stat(store.ProjectsDir); err != nil || !info.IsDir() {
		_ = root.Close()
		return nil, fault.New(fault.Missing, "no %s/ directory in it", store.ProjectsDir)
	}
	return &Root{Name: name, dir: root}, nil
}

// Close gives the directory back.
func (r *Root) Close() error { return r.dir.Close() }

// Same reports whether the root is the store at dir.
func (r *Root) Same(dir string) bool {
	a, err := r.dir.Stat(".")
	if err != nil {
		return false
	}
	b, err := os.Stat(dir)
	return err == nil && os.SameFile(a, b)
}

// Refused is an entry that is passed over, and why.
type Refused struct {
	store.Location
	Err error
}

// Sessions lists what look like sessions, in order, and what was refused. A
// link counts as neither: what it names may lie anywhere.
func (r *Root) Sessions() (list []store.Location, refused []Refused, err error) {
	projects, links, err := r.dirs(store.ProjectsDir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range links {
		refused = append(refused, Refused{store.Location{Project: name}, errLink})
	}
	for _, p := range projects {
		dirs, links, err := r.dirs(filepath.Join(store.ProjectsDir, p))
		if err != nil {
			refused = append(refused, Refused{store.Location{Project: p}, err})
			continue
		}
		for _, name := range links {
			refused = append(refused, Refused{store.Location{Project: p, Dir: name}, errLink})
		}
		for _, d := range dirs {
			if len(list) == maxSessions {
				return list, refused, fault.New(fault.Integrity, "more than %d sessions", maxSessions)
			}
			list = append(list, store.Location{Project: p, Dir: d})
		}
	}
	return list, refused, nil
}

var errLink = fault.New(fault.Integrity, "a symbolic link is not followed")

// dirs lists the directories in dir, and the links that may be some.
func (r *Root) dirs(dir string) (dirs, links []string, err error) {
	f, err := r.dir.Open(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", dir, err)
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			switch {
			case strings.HasPrefix(e.Name(), "."):
			case e.Type()&fs.ModeSymlink != 0:
				links = append(links, e.Name())
			case e.IsDir():
				dirs = append(dirs, e.Name())
			}
		}
		if len(dirs) > maxSessions {
			return nil, nil, fault.New(fault.Integrity, "more than %d entries in %s", maxSessions, dir)
		}
		if err != nil {
			break // io.EOF, or what could be read
		}
	}
	slices.Sort(dirs)
	slices.Sort(links)
	return dirs, links, nil
}

// open opens a regular file of the root that is no link, without waiting for
// anybody.
func (r *Root) open(path string, limit int64) (*os.File, int64, error) {
	before, err := r.dir.Lstat(path)
	if err != nil {
		return nil, 0, err
	}
	if !before.Mode().IsRegular() {
		return nil, 0, fault.New(fault.Integrity, "%s is not a regular file", filepath.Base(path))
	}
	f, err := r.dir.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("open %s: %w", filepath.Base(path), err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fault.New(fault.Integrity, "%s is not a regular file", filepath.Base(path))
	case info.Size() > limit:
		err = fault.New(fault.Integrity, "%s has %d bytes, more than %d", filepath.Base(path), info.Size(), limit)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// read reads a small file.
func (r *Root) read(path string, limit int64) ([]byte, error) {
	f, size, err := r.open(path, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && n < len(b) {
		return nil, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return b, nil
}
