package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/ingest"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// Revision is what changes of a session without a new turn.
type Revision struct {
	// To is where the session stands afterwards.
	To store.Location
	// Change alters the manifest.
	Change func(*session.Manifest)
	// Contract returns the contract to keep, given the one that stands in the
	// brief now; nil keeps that. An error abandons the revision.
	Contract func(now render.Contract) (render.Contract, error)
	// Backup keeps the manifest as it was in manifest.json.bak.
	Backup bool
}

// Revise commits a new revision of a session in which change alters the
// manifest, and moves its directory to another place when to differs from
// from. The caller holds the session's lock and has marked both places.
func (b *Builder) Revise(ctx context.Context, from, to store.Location, change func(*session.Manifest)) (*session.Manifest, error) {
	return b.ReviseWith(ctx, from, Revision{To: to, Change: change})
}

// ReviseWith is Revise for more than the manifest.
func (b *Builder) ReviseWith(ctx context.Context, from store.Location, r Revision) (*session.Manifest, error) {
	l, err := b.load(from, nil)
	if err != nil {
		return nil, err
	}
	if l.rebuilt != nil {
		return nil, damaged(l)
	}
	defer b.Forget(from)
	defer b.Forget(r.To)
	contract := l.current()
	if r.Contract != nil {
		if contract, err = r.Contract(contract); err != nil {
			return nil, err
		}
	}
	next := *l.m
	next.EvidenceContractSHA256 = contract.SHA256
	r.Change(&next)
	next.Revisions++
	next.UpdatedAt = StampTime(b.opt.Now())
	outdate(l.m, &next)
	if err := b.recommit(l, &next, contract, r.Backup); err != nil {
		return nil, err
	}
	dir := l.dir
	if from != r.To {
		dir = b.Store.SessionDir(r.To.Project, r.To.Dir)
		if err := safefile.Rename(l.dir, dir); err != nil {
			return nil, err
		}
		for _, d := range []string{filepath.Dir(l.dir), filepath.Dir(dir)} {
			if err := safefile.SyncDir(d); err != nil {
				return nil, err
			}
		}
	}
	for _, loc := range []store.Location{from, r.To} {
		if err := b.Index.Mark(ctx, loc); err != nil {
			return nil, err
		}
	}
	if bare(&next) {
		return &next, nil
	}
	now := *l
	now.m, now.dir, now.loc, now.contract = &next, dir, r.To, contract
	return &next, b.writePayload(&now)
}

func damaged(l *loaded) error {
	return fault.New(fault.Integrity, "session %s is damaged: %s", l.m.Session, l.repaired[0]).
		WithHint("build it from its source first")
}

// bare reports whether a committed revision has no renders: a merge has none
// until they are asked for.
func bare(m *session.Manifest) bool { return len(m.MergedFrom) > 0 && len(m.Renders) == 0 }

// recommit writes the state, renders and manifest of a revision without new
// turns.
func (b *Builder) recommit(l *loaded, next *session.Manifest, contract render.Contract, backup bool) error {
	var g safefile.Group
	defer g.Discard()
	st, err := store.ReadState(l.dir, l.m)
	if err != nil {
		return err
	}
	st.Contract = contract.Block
	if err := store.WriteState(&g, l.dir, st, next); err != nil {
		return err
	}
	if backup {
		if err := backUp(&g, l.dir, store.BackupName); err != nil {
			return err
		}
	}
	if err := b.publish(&g, l.dir, next, l.end, contract, bare(l.m) && contract.Block == ""); err != nil {
		return err
	}
	if err := g.Commit(); err != nil {
		return fmt.Errorf("commit %s: revision %d: %w", next.Session, next.Revisions, err)
	}
	if l.m.State != next.State {
		_ = safefile.Remove(filepath.Join(l.dir, l.m.State))
	}
	return nil
}

// SourceGone notes in the manifest of the session at loc that a source of it
// is missing. What was captured stays. Nothing happens when the source is
// there, or is noted as gone already.
func (b *Builder) SourceGone(ctx context.Context, loc store.Location, path string) error {
	m, _, err := store.ReadManifest(b.Store.SessionDir(loc.Project, loc.Dir))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	lock, err := b.Lock(ctx, m.Session)
	if err != nil {
		return err
	}
	defer lock.Release()
	l, err := b.load(loc, nil)
	if err != nil || l.rebuilt != nil {
		return err
	}
	i, ok := l.m.Source(path)
	if !ok || l.m.Sources[i].Gone {
		return nil
	}
	if err := ingest.Exists(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := b.Index.Mark(ctx, loc); err != nil {
		return err
	}
	_, err = b.Revise(ctx, loc, loc, func(m *session.Manifest) {
		sources := append([]session.Source(nil), m.Sources...)
		sources[i].Gone = true
		m.Sources = sources
	})
	return err
}
