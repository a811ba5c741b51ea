package server

import (
	"context"
	"strings"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/render"
	"handoffd/engine/verb"
	"handoffd/engine/verify"
)

func (s *Server) contractSet(ctx context.Context, q control.ContractSetRequest) (control.ContractAnswer, error) {
	fields := q.Fields()
	if len(fields) == 0 {
		return control.ContractAnswer{}, fault.New(fault.Usage, "no field given").WithHint("handoffctl contract set ID --result TEXT ..., or JSON on stdin")
	}
	e, err := s.find(q.ID)
	if err != nil {
		return control.ContractAnswer{}, err
	}
	c, m, err := verb.SetContract(ctx, s.Builder(), e, fields)
	if err != nil {
		return control.ContractAnswer{}, err
	}
	a := contractAnswer(c)
	a.Session, a.Project, a.Committed, a.Revision = m.Session, e.Project, true, m.Revisions
	return a, nil
}

func (s *Server) contractShow(_ context.Context, q control.ContractShowRequest) (control.ContractAnswer, error) {
	e, err := s.find(q.ID)
	if err != nil {
		return control.ContractAnswer{}, err
	}
	c, err := verify.Written(s.Store.SessionDir(e.Project, e.ID))
	if err != nil {
		return control.ContractAnswer{}, fault.New(fault.Integrity, "%s: %w", e.UUID, err).WithHint("build it from its source first")
	}
	if c.Block == "" {
		return control.ContractAnswer{}, fault.New(fault.NotFound, "%s has no evidence contract", e.UUID).WithHint("handoffctl contract set %s --help", e.ID)
	}
	a := contractAnswer(c)
	a.Session, a.Project = e.UUID, e.Project
	if m, err := s.manifest(e); err == nil {
		a.Committed, a.Revision = m.EvidenceContractSHA256 == c.SHA256, m.Revisions
	}
	return a, nil
}

func contractAnswer(c render.Contract) control.ContractAnswer {
	a := control.ContractAnswer{
		OK: true, Action: "contract", Fields: map[string]string{}, Missing: []string{}, Text: c.Block, SHA256: c.SHA256,
	}
	have := render.Texts(c.Block)
	for _, name := range render.FieldNames {
		if v, ok := have[name]; ok {
			a.Fields[strings.ToLower(name)] = v
		} else {
			a.Missing = append(a.Missing, strings.ToLower(name))
		}
	}
	return a
}

func (s *Server) verifyGate(_ context.Context, q control.GateRequest) (control.GateAnswer, error) {
	e, err := s.find(q.ID)
	if err != nil {
		return control.GateAnswer{}, err
	}
	v, err := verify.Gate(s.Store, e.Location())
	if err != nil {
		return control.GateAnswer{}, err
	}
	a := gateAnswer(v)
	if q.ExitCode && !v.OK {
		return a, &partial{fault.New(fault.Rejected, "%s: evidence gate REJECTED: %s", v.Session, strings.Join(v.Failed(), ", ")), a}
	}
	return a, nil
}

func gateAnswer(v verify.Verdict) control.GateAnswer {
	a := control.GateAnswer{OK: v.OK, Verdict: v.Word(), Session: v.Session, Project: v.Project, Reasons: map[string]string{}}
	for _, c := range v.Checks {
		word := "PASS"
		if c.Result == verify.Fail {
			word = "FAIL"
			a.Reasons[c.Name] = c.Detail
		}
		switch c.Name {
		case "sha":
			a.Checks.SHA = word
		case "counts":
			a.Checks.Counts = word
		case "payload":
			a.Checks.Payload = word
		case "contract":
			a.Checks.Contract = word
		case "evidence":
			a.Checks.Evidence = word
		}
	}
	return a
}

// promote stamps also what the gate rejects, unless the request or a
// configuration is stricter. Its answer has the verdict in it, also where it
// fails.
func (s *Server) promote(ctx context.Context, q control.PromoteRequest) (control.PromoteAnswer, error) {
	e, err := s.find(q.ID)
	if err != nil {
		return control.PromoteAnswer{}, err
	}
	strict := q.RequireVerified || s.Settings.Gate.Enforce
	if d, err := s.DaemonSettings(); !strict && err == nil {
		strict = d.Gate.Enforce
	}
	p, err := verb.Promote(ctx, s.Builder(), e, strict, s.Now())
	a := control.PromoteAnswer{
		OK: err == nil, Action: "promoted", Session: e.UUID, Project: e.Project, At: p.At, By: p.By, Revision: p.Revision,
	}
	if p.Verdict.Session != "" {
		v := gateAnswer(p.Verdict)
		a.Verdict, a.Gate = &v, v.Verdict
	}
	if err == nil {
		s.Daemon.Moved(e.Location())
		return a, nil
	}
	if a.Verdict == nil {
		return a, err
	}
	a.Action = "refused"
	return a, &partial{err, a}
}
