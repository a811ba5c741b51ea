// Package watch says which files under some directories may have changed.
//
// A Source reports hints: an Event names a file that may have changed, or a
// directory to scan. Hints may be missing (no kernel tells about everything)
// and may be too many; whoever acts on them also walks the roots on a slow
// clock with Walk, so that losing every event costs time and never data.
//
// Paths in events and walks are canonical: the directory part holds no
// symbolic link, so one file has one path. They are bytes, not text: a name
// may hold a newline or an escape sequence.
//
// The package never opens a file that is not a directory, never follows a
// symbolic link to a file, never writes, and knows nothing of what the files
// hold: Root.Keep decides what is of interest.
package watch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Limits of a root that sets none.
const (
	DefaultDepth   = 32
	DefaultEntries = 100_000
)

// Root is a directory to follow, with everything below it.
type Root struct {
	// Path is absolute. It may be a symbolic link and need not exist yet.
	Path string
	// Keep says whether to enter a directory or report a file. rel is
	// relative to Path, slash-separated, never empty. Nil keeps everything.
	// It is called from the goroutine of Run or Walk and must not block.
	Keep func(rel string, isDir bool) bool
	// Exclude lists absolute paths that are never entered nor reported, such
	// as our own store. They need not exist.
	Exclude []string
	// Depth is how many directories below Path are entered; 0 is
	// DefaultDepth.
	Depth int
	// Entries is how many directory entries are looked at in all; 0 is
	// DefaultEntries.
	Entries int
}

// Event is a hint. Events of one root come in no promised order, and one
// change may give several.
type Event struct {
	Root string // Root.Path as it was given
	// Path is canonical. It may be gone by the time the event is read.
	Path string
	// Rescan means that anything below the directory Path, or Path itself,
	// may have changed.
	Rescan bool
}

// Source reports changes until its context ends.
type Source interface {
	// Run follows the roots and calls emit from one goroutine, which must
	// not block for long. Each root is answered first with a Rescan, sent
	// when changes after it will be seen; a root that does not exist is
	// answered when it appears. Run returns ctx.Err(), and only after all it
	// started has ended. A Source is run once.
	Run(ctx context.Context, roots []Root, emit func(Event)) error
	// Status may be called at any time from any goroutine. It is empty
	// before Run.
	Status() []RootStatus
}

// The modes of a root.
const (
	ModeEvents  = "events"  // the kernel tells
	ModePolling = "polling" // directories are read again and again
	ModeMissing = "missing" // nothing there yet, or no longer
	ModeNone    = "none"    // not followed
)

// RootStatus says how a root is followed.
type RootStatus struct {
	Root string // Root.Path as it was given
	Mode string // one of the Mode constants
	Dirs int    // directories followed
	// Truncated means that a limit of the root hides a part of it.
	Truncated bool
	// Err says why the mode is not ModeEvents or what is not seen, "" when
	// all is well. It may hold bytes of file names.
	Err string
}

// scope is a Root made ready: limits filled in, symbolic links resolved.
type scope struct {
	Root
	real    string // canonical Path
	id      fileID
	exclude []string // as given and canonical
}

// resolve makes a scope of r. It fails with fs.ErrNotExist, or another error
// of the system, if the root is no directory that can be reached.
func resolve(r Root) (scope, error) {
	s := scope{Root: withLimits(r)}
	real, err := filepath.EvalSymlinks(r.Path)
	if err != nil {
		return s, err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return s, err
	}
	if !info.IsDir() {
		return s, &os.PathError{Op: "watch", Path: r.Path, Err: errNotDir}
	}
	s.real, s.id = real, idOf(real, info)
	for _, path := range r.Exclude {
		path = filepath.Clean(path)
		s.exclude = append(s.exclude, path)
		if c := canonical(path); c != path {
			s.exclude = append(s.exclude, c)
		}
	}
	if s.excluded(real) {
		return s, &os.PathError{Op: "watch", Path: r.Path, Err: errExcluded}
	}
	return s, nil
}

func withLimits(r Root) Root {
	if r.Depth <= 0 {
		r.Depth = DefaultDepth
	}
	if r.Entries <= 0 {
		r.Entries = DefaultEntries
	}
	return r
}

// canonical resolves the symbolic links in path, as far as it exists.
func canonical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(canonical(dir), filepath.Base(path))
}

func (s *scope) excluded(path string) bool {
	for _, e := range s.exclude {
		if within(path, e) {
			return true
		}
	}
	return false
}

func (s *scope) keep(rel, path string, isDir bool) bool {
	return (s.Keep == nil || s.Keep(rel, isDir)) && !s.excluded(path)
}

// within reports whether path is dir or below it. Both are clean.
func within(path, dir string) bool {
	if !strings.HasPrefix(path, dir) {
		return false
	}
	return len(path) == len(dir) || path[len(dir)] == filepath.Separator ||
		dir != "" && dir[len(dir)-1] == filepath.Separator
}

// below returns the path of a name in a directory. Unlike filepath.Join it
// does not clean, which is most of the cost of a walk.
func below(dir, name string) string {
	if dir != "" && dir[len(dir)-1] == filepath.Separator {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}

// relBelow returns the slash-separated relative path of a name.
func relBelow(rel, name string) string {
	if rel == "" {
		return name
	}
	return rel + "/" + name
}
