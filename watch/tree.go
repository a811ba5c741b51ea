package watch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// tree is a root as Notify follows it. It belongs to the goroutine of Run.
type tree struct {
	root  Root
	scope scope // valid in ModeEvents
	mode  string
	err   error

	nodes  map[string]*node // by canonical path
	ids    map[fileID]bool  // of nodes
	links  map[string]link  // by path
	denied map[string]step  // directories that could not be watched or read

	entries   int // in all nodes
	truncated bool

	poll    *poller // in ModePolling
	polled  RootStatus
	pollAt  time.Time
	retryAt time.Time
	retryIn time.Duration

	reported RootStatus
}

// node is a watched directory.
type node struct {
	step
	id      fileID
	entries int
}

// link is a symbolic link that Keep took for a directory, and where it led.
type link struct {
	via    string
	target string
	id     fileID
}

func newTree(r Root) *tree {
	t := &tree{root: r, mode: ModeMissing}
	t.clear()
	return t
}

func (t *tree) clear() {
	t.nodes, t.ids = map[string]*node{}, map[fileID]bool{}
	t.links, t.denied = map[string]link{}, map[string]step{}
	t.entries, t.truncated = 0, false
}

func (t *tree) status() RootStatus {
	if t.mode == ModePolling {
		s := t.polled
		s.Root = t.root.Path
		if s.Mode != ModeMissing {
			s.Mode = ModePolling
			if t.err != nil {
				s.Err = t.err.Error()
			}
		}
		return s
	}
	s := RootStatus{Root: t.root.Path, Mode: t.mode, Dirs: len(t.nodes), Truncated: t.truncated}
	switch {
	case t.err != nil && !errors.Is(t.err, fs.ErrNotExist):
		s.Err = t.err.Error()
	case t.truncated:
		s.Err = truncatedText(withLimits(t.root))
	}
	return s
}

// start begins to follow a root that is not followed, and asks for its
// rescan.
func (n *Notify) start(t *tree) {
	n.changed = true
	t.clear()
	s, err := resolve(t.root)
	if err != nil {
		t.mode, t.err = ModeMissing, err
		return
	}
	t.scope = s
	if n.back == nil {
		if n.back, err = n.open(); err != nil {
			n.back = nil
			n.degrade(t, err)
			return
		}
	}
	t.mode, t.err = ModeEvents, nil
	if !n.grow(t, step{path: s.real}, false) {
		return
	}
	if t.nodes[s.real] == nil {
		// It went between the two looks, or it is not ours to read.
		t.mode = ModeMissing
		if len(t.denied) > 0 {
			t.err = &fs.PathError{Op: "watch", Path: t.root.Path, Err: fs.ErrPermission}
		}
		return
	}
	t.retryIn, t.poll = 0, nil
	n.rescan(t, s.real)
}

// stop forgets everything about a tree but its root.
func (n *Notify) stop(t *tree) {
	for path := range t.nodes {
		n.unwatch(path)
	}
	t.clear()
	n.changed = true
}

// resync builds a tree anew and asks for its rescan.
func (n *Notify) resync(t *tree) {
	old := t.scope.real
	n.stop(t)
	n.start(t)
	if t.mode == ModeMissing {
		n.rescan(t, old)
	}
}

// grow watches the directory or link at first and all below it. The watch
// comes before the reading, so that what is made in between is seen twice
// rather than never. With tell set, the files found are reported. It returns
// false if the root fell back to polling or the context ended.
func (n *Notify) grow(t *tree, first step, tell bool) bool {
	n.changed = true
	w := walker{scope: t.scope, seen: t.ids}
	before := t.entries
	w.sum.Entries = before
	w.enter = func(d step, info fs.FileInfo) (bool, error) {
		if t.nodes[d.path] != nil {
			n.prune(t, d.path) // another directory now, and no event said so
		}
		if err := n.watch(d.path); err != nil {
			if isLocal(err) {
				if !errors.Is(err, fs.ErrNotExist) {
					t.denied[d.path] = d
				}
				return false, nil
			}
			return false, err
		}
		t.nodes[d.path] = &node{step: d, id: idOf(d.path, info)}
		return true, nil
	}
	w.link = func(l step, target string, id fileID) {
		t.links[l.path] = link{via: l.via, target: target, id: id}
	}
	w.denied = func(d step, _ error) { t.denied[d.path] = d }
	w.entries = func(d step, count int) {
		if node := t.nodes[d.path]; node != nil {
			node.entries = count
		}
	}
	if tell {
		w.file = func(_ fs.DirEntry, path, _ string) { n.emit(Event{Root: t.root.Path, Path: path}) }
	}
	err := w.walk(n.ctx, first)
	t.entries += w.sum.Entries - before
	t.truncated = t.truncated || w.sum.Truncated
	if err != nil && n.ctx.Err() == nil {
		n.degrade(t, err)
	}
	return err == nil
}

// isLocal reports whether a failed watch is the directory's own fault, not
// the system's.
func isLocal(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || isNotDir(err)
}

// prune forgets a directory and all that was reached through it.
func (n *Notify) prune(t *tree, path string) {
	n.changed = true
	for p, d := range t.nodes {
		if !within(p, path) && !within(d.via, path) {
			continue
		}
		delete(t.nodes, p)
		delete(t.ids, d.id)
		t.entries -= d.entries
		n.unwatch(p)
	}
	for p, l := range t.links {
		if within(p, path) || within(l.via, path) {
			delete(t.links, p)
		}
	}
	for p, d := range t.denied {
		if within(p, path) || within(d.via, path) {
			delete(t.denied, p)
		}
	}
}

// degrade makes a root be polled. Its watches are given back, so that other
// roots may have them.
func (n *Notify) degrade(t *tree, err error) {
	n.stop(t)
	t.retryIn = min(max(2*t.retryIn, n.conf.RetryMin), n.conf.RetryMax)
	now := time.Now()
	t.mode, t.err = ModePolling, explained(err)
	t.retryAt, t.pollAt = now.Add(t.retryIn), now
	if t.poll == nil {
		t.poll = &poller{root: t.root}
	}
}

// poll does one pass over a root that is polled.
func (n *Notify) poll(t *tree) {
	start := time.Now()
	t.polled = t.poll.pass(n.ctx, n.emit)
	t.pollAt = time.Now().Add(rest(n.conf.Poll, time.Since(start)))
	n.changed = true
}

// watch sets a watch, even where another tree has set one: that may be on a
// directory which has since been replaced.
func (n *Notify) watch(path string) error {
	if err := n.back.Add(path); err != nil {
		return err
	}
	n.watched[path]++
	return nil
}

func (n *Notify) unwatch(path string) {
	switch n.watched[path] {
	case 0: // the backend was closed
	case 1:
		delete(n.watched, path)
		if n.back != nil {
			n.back.Remove(path)
		}
	default:
		n.watched[path]--
	}
}

func (n *Notify) rescan(t *tree, path string) {
	n.emit(Event{Root: t.root.Path, Path: path, Rescan: true})
}

// check compares all trees with what is there. It finds what no event tells:
// roots that appeared, an unmounted or renamed ancestor, a replaced link, a
// watch that the kernel dropped.
func (n *Notify) check(now time.Time) {
	alive := map[string]bool{}
	if n.back != nil {
		for _, path := range n.back.WatchList() {
			if n.watched[path] == 0 {
				// A watch under a name that was renamed away would swallow
				// a new watch on the same directory.
				n.back.Remove(path)
				continue
			}
			alive[path] = true
		}
	}
	for _, t := range n.trees {
		if n.ctx.Err() != nil {
			return
		}
		switch t.mode {
		case ModeMissing:
			if _, err := resolve(t.root); err == nil || !sameError(err, t.err) {
				n.start(t)
			}
		case ModePolling:
			if !now.Before(t.retryAt) {
				n.start(t)
			}
		case ModeEvents:
			if !t.holds(alive) {
				n.resync(t)
				continue
			}
			n.retryDenied(t)
		}
	}
}

func sameError(a, b error) bool { return a != nil && b != nil && a.Error() == b.Error() }

// holds reports whether everything is where the tree says, and watched.
func (t *tree) holds(alive map[string]bool) bool {
	if real, err := filepath.EvalSymlinks(t.root.Path); err != nil || real != t.scope.real {
		return false
	}
	for path, d := range t.nodes {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || idOf(path, info) != d.id || !alive[path] {
			return false
		}
	}
	for path, l := range t.links {
		target, id := linkTarget(path)
		if target != l.target || id != l.id {
			return false
		}
	}
	return true
}

// retryDenied tries again the directories that could not be read.
func (n *Notify) retryDenied(t *tree) {
	for path, d := range t.denied {
		f, err := openDir(path)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				delete(t.denied, path)
			}
			continue
		}
		f.Close()
		n.prune(t, path)
		if !n.grow(t, d, true) {
			return
		}
	}
}
