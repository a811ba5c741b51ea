package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"handoffd/configs"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/verb"
)

func (s *Server) config(_ context.Context, q control.ConfigRequest) (control.ConfigAnswer, error) {
	a := control.ConfigAnswer{OK: true, Action: control.Config}
	if q.Daemon {
		d, err := s.DaemonSettings()
		if err != nil {
			return a, err
		}
		a.File, a.Schema = d.File, configs.DaemonSchemaFile
		for _, v := range d.Explain() {
			a.Values = append(a.Values, control.Value{Key: v.Key, Value: v.Value, Origin: v.Origin})
		}
		return a, nil
	}
	r := s.Settings
	a.Root, a.Source, a.File, a.Schema = r.Root, string(r.RootSource), r.File, r.Schema
	a.Project, a.Linking = r.ProjectName, r.LinkingEnabled
	return a, nil
}

// manifest reads what is committed of a session.
func (s *Server) manifest(e index.Entry) (*session.Manifest, error) {
	m, _, err := store.ReadManifest(s.Store.SessionDir(e.Project, e.ID))
	return m, err
}

// index writes INDEX.json again from every manifest, and says which sessions
// lack a render or cannot be read.
func (s *Server) index(ctx context.Context, _ control.IndexRequest) (control.IndexAnswer, error) {
	a := control.IndexAnswer{OK: true, Action: control.Index, StaleSessions: []string{}, Damaged: []string{}}
	// Nothing is made where there is no session.
	if _, err := os.Stat(filepath.Join(s.Store.Root, store.ProjectsDir)); errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	rep, err := s.Builder().FoldIndex(ctx, true)
	if err != nil {
		return a, err
	}
	a.Sessions = rep.Sessions
	entries := slices.Clone(rep.Entries)
	slices.SortFunc(entries, func(x, y index.Entry) int {
		return cmp.Or(cmp.Compare(x.Project, y.Project), cmp.Compare(x.ID, y.ID))
	})
	for _, e := range entries {
		if e.Damaged != "" {
			a.Damaged = append(a.Damaged, e.ID+" ("+e.Damaged+")")
			continue
		}
		for _, name := range []string{store.BriefName, store.SummaryName} {
			if _, err := os.Lstat(filepath.Join(s.Store.SessionDir(e.Project, e.ID), name)); err != nil {
				a.StaleSessions = append(a.StaleSessions, e.ID+" (missing "+name+")")
				break
			}
		}
	}
	a.Stale = len(a.StaleSessions)
	return a, nil
}

func (s *Server) rename(ctx context.Context, q control.RenameRequest) (control.MoveAnswer, error) {
	if q.Project == "" {
		return control.MoveAnswer{}, fault.New(fault.Usage, "no project given").WithHint("handoffctl rename ID PROJECT")
	}
	return s.move(q.ID, "renamed", func(e index.Entry) (verb.Moved, error) {
		return verb.Rename(ctx, s.Builder(), e, q.Project)
	})
}

func (s *Server) retitle(ctx context.Context, q control.RetitleRequest) (control.MoveAnswer, error) {
	if q.Name == "" {
		return control.MoveAnswer{}, fault.New(fault.Usage, "no name given").WithHint("handoffctl retitle ID NAME")
	}
	return s.move(q.ID, "retitled", func(e index.Entry) (verb.Moved, error) {
		return verb.Retitle(ctx, s.Builder(), e, q.Name)
	})
}

func (s *Server) move(id, action string, do func(index.Entry) (verb.Moved, error)) (control.MoveAnswer, error) {
	e, err := s.find(id)
	if err != nil {
		return control.MoveAnswer{}, err
	}
	m, err := do(e)
	if err != nil {
		return control.MoveAnswer{}, err
	}
	s.Daemon.Moved(e.Location())
	return control.MoveAnswer{OK: true, Action: action, Session: m.Session, Project: m.Project, Name: m.Name, Revision: m.Revision}, nil
}
