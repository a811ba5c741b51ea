// Package index is the store's list of sessions: INDEX.json, what changed
// since it was written, and how an id finds its session. Everything in it can
// be rebuilt from the manifests; it never changes a session.
package index

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// Entry is one session in INDEX.json. The first eight members are the
// reference's.
type Entry struct {
	ID             string `json:"id"`   // directory name
	UUID           string `json:"uuid"` // session id
	Project        string `json:"project"`
	Harness        string `json:"harness"`
	Turns          int    `json:"turns"`
	Revisions      int    `json:"revisions"`
	Updated        string `json:"updated"`
	ManifestSHA256 string `json:"manifest_sha256"`

	Kind       string `json:"source_kind,omitempty"`
	Parent     string `json:"parent_session,omitempty"`
	ForkedFrom string `json:"forked_from,omitempty"`
	FirstID    string `json:"first_id,omitempty"`
	LastTS     string `json:"last_ts,omitempty"`
	Title      string `json:"title,omitempty"`
	// Damaged says why the manifest could not be read.
	Damaged string `json:"damaged,omitempty"`
}

// Location is where the session is.
func (e Entry) Location() store.Location { return store.Location{Project: e.Project, Dir: e.ID} }

// EntryOf describes a session by its manifest.
func EntryOf(loc store.Location, m *session.Manifest) Entry {
	return Entry{
		ID: loc.Dir, UUID: m.Session, Project: loc.Project, Harness: m.Harness, Turns: m.TurnCount,
		Revisions: m.Revisions, Updated: m.UpdatedAt, ManifestSHA256: m.ManifestSHA256,
		Kind: m.Meta.Kind, Parent: m.Meta.Parent, ForkedFrom: m.Meta.ForkedFrom,
		FirstID: m.Meta.FirstID, LastTS: m.Meta.LastTS, Title: m.Meta.Title,
	}
}

// Index reads and keeps the list of one store. It is safe for concurrent use.
type Index struct {
	store store.Store

	mu      sync.Mutex                // guards what follows
	base    []Entry                   // as in INDEX.json
	stamp   stamp                     // of INDEX.json when base was read
	scanned bool                      // base came from the manifests, not from INDEX.json
	sums    map[store.Location]string // manifest hashes in base; nil until asked for
	known   map[store.Location]dirtyEntry
}

// dirtyEntry is a changed session as read from its manifest, for lookups: what
// they ask for does not change while the manifest's looks stay.
type dirtyEntry struct {
	stamp stamp
	entry Entry
}

// Open returns the index of a store. Nothing is read yet, or created.
func Open(s store.Store) *Index { return &Index{store: s} }

// stamp tells versions of a file apart.
type stamp struct {
	size  int64
	mtime int64
	inode string
}

func (x *Index) path() string      { return filepath.Join(x.store.Root, store.IndexName) }
func (x *Index) dirtyPath() string { return filepath.Join(x.store.Root, store.DirtyName) }

// maxIndex bounds INDEX.json; a million sessions take about 400 MB.
const maxIndex = 1 << 30

// Entries lists every session, in no particular order.
func (x *Index) Entries() ([]Entry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.entries()
}

func (x *Index) entries() ([]Entry, error) {
	if err := x.load(); err != nil {
		return nil, err
	}
	dirty, err := x.dirty()
	if err != nil {
		return nil, err
	}
	if len(dirty) == 0 {
		return slices.Clone(x.base), nil
	}
	changed := make(map[store.Location]bool, len(dirty))
	for _, l := range dirty {
		changed[l] = true
	}
	out := make([]Entry, 0, len(x.base)+len(dirty))
	for _, e := range x.base {
		if !changed[e.Location()] {
			out = append(out, e)
		}
	}
	for _, l := range dirty {
		if e, ok := x.read(l); ok {
			out = append(out, e)
		}
	}
	return out, nil
}

// load reads INDEX.json if it is not the one that was read last. A missing or
// damaged one is made up for from the manifests.
func (x *Index) load() error {
	info, err := os.Stat(x.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Internal, "look at index: %w", err)
	}
	var now stamp
	if err == nil {
		inode, _ := safefile.Identity(info)
		now = stamp{info.Size(), info.ModTime().UnixNano(), inode}
		if now == x.stamp && !x.scanned {
			return nil
		}
		raw, err := safefile.ReadSmall(x.path(), maxIndex)
		if err != nil {
			return fault.New(fault.Internal, "read index: %w", err)
		}
		var list []Entry
		if json.Unmarshal(raw, &list) == nil && plausible(list) {
			x.base, x.stamp, x.scanned, x.sums = list, now, false, nil
			return nil
		}
	}
	list, err := x.scan()
	if err != nil {
		return err
	}
	x.base, x.stamp, x.scanned, x.sums = list, now, true, nil
	return nil
}

// plausible refuses entries that lead out of the store.
func plausible(list []Entry) bool {
	for _, e := range list {
		for _, name := range []string{e.ID, e.Project} {
			if name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\x00") {
				return false
			}
		}
	}
	return true
}

// scan reads every manifest.
func (x *Index) scan() ([]Entry, error) {
	locations, err := x.store.Sessions()
	if err != nil {
		return nil, err
	}
	list := make([]Entry, 0, len(locations))
	for _, l := range locations {
		if e, ok := x.read(l); ok {
			list = append(list, e)
		}
	}
	return list, nil
}

// read describes one session from its manifest; a damaged manifest gives a
// damaged entry, no manifest none.
func (x *Index) read(l store.Location) (Entry, bool) {
	m, _, err := store.ReadManifest(x.store.SessionDir(l.Project, l.Dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Entry{}, false
	case err != nil:
		return Entry{ID: l.Dir, UUID: l.Dir, Project: l.Project, Harness: "unknown", Damaged: err.Error()}, true
	}
	return EntryOf(l, m), true
}

// dirty lists the sessions that changed since INDEX.json was written.
func (x *Index) dirty() ([]store.Location, error) {
	f, err := os.Open(x.dirtyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "open list of changes: %w", err)
	}
	defer f.Close()
	var out []store.Location
	seen := map[store.Location]bool{}
	for r := bufio.NewScanner(f); r.Scan(); {
		project, dir, ok := strings.Cut(r.Text(), "/")
		l := store.Location{Project: project, Dir: dir}
		if ok && !seen[l] && plausible([]Entry{{ID: dir, Project: project}}) {
			seen[l] = true
			out = append(out, l)
		}
	}
	return out, nil
}

// ByID lists the sessions with the given session id.
func (x *Index) ByID(id string) ([]Entry, error) {
	return x.Where(func(e *Entry) bool { return e.UUID == id })
}

// Where lists the sessions for which keep holds. It costs a look at each, but
// reads only manifests that changed since INDEX.json was written.
func (x *Index) Where(keep func(*Entry) bool) ([]Entry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.load(); err != nil {
		return nil, err
	}
	dirty, err := x.dirty()
	if err != nil {
		return nil, err
	}
	changed := make(map[store.Location]bool, len(dirty))
	var out []Entry
	for _, l := range dirty {
		changed[l] = true
		if e, ok := x.glance(l); ok && keep(&e) {
			out = append(out, e)
		}
	}
	for i := range x.base {
		if e := &x.base[i]; keep(e) && !changed[e.Location()] {
			out = append(out, *e)
		}
	}
	return out, nil
}

// glance is read, without reading a manifest again that looks as it did.
func (x *Index) glance(l store.Location) (Entry, bool) {
	info, err := os.Stat(filepath.Join(x.store.SessionDir(l.Project, l.Dir), store.ManifestName))
	if err != nil {
		return x.read(l)
	}
	inode, _ := safefile.Identity(info)
	now := stamp{info.Size(), info.ModTime().UnixNano(), inode}
	if k, ok := x.known[l]; ok && k.stamp == now {
		return k.entry, true
	}
	e, ok := x.read(l)
	if ok {
		if x.known == nil {
			x.known = map[store.Location]dirtyEntry{}
		}
		x.known[l] = dirtyEntry{now, e}
	}
	return e, ok
}

// Current reports whether a session is listed with the given manifest hash, or
// noted as changed.
func (x *Index) Current(l store.Location, sum string) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.load(); err != nil {
		return false, err
	}
	if x.sums == nil {
		x.sums = make(map[store.Location]string, len(x.base))
		for _, e := range x.base {
			x.sums[e.Location()] = e.ManifestSHA256
		}
	}
	if x.sums[l] == sum {
		return true, nil
	}
	dirty, err := x.dirty()
	return slices.Contains(dirty, l), err
}

// Mark notes that a session changes. It must be called before the change is
// committed, so that no crash hides it, and once more after it: the list may
// have been written, and the first note forgotten, in between.
func (x *Index) Mark(ctx context.Context, l store.Location) error {
	lock, err := safefile.Acquire(ctx, x.store.IndexLock(), safefile.LockWait)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	defer lock.Release()
	f, err := os.OpenFile(x.dirtyPath(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, safefile.FileMode)
	if err != nil {
		return fault.New(fault.Internal, "open list of changes: %w", err)
	}
	_, err = safefile.Write(f, []byte(l.Project+"/"+l.Dir+"\n"))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fault.New(fault.Internal, "note change: %w", err)
	}
	return nil
}

// Report is what Fold found.
type Report struct {
	Sessions int
	Changed  []store.Location
	Entries  []Entry
}

// Fold writes INDEX.json and forgets the list of changes. With whole it reads
// every manifest, otherwise those that changed. notes is called with the
// changed sessions, and the places where none is any more, under the index
// lock and before the list is forgotten.
func (x *Index) Fold(ctx context.Context, whole bool, notes func(changed []Entry, gone []store.Location) error) (Report, error) {
	lock, err := safefile.Acquire(ctx, x.store.IndexLock(), safefile.LockWait)
	if err != nil {
		return Report{}, fmt.Errorf("index: %w", err)
	}
	defer lock.Release()
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []Entry
	dirty, err := x.dirty()
	if err != nil {
		return Report{}, err
	}
	if whole {
		list, err = x.scan()
	} else {
		list, err = x.entries()
	}
	if err != nil {
		return Report{}, err
	}
	if len(dirty) == 0 && !whole && !x.scanned {
		return Report{Sessions: len(list), Entries: list}, nil
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return strings.Compare(a.Project+"/"+a.ID, b.Project+"/"+b.ID)
	})
	rep := Report{Sessions: len(list), Entries: list, Changed: dirty}
	if notes != nil {
		changed := map[store.Location]bool{}
		for _, l := range dirty {
			changed[l] = true
		}
		var entries []Entry
		for _, e := range list {
			if changed[e.Location()] {
				entries = append(entries, e)
				delete(changed, e.Location())
			}
		}
		var gone []store.Location
		for _, l := range dirty {
			if changed[l] {
				gone = append(gone, l)
			}
		}
		if err := notes(entries, gone); err != nil {
			return rep, err
		}
	}
	if err := x.write(list); err != nil {
		return rep, err
	}
	if err := safefile.Remove(x.dirtyPath()); err != nil {
		return rep, fault.New(fault.Internal, "forget list of changes: %w", err)
	}
	x.base, x.scanned, x.sums, x.known = list, false, nil, nil
	if info, err := os.Stat(x.path()); err == nil {
		inode, _ := safefile.Identity(info)
		x.stamp = stamp{info.Size(), info.ModTime().UnixNano(), inode}
	}
	return rep, nil
}

// write replaces INDEX.json unless it says the same already.
func (x *Index) write(list []Entry) error {
	var buf bytes.Buffer
	buf.WriteByte('[')
	for i, e := range list {
		raw, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode index: %w", err)
		}
		v := jsontext.Value(raw)
		if err := v.Indent(jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  ")); err != nil {
			return fmt.Errorf("encode index: %w", err)
		}
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.WriteString("\n  ")
		buf.Write(v)
	}
	if len(list) > 0 {
		buf.WriteByte('\n')
	}
	buf.WriteByte(']')
	if old, err := safefile.ReadSmall(x.path(), maxIndex); err == nil && bytes.Equal(old, buf.Bytes()) {
		return nil
	}
	return safefile.Replace(x.path(), buf.Bytes())
}
