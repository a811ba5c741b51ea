package watch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// chunk is how many entries of a directory are read at a time.
const chunk = 512

// Summary is what a walk saw.
type Summary struct {
	Real       string // canonical path of the root
	Files      int    // files visited
	Dirs       int    // directories read, the root included
	Entries    int    // directory entries looked at
	Unreadable int    // directories and files that could not be read
	Truncated  bool   // a limit of the root hid a part of it
}

// Walk calls visit for each regular file under root that root.Keep keeps,
// with its canonical path and its own (never followed) file information.
// Directories come in no promised order. A symbolic link to a directory is
// followed after all real directories, and no directory is read twice, so
// cycles end and a file has its own name. What cannot be read is counted and
// passed over.
//
// The error is ctx.Err(), or says why the root itself cannot be walked
// (fs.ErrNotExist if it is missing).
func Walk(ctx context.Context, root Root, visit func(path string, info fs.FileInfo)) (Summary, error) {
	s, err := resolve(root)
	if err != nil {
		return Summary{}, err
	}
	w := walker{scope: s, seen: map[fileID]bool{}}
	w.file = func(e fs.DirEntry, path, rel string) {
		info, err := e.Info()
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				w.sum.Unreadable++
			}
			return
		}
		if info.Mode().IsRegular() {
			w.sum.Files++
			visit(path, info)
		}
	}
	w.sum.Real = s.real
	err = w.walk(ctx, step{path: s.real})
	return w.sum, err
}

// step is a directory or a symbolic link still to be entered.
type step struct {
	path  string // canonical, but for the last element of a link
	rel   string // "" for the root
	depth int
	via   string // the link it was reached through, "" if none
}

// walker reads a tree. Its callbacks may be nil.
type walker struct {
	scope
	seen map[fileID]bool
	sum  Summary
	// enter is called before a directory is read; false passes over it, an
	// error ends the walk.
	enter func(d step, info fs.FileInfo) (bool, error)
	// link is called for each symbolic link that is kept as a directory;
	// target is "" if it leads to none.
	link func(l step, target string, id fileID)
	// file is called for each kept entry that is a regular file.
	file func(e fs.DirEntry, path, rel string)
	// denied is called for a directory that could not be read.
	denied func(d step, err error)
	// entries is called after a directory was read.
	entries func(d step, n int)
}

// walk reads the tree below first, which may be a link.
func (w *walker) walk(ctx context.Context, first step) error {
	dirs, links := []step{}, []step{}
	push := func(s step, mode fs.FileMode) {
		if mode&fs.ModeSymlink != 0 {
			links = append(links, s)
		} else {
			dirs = append(dirs, s)
		}
	}
	info, err := os.Lstat(first.path)
	if err != nil {
		return nil // gone again
	}
	push(first, info.Mode())
	for {
		var err error
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case len(dirs) > 0:
			d := dirs[len(dirs)-1]
			dirs = dirs[:len(dirs)-1]
			err = w.read(d, push)
		case len(links) > 0:
			l := links[0]
			links = links[1:]
			if d, ok := w.follow(l); ok {
				dirs = append(dirs, d)
			}
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// follow resolves a link to a directory that was not read yet.
func (w *walker) follow(l step) (step, bool) {
	target, id := linkTarget(l.path)
	if w.link != nil {
		w.link(l, target, id)
	}
	if target == "" || w.seen[id] || w.excluded(target) {
		return step{}, false
	}
	return step{path: target, rel: l.rel, depth: l.depth, via: l.path}, true
}

// linkTarget returns the directory that a symbolic link leads to, "" if none.
func linkTarget(path string) (string, fileID) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fileID{}
	}
	info, err := os.Lstat(target)
	if err != nil || !info.IsDir() {
		return "", fileID{}
	}
	return target, idOf(target, info)
}

// read reads one directory. Its error ends the walk.
func (w *walker) read(d step, push func(step, fs.FileMode)) error {
	info, err := os.Lstat(d.path)
	if err != nil || !info.IsDir() {
		return nil // gone or replaced since its parent was read
	}
	id := idOf(d.path, info)
	if w.seen[id] {
		return nil
	}
	if w.enter != nil {
		if ok, err := w.enter(d, info); !ok || err != nil {
			return err
		}
	}
	w.seen[id] = true
	f, err := openDir(d.path)
	if err != nil {
		w.refuse(d, err)
		return nil
	}
	defer f.Close()
	w.sum.Dirs++
	before := w.sum.Entries
	for {
		list, err := f.ReadDir(chunk)
		for _, e := range list {
			if w.sum.Entries >= w.Entries {
				w.sum.Truncated = true
				break
			}
			w.sum.Entries++
			w.entry(d, e, push)
		}
		if errors.Is(err, io.EOF) || w.sum.Truncated {
			break
		}
		if err != nil {
			w.refuse(d, err)
			break
		}
	}
	if w.entries != nil {
		w.entries(d, w.sum.Entries-before)
	}
	return nil
}

func (w *walker) refuse(d step, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	w.sum.Unreadable++
	if w.denied != nil {
		w.denied(d, err)
	}
}

func (w *walker) entry(d step, e fs.DirEntry, push func(step, fs.FileMode)) {
	mode := e.Type()
	isDir := mode&(fs.ModeDir|fs.ModeSymlink) != 0
	if !isDir && !mode.IsRegular() {
		return
	}
	path, rel := below(d.path, e.Name()), relBelow(d.rel, e.Name())
	if !w.keep(rel, path, isDir) {
		return
	}
	switch {
	case !isDir:
		if w.file != nil {
			w.file(e, path, rel)
		}
	case d.depth >= w.Depth:
		// A link to a file is no directory that the limit hides.
		if mode.IsDir() {
			w.sum.Truncated = true
		}
	default:
		push(step{path: path, rel: rel, depth: d.depth + 1, via: d.via}, mode)
	}
}
