// Package verb holds the verbs on whole sessions: rename, retitle, contract,
// promote, merge, federated-merge, dispatch and self-improve. Those that change
// a session take its lock, change all of it or nothing, and leave the renders
// saying what the manifest says. None runs a program or opens a connection
// itself; who calls them hands in what may.
package verb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// Moved is a session in its new place.
type Moved struct {
	Session  string         `json:"session"`
	Project  string         `json:"project"`
	Name     string         `json:"name"` // directory name
	Revision int            `json:"revision"`
	Location store.Location `json:"-"`
}

// Rename moves a session to another project. The error is fault.Exists when
// that project has a session of the same directory name, fault.Locked when
// the session is held.
func Rename(ctx context.Context, b *pipeline.Builder, e index.Entry, project string) (Moved, error) {
	slug := store.Slug(project)
	if slug == "" {
		return Moved{}, fault.New(fault.Usage, "%q is no name for a project", project)
	}
	return move(ctx, b, e, store.Location{Project: slug, Dir: e.ID}, func(m *session.Manifest) {
		// Where it is, whatever a rename that died wrote into it.
		m.PrevProject, m.Project = e.Project, slug
	})
}

// Retitle gives a session another directory name and title; its id stays. The
// error is fault.Exists when the project has that name, fault.Locked when the
// session is held.
func Retitle(ctx context.Context, b *pipeline.Builder, e index.Entry, name string) (Moved, error) {
	slug := store.Slug(name)
	if slug == "" {
		return Moved{}, fault.New(fault.Usage, "%q is no name for a session", name)
	}
	return move(ctx, b, e, store.Location{Project: e.Project, Dir: slug}, func(m *session.Manifest) {
		m.TitledFrom = append(m.TitledFrom, e.ID)
		m.Title = name
	})
}

// move revises the session where it is and then renames its directory: after
// a crash between the two it is the old place with the new revision, which
// the same verb completes.
func move(ctx context.Context, b *pipeline.Builder, e index.Entry, to store.Location, change func(*session.Manifest)) (Moved, error) {
	from := e.Location()
	lock, err := b.Lock(ctx, e.UUID)
	if err != nil {
		return Moved{}, err
	}
	defer lock.Release()
	newDir := b.Store.SessionDir(to.Project, to.Dir)
	same := from == to
	if !same {
		if _, err := os.Lstat(newDir); err == nil {
			return Moved{}, fault.New(fault.Exists, "target name already exists: %s", newDir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return Moved{}, fmt.Errorf("look at target: %w", err)
		}
	}
	for _, l := range []store.Location{from, to} {
		if err := b.Index.Mark(ctx, l); err != nil {
			return Moved{}, err
		}
	}
	if !same {
		if err := safefile.MakeDir(filepath.Dir(newDir)); err != nil {
			return Moved{}, err
		}
	}
	m, err := b.Revise(ctx, from, to, change)
	if err != nil {
		return Moved{}, err
	}
	if _, err := b.FoldIndex(ctx, false); err != nil {
		return Moved{}, err
	}
	return Moved{Session: m.Session, Project: to.Project, Name: to.Dir, Revision: m.Revisions, Location: to}, nil
}
