package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/store"
	"handoffd/engine/verify"
)

func (s *Server) list(_ context.Context, q control.ListRequest) (control.ListAnswer, error) {
	if q.Project != "" && q.ID != "" {
		return control.ListAnswer{}, fault.New(fault.Usage, "project and id are one filter: give either")
	}
	entries, err := s.Builder().Index.Entries()
	if err != nil {
		return control.ListAnswer{}, err
	}
	if len(entries) == 0 {
		return control.ListAnswer{}, fault.New(fault.NotFound, "no handoffs yet")
	}
	filter := cmp.Or(q.Project, q.ID)
	a := control.ListAnswer{OK: true, Action: control.List, Sessions: []control.Session{}}
	for _, e := range entries {
		switch {
		case !matches(e, filter):
		case e.Kind == "warmup" && !q.All && filter != e.ID && filter != e.UUID:
			a.Hidden++
		default:
			a.Sessions = append(a.Sessions, sessionOf(e))
		}
	}
	if len(a.Sessions) == 0 {
		err := fault.New(fault.NotFound, "no handoffs matching %s", filter)
		if filter == "" {
			err = fault.New(fault.NotFound, "no handoffs yet")
		}
		if a.Hidden > 0 {
			err = err.WithHint("%d warm-up session(s) are hidden; --all shows them", a.Hidden)
		}
		return control.ListAnswer{}, err
	}
	slices.SortFunc(a.Sessions, func(x, y control.Session) int {
		return cmp.Or(cmp.Compare(y.Updated, x.Updated), cmp.Compare(x.Project, y.Project), cmp.Compare(x.ID, y.ID))
	})
	return a, nil
}

// matches reports whether the filter names the entry's project, or begins its
// id.
func matches(e index.Entry, filter string) bool {
	begins := func(prefix string) bool {
		return strings.HasPrefix(e.ID, prefix) || strings.HasPrefix(e.UUID, prefix)
	}
	if filter == "" || filter == e.Project || begins(filter) {
		return true
	}
	project, prefix, qualified := strings.Cut(filter, "/")
	return qualified && project == e.Project && begins(prefix)
}

func sessionOf(e index.Entry) control.Session {
	return control.Session{
		ID: e.ID, UUID: e.UUID, Project: e.Project, Harness: e.Harness, Turns: e.Turns, Revisions: e.Revisions,
		Updated: e.Updated, ManifestSHA256: e.ManifestSHA256, Kind: e.Kind, Parent: e.Parent, ForkedFrom: e.ForkedFrom,
		Title: e.Title, Damaged: e.Damaged,
	}
}

// find resolves an id as every verb does.
func (s *Server) find(id string) (index.Entry, error) {
	if id == "" {
		return index.Entry{}, fault.New(fault.Usage, "no session given").WithHint("name it by its id or the start of it")
	}
	return s.Builder().Index.Find(id)
}

func (s *Server) show(w http.ResponseWriter, r *http.Request, body []byte) error {
	var q control.ShowRequest
	if err := decode(body, &q); err != nil {
		return err
	}
	name, err := fileOf(q)
	if err != nil {
		return err
	}
	e, err := s.find(q.ID)
	if err != nil {
		return err
	}
	if s.Settings.VerifyOnRead {
		rep, err := verify.Session(r.Context(), s.Store, e.Location())
		if err != nil {
			return err
		}
		if !rep.OK {
			return fault.New(fault.Integrity, "%s: %s", rep.Session, rep.Reason).WithHint("integrity.verify_on_read is set; build it again, or see: handoffctl verify %s", e.ID)
		}
	}
	if q.Payload {
		if err := s.Builder().RefreshPayload(r.Context(), e.Location()); err != nil {
			return err
		}
	}
	f, size, err := s.openFile(e, name)
	if err != nil {
		return err
	}
	defer f.Close()
	content := io.LimitReader(f, size)
	if r.Header.Get("Accept") == control.ContentRaw {
		w.Header().Set("Content-Type", control.ContentRaw)
		w.WriteHeader(http.StatusOK)
		_, err := io.Copy(w, content)
		return err
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return fault.New(fault.Internal, "read %s: %w", name, err)
	}
	return writeJSON(w, http.StatusOK, control.ShowAnswer{
		OK: true, Action: control.Show, Session: e.UUID, Project: e.Project, File: f.Name(),
		Text: strings.ToValidUTF8(string(text), "\ufffd"),
	})
}

// fileOf is the file that a request asks for.
func fileOf(q control.ShowRequest) (string, error) {
	name := store.BriefName
	for _, f := range []struct {
		asked bool
		name  string
	}{{q.Payload, store.PayloadName}, {q.Summary, store.SummaryName}, {q.Tools, store.ToolsName}, {q.Timeline, store.TimelineName}} {
		switch {
		case !f.asked:
		case name != store.BriefName:
			return "", fault.New(fault.Usage, "one file at a time: payload, summary, tools or timeline")
		default:
			name = f.name
		}
	}
	return name, nil
}

// openFile opens a file of a session and says how much of it is committed:
// what a build is appending right now is not part of it.
func (s *Server) openFile(e index.Entry, name string) (*os.File, int64, error) {
	dir := s.Store.SessionDir(e.Project, e.ID)
	f, err := os.Open(filepath.Join(dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist) && name == store.ToolsName:
		return nil, 0, fault.New(fault.NotFound, "%s has no tool calls", e.UUID)
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, fault.New(fault.Integrity, "%s of %s is missing", name, e.UUID).
			WithHint("a build of the session's source makes it again")
	case err != nil:
		return nil, 0, fault.New(fault.Internal, "open %s: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, fault.New(fault.Internal, "look at %s: %w", name, err)
	}
	size := info.Size()
	if m, _, err := store.ReadManifest(dir); err == nil && (name == store.TimelineName || name == store.ToolsName) {
		if a, ok := m.Artifact(name); ok {
			size = min(size, a.Bytes)
		}
	}
	return f, size, nil
}

func (s *Server) verify(ctx context.Context, q control.VerifyRequest) (control.VerifyAnswer, error) {
	var list []index.Entry
	switch {
	case q.All && q.ID != "":
		return control.VerifyAnswer{}, fault.New(fault.Usage, "name a session or all, not both")
	case q.All:
		entries, err := s.Builder().Index.Entries()
		if err != nil {
			return control.VerifyAnswer{}, err
		}
		if len(entries) == 0 {
			return control.VerifyAnswer{}, fault.New(fault.NotFound, "no handoffs yet")
		}
		slices.SortFunc(entries, func(a, b index.Entry) int {
			return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.ID, b.ID))
		})
		list = entries
	default:
		e, err := s.find(q.ID)
		if err != nil {
			return control.VerifyAnswer{}, err
		}
		list = append(list, e)
	}
	a := control.VerifyAnswer{OK: true, Action: control.Verify, Sessions: []control.Verified{}}
	var first *control.Verified
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return a, err
		}
		v := verified(ctx, s.Store, e)
		a.Sessions = append(a.Sessions, v)
		if !v.OK {
			a.OK = false
			if first == nil {
				first = &a.Sessions[len(a.Sessions)-1]
			}
		}
	}
	if a.OK {
		return a, nil
	}
	err := fault.New(fault.Integrity, "%s: %s", first.Session, first.Reason)
	return a, &partial{err, a}
}

// verified checks one session. A session that cannot be read has failed: the
// others of verify --all are looked at all the same.
func verified(ctx context.Context, st store.Store, e index.Entry) control.Verified {
	rep, err := verify.Session(ctx, st, e.Location())
	if err != nil {
		return control.Verified{
			Session: e.UUID, Project: e.Project, Dir: st.SessionDir(e.Project, e.ID), Reason: err.Error(),
			Checks: []control.Check{}, Line: fmt.Sprintf("FAIL %s: %v", e.UUID, err),
		}
	}
	v := control.Verified{
		Session: rep.Session, Project: rep.Project, Dir: rep.Dir, OK: rep.OK, Reason: rep.Reason, Turns: rep.Turns,
		Checks: []control.Check{}, Line: rep.Line(),
	}
	for _, c := range rep.Checks {
		v.Checks = append(v.Checks, control.Check{Name: c.Name, Result: c.Result, Detail: c.Detail})
	}
	return v
}
