package pipeline

import (
	"context"
	"fmt"
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// Revise commits a new revision of a session in which change alters the
// manifest, and moves its directory to another place when to differs from
// from. The caller holds the session's lock and has marked both places.
func (b *Builder) Revise(ctx context.Context, from, to store.Location, change func(*session.Manifest)) (*session.Manifest, error) {
	l, err := b.load(from, nil)
	if err != nil {
		return nil, err
	}
	if l.rebuilt != nil {
		return nil, fault.New(fault.Integrity, "session %s is damaged: %s", l.m.Session, l.repaired[0]).
			WithHint("build it from its source first")
	}
	defer b.Forget(from)
	defer b.Forget(to)
	next := *l.m
	change(&next)
	next.Revisions++
	next.UpdatedAt = stampTime(b.opt.Now())
	if err := b.recommit(l, &next); err != nil {
		return nil, err
	}
	dir := l.dir
	if from != to {
		dir = b.Store.SessionDir(to.Project, to.Dir)
		if err := safefile.Rename(l.dir, dir); err != nil {
			return nil, err
		}
		for _, d := range []string{filepath.Dir(l.dir), filepath.Dir(dir)} {
			if err := safefile.SyncDir(d); err != nil {
				return nil, err
			}
		}
	}
	for _, loc := range []store.Location{from, to} {
		if err := b.Index.Mark(ctx, loc); err != nil {
			return nil, err
		}
	}
	now := *l
	now.m, now.dir, now.loc = &next, dir, to
	return &next, b.writePayload(&now)
}

// recommit writes the state, renders and manifest of a revision without new
// turns.
func (b *Builder) recommit(l *loaded, next *session.Manifest) error {
	var g safefile.Group
	defer g.Discard()
	st, err := store.ReadState(l.dir, l.m)
	if err != nil {
		return err
	}
	if err := store.WriteState(&g, l.dir, st, next); err != nil {
		return err
	}
	if err := b.publish(&g, l.dir, next, l.end, l.contract); err != nil {
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
