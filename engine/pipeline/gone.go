package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

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
	if _, err := os.Lstat(safefile.PathBytes(path)); !errors.Is(err, fs.ErrNotExist) {
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
