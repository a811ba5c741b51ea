package server

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/federate"
	"handoffd/engine/index"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
	"handoffd/engine/verb"
)

func (s *Server) merge(ctx context.Context, q control.MergeRequest) (control.MergeAnswer, error) {
	if q.A == "" || q.B == "" {
		return control.MergeAnswer{}, fault.New(fault.Usage, "two sessions are merged: name both").WithHint("handoffctl merge A B")
	}
	var found [2]index.Entry
	for i, id := range []string{q.A, q.B} {
		e, err := s.find(id)
		if err != nil {
			return control.MergeAnswer{}, err
		}
		found[i] = e
	}
	m, err := verb.Merge(ctx, s.Builder(), found[0], found[1], q.Render)
	if err != nil {
		return control.MergeAnswer{}, err
	}
	s.Daemon.Moved(m.Location)
	return control.MergeAnswer{
		OK: true, Action: "merged", Into: m.Into, Turns: m.Turns, New: m.New, Project: m.Location.Project,
		Dir: s.Store.SessionDir(m.Location.Project, m.Location.Dir), Revision: m.Revision, Rendered: m.Rendered,
	}, nil
}

// federate imports other stores. The reading of a root that is a directory is
// asked of the permission policy, and so is the program that fetches one from
// another machine.
func (s *Server) federate(ctx context.Context, q control.FederateRequest) (control.FederateAnswer, error) {
	a := control.FederateAnswer{
		Action: control.Federate, DryRun: q.DryRun, Roots: q.From,
		Imported: []control.Import{}, Failed: []control.NotImported{}, Conflicts: []control.Conflict{},
	}
	if len(q.From) == 0 {
		return a, fault.New(fault.Usage, "no store given").WithHint("handoffctl federated-merge --from ROOT")
	}
	if !q.DryRun {
		if err := safefile.MakeDir(filepath.Join(s.Store.Root, store.ProjectsDir)); err != nil {
			return a, err
		}
	}
	var f verb.Federated
	for _, name := range q.From {
		if err := s.importFrom(ctx, &f, name, q); err != nil {
			if ctx.Err() != nil {
				return a, ctx.Err()
			}
			f.Failed = append(f.Failed, verb.NotImported{Root: name, Err: err})
		}
	}
	for _, i := range f.Imported {
		x := control.Import{Root: i.Root, Project: i.Project, Session: i.Session, Action: i.Action, Turns: i.Turns, New: i.New, ManifestSHA256: i.ManifestSHA256}
		if i.Verified {
			x.Verify = "PASS"
		}
		a.Imported = append(a.Imported, x)
	}
	for _, i := range f.Failed {
		a.Failed = append(a.Failed, control.NotImported{Root: i.Root, Project: i.Project, Session: i.Session, Reason: i.Err.Error()})
	}
	for _, c := range f.Conflicts {
		a.Conflicts = append(a.Conflicts, control.Conflict{
			Root: c.Root, Project: c.Project, Session: c.Session, Common: c.Common, Local: c.Own, Remote: c.Missing, Contract: c.Contract,
		})
	}
	a.Skipped = f.Skipped
	if a.OK = len(a.Failed) == 0; a.OK {
		return a, nil
	}
	first := a.Failed[0]
	what := first.Root
	if first.Session != "" {
		what += ", session " + first.Session
	}
	return a, &partial{fault.New(fault.Internal, "%d of what was to be imported failed; first %s: %s", len(a.Failed), what, first.Reason), a}
}

func (s *Server) importFrom(ctx context.Context, f *verb.Federated, name string, q control.FederateRequest) error {
	dir := name
	out, err := s.outside(name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(name, federate.Scheme) {
		fetched, err := federate.Fetch(ctx, name, out)
		if err != nil {
			return err
		}
		defer fetched.Remove()
		dir = fetched.Dir
	} else if !filepath.IsAbs(name) {
		return fault.New(fault.Usage, "the root %s is not an absolute path", name)
	} else if err := out.Read(dir); err != nil {
		return err
	}
	root, err := federate.Open(name, dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return f.Import(ctx, s.Builder(), root, verb.Federation{DryRun: q.DryRun, Redact: q.Redact, Now: s.Now()})
}

func (s *Server) dispatch(ctx context.Context, q control.DispatchRequest) (control.DispatchAnswer, error) {
	switch {
	case strings.TrimSpace(q.Task) == "":
		return control.DispatchAnswer{}, fault.New(fault.Usage, "no task given").WithHint("handoffctl dispatch ID --task TEXT")
	case q.Broker != "" && !filepath.IsAbs(q.Broker):
		return control.DispatchAnswer{}, fault.New(fault.Usage, "the broker %s is not an absolute path", q.Broker)
	}
	e, err := s.find(q.ID)
	if err != nil {
		return control.DispatchAnswer{}, err
	}
	out, err := s.outside(q.Broker)
	if err != nil {
		return control.DispatchAnswer{}, err
	}
	if q.Live && q.Broker != "" {
		if _, err := out.guard(); err != nil {
			return control.DispatchAnswer{}, err
		}
	}
	sent, err := verb.Send(ctx, s.Builder(), e, verb.Dispatch{
		Task: q.Task, Role: q.Role, Parent: q.Parent, Broker: q.Broker, Live: q.Live, Once: q.Once, Again: q.Again, Verified: q.Verified,
	}, out, s.Now())
	a := control.DispatchAnswer{
		OK: err == nil, Status: sent.Status, Session: e.UUID, Output: sent.Output, Record: sent.Record, Already: sent.Before,
	}
	if sent.Envelope.FromHandoff != "" {
		env := control.Envelope(sent.Envelope)
		a.Envelope = &env
	}
	switch {
	case fault.Is(err, fault.GateRejected):
		a.Status, a.Reason = "GATE_REJECTED", err.Error()
		return a, &partial{err, a}
	case err != nil && a.Envelope != nil:
		if a.Status != verb.Uncertain {
			a.Status = "FAILED"
		}
		a.Reason = err.Error()
		return a, &partial{err, a}
	case err != nil:
		return a, err
	case sent.Status == verb.DryRun && q.Broker != "":
		a.Next = "re-run with --live to enqueue it"
	case sent.Status == verb.DryRun:
		a.Next = "name a broker root with --broker and re-run with --live to enqueue it"
	}
	return a, nil
}

// candidatesName is the file that lists the briefs which fall short.
const candidatesName = "self-improve-candidates.json"

// candidates is the file's content, with the reference's members.
type candidates struct {
	Candidates []verb.Candidate `json:"candidates"`
	Scanned    int              `json:"scanned"`
}

func (s *Server) improve(ctx context.Context, _ control.ImproveRequest) (control.ImproveAnswer, error) {
	a := control.ImproveAnswer{OK: true, Action: control.Improve}
	dir, err := s.stateDir()
	if err != nil {
		return a, err
	}
	scanned, found, err := verb.Shortfalls(ctx, s.Builder())
	if err != nil {
		return a, err
	}
	raw, err := json.Marshal(candidates{found, scanned}, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return a, fault.New(fault.Internal, "encode the candidates: %w", err)
	}
	path := filepath.Join(dir, candidatesName)
	if err := safefile.MakeDir(dir); err != nil {
		return a, err
	}
	if err := safefile.Replace(path, append(raw, '\n')); err != nil {
		return a, err
	}
	a.Scanned, a.Candidates, a.WrittenTo = scanned, len(found), path
	return a, nil
}
