package capture

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"handoffd/engine/harness"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// stamp tells versions of a file apart, without reading it.
type stamp struct {
	size         int64
	mtime        int64
	inode, ctime string
}

func stampOf(info fs.FileInfo) stamp {
	inode, ctime := safefile.Identity(info)
	return stamp{info.Size(), info.ModTime().UnixNano(), inode, ctime}
}

// stampIn is the stamp that a manifest has of a source.
func stampIn(s session.Source) (stamp, bool) {
	mtime, err := strconv.ParseInt(s.ModTime, 10, 64)
	return stamp{s.Size, mtime, s.Inode, s.ChangeTime}, err == nil
}

// row is what is known of a file.
type row struct {
	stamp
	// done says that this version is captured, or passed over for good;
	// otherwise it is on the schedule.
	done bool
	// why says why it was passed over.
	why error
	// first says that the first scan found it to do.
	first bool
	// sweep is the number of the sweep that saw it last, or during which a
	// build did.
	sweep int
}

// Table remembers every session file, so that a sweep finds what changed
// without opening any.
type Table struct {
	mu         sync.Mutex // guards what follows
	rows       map[string]row
	todo, left int // of the first scan
	number     int // of the present sweep
	swept      map[string]bool
	homes      map[string]home
}

// home is the session that a file was captured into. It is remembered when
// the file is gone, until the session's manifest says so.
type home struct {
	at store.Location
	// missed says that the file was looked for in vain once.
	missed bool
}

func newTable() *Table {
	return &Table{rows: map[string]row{}, swept: map[string]bool{}, homes: map[string]home{}}
}

// begin begins a sweep. There is one at a time, but for the one at the end.
func (t *Table) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.number++
}

// news reports whether a file differs from what is known of it, and takes the
// new version for scheduled.
func (t *Table) news(path string, s stamp, first bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.rows[path]
	if known && old.stamp == s {
		old.sweep = t.number
		t.rows[path] = old
		return false
	}
	first = first && !known
	if first {
		t.todo++
		t.left++
	}
	t.rows[path] = row{stamp: s, first: first || old.first, sweep: t.number}
	return true
}

// settle notes that a version of a file is captured, or why it is passed over.
// It reports whether that was known already.
func (t *Table) settle(path string, s stamp, why error) (known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.rows[path]
	known = old.done && old.stamp == s && (old.why == nil) == (why == nil)
	if old.first {
		t.left--
	}
	t.rows[path] = row{stamp: s, done: true, why: why, sweep: t.number}
	return known
}

// tried notes that a file cannot be captured now; the first scan does not wait
// for it.
func (t *Table) tried(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rows[path]; r.first {
		r.first = false
		t.rows[path] = r
		t.left--
	}
}

// restore notes a version that a manifest says is captured.
func (t *Table) restore(path string, s stamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.rows[path]; !known {
		t.rows[path] = row{stamp: s, done: true}
	}
}

// pending lists what is known to have changed and is not captured.
func (t *Table) pending() (list []found) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, r := range t.rows {
		if !r.done {
			list = append(list, found{path: path, mtime: r.mtime})
		}
	}
	return list
}

// drop forgets a file that is gone.
func (t *Table) drop(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[path].first {
		t.left--
	}
	delete(t.rows, path)
}

// captured reports whether exactly this version is settled.
func (t *Table) captured(path string, s stamp) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, known := t.rows[path]
	return known && r.done && r.stamp == s
}

// verdict says why a file was passed over, nil if it was not.
func (t *Table) verdict(path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[path].why
}

// forgetPending drops what is not captured, so that another schedule finds it.
func (t *Table) forgetPending() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, r := range t.rows {
		if !r.done {
			delete(t.rows, path)
		}
	}
	t.todo, t.left = 0, 0
	clear(t.swept)
}

// firstSweep reports whether a root has not been swept before.
func (t *Table) firstSweep(root string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.swept[root]
	t.swept[root] = true
	return first
}

// lives notes the session that a file was captured into.
func (t *Table) lives(path string, at store.Location) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.homes[path] = home{at: at}
}

// miss notes that a file is gone. It returns the session that has to be told,
// if there is one, and whether this is the first look that missed it.
func (t *Table) miss(path string) (at store.Location, first, captured bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.homes[path]
	if !ok {
		return h.at, false, false
	}
	first, h.missed = !h.missed, true
	t.homes[path] = h
	return h.at, first, true
}

// bury forgets a file whose session has been told that it is gone.
func (t *Table) bury(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.homes, path)
}

// lose drops the rows below a root that a whole walk did not see, and lists
// the captured files below it that are gone.
func (t *Table) lose(root string) (gone []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, r := range t.rows {
		if r.sweep == t.number || !within(path, root) || t.held(path) {
			continue
		}
		if r.first {
			t.left--
		}
		delete(t.rows, path)
	}
	for path := range t.homes {
		if _, seen := t.rows[path]; !seen && within(path, root) {
			gone = append(gone, path)
		}
	}
	return gone
}

// held reports whether path is a session of a bundle that the present sweep
// saw. t.mu is held.
func (t *Table) held(path string) bool {
	base, _, ok := harness.Split(path)
	return ok && t.rows[base].sweep == t.number
}

// inside lists the sessions of a bundle that are known or were captured.
func (t *Table) inside(bundle string) (list []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	add := func(path string) {
		if base, _, ok := harness.Split(path); ok && base == bundle {
			list = append(list, path)
		}
	}
	for path := range t.rows {
		add(path)
	}
	for path := range t.homes {
		if _, known := t.rows[path]; !known {
			add(path)
		}
	}
	return list
}

// key is the change key that was listed of a session of a bundle, "" if none
// was.
func (t *Table) key(path string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[path].ctime
}

// done reports whether the known version of a file is settled.
func (t *Table) done(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[path].done
}

func (t *Table) progress() (initial bool, done, todo int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left > 0, t.todo - t.left, t.todo
}

// changedSince counts the files that changed after at.
func (t *Table) changedSince(at time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, limit := 0, at.UnixNano()
	for _, r := range t.rows {
		if r.mtime >= limit && r.why == nil {
			n++
		}
	}
	return n
}

// named finds the session file whose name holds an id; a session that was
// started from another names it by that.
func (t *Table) named(id string) (path string, ok bool) {
	if len(id) < minID {
		return "", false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.rows {
		if strings.Contains(filepath.Base(p), id) && (!ok || p < path) {
			path, ok = p, true
		}
	}
	return path, ok
}

// minID keeps a short id from naming the wrong file.
const minID = 16
