package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/ingest"
	"handoffd/engine/render"
	"handoffd/engine/seal"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// loaded is a session as committed, ready for its next build.
type loaded struct {
	loc   store.Location
	dir   string
	m     *session.Manifest
	stamp manifestStamp

	marks    store.Marks
	state    *ingest.State // decided
	digest   *render.Digest
	end      *render.Digest // with the unfinished end; digest itself when there is none
	contract render.Contract
	// followers continue the decoders of the sources, by index.
	followers map[int]*harness.Follower
	// repaired says what had to be made again.
	repaired []string
	// known are the keys of the decided turns, if a build needed them.
	known *ingest.Keys
	// unborn says that the session is made in a directory beside its place.
	unborn bool
	// rebuilt says that the state was lost, so that the journal must be
	// written again whatever the source says.
	rebuilt *rebuilt
}

// manifestStamp tells whether another process committed since: the hash of
// manifest.json. Its looks would not do, for a replaced file can have the
// inode, the size and the time of the one before.
type manifestStamp string

func stampOf(dir string) (manifestStamp, error) {
	raw, err := os.ReadFile(filepath.Join(dir, store.ManifestName))
	if err != nil {
		return "", err
	}
	return manifestStamp(seal.Sum(raw)), nil
}

// load returns the session at loc. It must be called under the session lock.
// The error satisfies fs.ErrNotExist when nothing is there. hint may be nil.
func (b *Builder) load(loc store.Location, hint harness.Format) (*loaded, error) {
	dir := b.Store.SessionDir(loc.Project, loc.Dir)
	if forward, err := rollForward(dir); err != nil {
		return nil, err
	} else if forward {
		b.Forget(loc)
	}
	stamp, err := stampOf(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Internal, "look at manifest: %w", err)
	}
	if err == nil {
		if l := b.remembered(loc); l != nil && l.stamp == stamp {
			return l, nil
		}
	}
	b.mu.Lock()
	b.forget(loc)
	b.mu.Unlock()
	if err != nil {
		if _, statErr := os.Lstat(filepath.Join(dir, store.TimelineName)); statErr == nil {
			return b.salvage(loc, dir, nil, hint, "manifest missing")
		}
		return nil, err
	}
	m, raw, err := store.ReadManifest(dir)
	store.Sweep(dir, m)
	if err != nil {
		return b.salvage(loc, dir, nil, hint, "manifest damaged")
	}
	if session.Sealed(raw) != nil {
		// What it says of promotion is not to be sealed anew.
		m.Salvaged = m.Revisions + 1 // and that it was altered is said for ever
		m.PromotedAt, m.PromotedBy, m.PromotedGate, m.PromotedStale = "", "", "", false
		return b.salvage(loc, dir, m, hint, "manifest altered")
	}
	l := &loaded{loc: loc, dir: dir, m: m, stamp: stamp, followers: map[int]*harness.Follower{}}
	if err := l.restore(); err != nil {
		return b.salvage(loc, dir, m, hint, err.Error())
	}
	return l, nil
}

// restore reads the state that the manifest names.
func (l *loaded) restore() error {
	s, err := store.ReadState(l.dir, l.m)
	if err != nil {
		return err
	}
	if l.state, err = ingest.Decode(s.Ingest); err != nil {
		return err
	}
	if l.digest, err = render.DecodeDigest(s.Fold); err != nil {
		return err
	}
	l.marks, l.end = s.Marks, l.digest
	l.contract = render.Contract{Block: s.Contract, SHA256: l.m.EvidenceContractSHA256}
	if l.m.Provisional > 0 {
		l.end = l.digest.Clone()
		turns, err := store.ReadTurnsFrom(l.dir, s.Marks[0].Bytes, l.committed(store.TimelineName))
		if err != nil {
			return err
		}
		for i := range turns {
			l.end.Add(&turns[i])
		}
	}
	return nil
}

func (l *loaded) committed(name string) int64 {
	a, _ := l.m.Artifact(name)
	return a.Bytes
}

// fresh returns a session of which nothing is committed, to be built in a
// directory beside its place.
func (b *Builder) fresh(loc store.Location, id string, meta session.Meta) (*loaded, error) {
	dir := filepath.Join(b.Store.ProjectDir(loc.Project), ".new-"+loc.Dir)
	if err := os.RemoveAll(dir); err != nil {
		return nil, fault.New(fault.Internal, "clear unfinished session: %w", err)
	}
	return &loaded{
		loc: loc, dir: dir, unborn: true,
		m:     &session.Manifest{Session: id, Project: loc.Project, CreatedAt: StampTime(b.opt.Now()), Schema: 1},
		state: ingest.New(meta), digest: &render.Digest{}, end: &render.Digest{},
		followers: map[int]*harness.Follower{},
	}, nil
}

// isNew reports whether nothing of the session is committed.
func (l *loaded) isNew() bool { return l.unborn }

// keys reads the keys of the decided turns, or has them from the last build.
func (l *loaded) keys() (*ingest.Keys, error) {
	n := l.marks.Keys()
	switch {
	case l.rebuilt != nil:
		return ingest.NewKeys(l.rebuilt.keys), nil
	case n == 0:
		return &ingest.Keys{}, nil
	case l.known != nil:
		return l.known, nil
	}
	list, err := store.ReadKeys(l.dir, n)
	return ingest.NewKeys(list), err
}

// ids reads the record ids of the decided turns.
func (l *loaded) ids() (map[string]bool, error) {
	out := map[string]bool{}
	if l.isNew() {
		return out, nil
	}
	for t, err := range store.Turns(l.dir, l.marks[0].Bytes) {
		if err != nil {
			return nil, fmt.Errorf("read timeline: %w", err)
		}
		if t.ID != "" {
			out[t.ID] = true
		}
	}
	return out, nil
}
