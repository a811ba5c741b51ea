package watch

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// handle passes one event of the backend to every tree it is about.
func (n *Notify) handle(ev fsnotify.Event) {
	// A bare CHMOD says nothing about content, and comes often.
	if ev.Name == "" || ev.Op&^fsnotify.Chmod == 0 {
		return
	}
	for _, t := range n.trees {
		if t.mode == ModeEvents {
			n.handleIn(t, ev)
		}
	}
}

func (n *Notify) handleIn(t *tree, ev fsnotify.Event) {
	path := ev.Name
	named := ev.Op & (fsnotify.Create | fsnotify.Remove | fsnotify.Rename)
	if d := t.nodes[path]; d != nil {
		if named != 0 {
			n.renew(t, d, ev.Op)
		}
		return
	}
	if _, ok := t.links[path]; ok {
		if named != 0 {
			n.resync(t)
		}
		return
	}
	parent := t.nodes[filepath.Dir(path)]
	if parent == nil {
		return
	}
	rel := relBelow(parent.rel, filepath.Base(path))
	if ev.Has(fsnotify.Create) {
		info, err := os.Lstat(path)
		switch {
		case err != nil: // gone again; whoever knew it should look
		case info.Mode()&(fs.ModeDir|fs.ModeSymlink) != 0:
			n.discover(t, parent, path, rel, info.IsDir())
			return
		case !info.Mode().IsRegular():
			return
		}
	}
	if t.scope.keep(rel, path, false) {
		n.emit(Event{Root: t.root.Path, Path: path})
	}
}

// discover follows a new directory, or a link that may lead to one.
func (n *Notify) discover(t *tree, parent *node, path, rel string, isDir bool) {
	if !t.scope.keep(rel, path, true) {
		return
	}
	if parent.depth >= t.scope.Depth {
		if isDir && !t.truncated {
			t.truncated, n.changed = true, true
		}
		return
	}
	n.grow(t, step{path: path, rel: rel, depth: parent.depth + 1, via: parent.via}, true)
}

// renew handles an event about a watched directory itself. Its watches may be
// dead or report old names, so all of them are taken away and set again on
// whatever is there now.
func (n *Notify) renew(t *tree, d *node, op fsnotify.Op) {
	if op == fsnotify.Create {
		// Mostly the echo of a directory that was found by reading its
		// parent. A replaced one was announced by a Remove or Rename, unless
		// it was renamed over.
		if info, err := os.Lstat(d.path); err == nil && info.IsDir() && idOf(d.path, info) == d.id {
			return
		}
	}
	if d.rel == "" {
		n.resync(t)
		return
	}
	n.prune(t, d.path)
	if n.grow(t, d.step, true) {
		n.rescan(t, d.path)
	}
}
