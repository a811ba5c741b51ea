package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"handoffd/daemon/continuity"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/policy/checkpoint"
	"handoffd/policy/execute"
	"handoffd/policy/gate"
	"handoffd/policy/permission"
)

// Gateway is what the verbs below /v1/runtime need of the process that they run
// in. Only the process of the user who asks has one: a daemon must not run
// programs for whoever reaches its socket.
type Gateway struct {
	CWD    string // absolute
	Home   string // "" when unknown
	Getenv func(string) string
}

// policyRoutes are the verbs of the permission gateway.
func policyRoutes() map[string]route {
	post := []string{http.MethodPost}
	return map[string]route{
		control.RuntimeEvaluate: {methods: post, serve: answer((*Server).runtimeEvaluate)},
		control.RuntimeRun:      {methods: post, serve: answer((*Server).runtimeRun)},
		control.RuntimePolicy:   {methods: post, serve: answer((*Server).runtimePolicy)},
		control.RuntimeJob:      {methods: post, serve: answer((*Server).runtimeJob)},
		control.RuntimeResume:   {methods: post, serve: answer((*Server).runtimeResume)},
		control.RuntimeStatus:   {methods: post, serve: answer((*Server).runtimeStatus)},
	}
}

// scope finds the policy that rules for whoever runs this process.
func (s *Server) scope(policy string) (permission.Scope, error) {
	if s.Gateway == nil {
		return permission.Scope{}, control.WithStatus(fault.New(fault.Denied, "a daemon executes nothing and decides nothing for others").
			WithHint("handoffctl runtime does it in its own process"), http.StatusForbidden)
	}
	return permission.Resolve(permission.Input{Policy: policy, CWD: s.Gateway.CWD, Home: s.Gateway.Home, Getenv: s.Gateway.Getenv})
}

// runner is scope with its records. Close the records.
func (s *Server) runner(policy string) (*execute.Runner, error) {
	scope, err := s.scope(policy)
	if err != nil {
		return nil, err
	}
	records, err := execute.OpenRecords(scope, s.Now)
	if err != nil {
		return nil, err
	}
	return &execute.Runner{Scope: scope, Records: records, Path: s.Gateway.Getenv("PATH"), Sole: true}, nil
}

func decision(d permission.Decision) control.Decision {
	return control.Decision{
		Verdict: string(d.Verdict), Reason: d.Reason, Risk: string(d.Risk),
		Level: orNull(string(d.Level)), Classification: orNull(string(d.Classification)),
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (s *Server) runtimeEvaluate(_ context.Context, q control.EvaluateRequest) (control.Decision, error) {
	r, err := s.runner(q.Policy)
	if err != nil {
		return control.Decision{}, err
	}
	defer r.Records.Close()
	if q.Risk == "" {
		return control.Decision{}, fault.New(fault.Usage, "usage: evaluate --risk R0..R4 [--target path]")
	}
	d, err := r.Evaluate(permission.Risk(q.Risk), q.Target)
	if err == nil && !d.Allowed() {
		err = &partial{d.Err(), decision(d)}
	}
	return decision(d), err
}

func (s *Server) runtimeRun(ctx context.Context, q control.RunRequest) (any, error) {
	r, err := s.runner(q.Policy)
	if err != nil {
		return nil, err
	}
	defer r.Records.Close()
	if q.Risk == "" || q.Op == "" {
		return nil, fault.New(fault.Usage, `usage: run --risk R0|R1 --op read --target <path> | --op spawn --args "<args>"`)
	}
	switch q.Op {
	case execute.OpRead:
		return runtimeRead(ctx, r, q)
	case execute.OpSpawn:
		return runtimeSpawn(ctx, r, q)
	}
	return nil, fault.New(fault.Usage, "unknown op %q (supported: read, spawn)", q.Op)
}

func runtimeRead(ctx context.Context, r *execute.Runner, q control.RunRequest) (any, error) {
	if q.Target == "" {
		return nil, fault.New(fault.Usage, "read op requires --target")
	}
	if q.Args != "" {
		return nil, fault.New(fault.Usage, "read op takes no --args")
	}
	out, err := r.Read(ctx, permission.Risk(q.Risk), q.Target)
	if err != nil {
		return nil, err
	}
	if out.Executed {
		return control.ReadAnswer{Executed: true, Bytes: out.Bytes, SHA256: out.SHA256, Record: out.Record}, nil
	}
	return nil, refusal(out.Decision, out.Err, out.Record)
}

func runtimeSpawn(ctx context.Context, r *execute.Runner, q control.RunRequest) (any, error) {
	if q.Args == "" {
		return nil, fault.New(fault.Usage, "spawn op requires --args")
	}
	if q.Target != "" {
		return nil, fault.New(fault.Usage, "spawn op takes no --target: it runs in the workspace")
	}
	out, err := r.Spawn(ctx, permission.Risk(q.Risk), q.Args)
	if err != nil {
		return nil, err
	}
	if out.Executed {
		return control.SpawnAnswer{Executed: true, ExitCode: out.ExitCode, Signal: orNull(out.Signal), TimedOut: out.TimedOut, Record: out.Record}, nil
	}
	return nil, refusal(out.Decision, out.Err, out.Record)
}

// refusal is what was not executed: because of the decision, or of err.
func refusal(d permission.Decision, err error, record string) error {
	if !d.Allowed() {
		return &partial{d.Err(), control.NotAllowed{Decision: decision(d), Record: record}}
	}
	return &partial{err, control.NotExecuted{Error: err.Error(), Record: record}}
}

// policyAnswer is the policy as it is written, and behind it what it means
// here.
type policyAnswer struct {
	permission.Policy
	Resolved resolved `json:"resolved"`
}

type resolved struct {
	Source     string   `json:"source"` // a path, or built-in
	Workspace  string   `json:"workspace"`
	StateDir   string   `json:"state_dir"`
	Workspaces []string `json:"approved_workspaces"` // where the existing ones really are
	System     []string `json:"system_read_only_roots"`
	Personal   []string `json:"personal_data_roots"`
	Denied     []string `json:"denied_roots"`
}

func (s *Server) runtimePolicy(_ context.Context, q control.PolicyRequest) (policyAnswer, error) {
	scope, err := s.scope(q.Policy)
	if err != nil {
		return policyAnswer{}, err
	}
	p := scope.Policy
	a := policyAnswer{Policy: p, Resolved: resolved{
		Source: scope.Source, Workspace: scope.Workspace, StateDir: scope.StateDir,
		Workspaces: scope.Places(p.ApprovedWorkspaces), System: scope.Places(p.SystemReadOnlyRoots),
		Personal: scope.Places(p.PersonalDataRoots), Denied: scope.Places(p.DeniedRoots),
	}}
	if a.Resolved.Source == "" {
		a.Resolved.Source = "built-in"
	}
	return a, nil
}

// jobs is runner for the verbs of jobs.
func (s *Server) jobs(policy, verb, session string) (*checkpoint.Jobs, error) {
	if session == "" {
		return nil, fault.New(fault.Usage, "%s requires --session", verb)
	}
	r, err := s.runner(policy)
	if err != nil {
		return nil, err
	}
	return &checkpoint.Jobs{Scope: r.Scope, Records: r.Records, Now: s.Now}, nil
}

func (s *Server) runtimeJob(ctx context.Context, q control.JobRequest) (any, error) {
	j, err := s.jobs(q.Policy, "job", q.Session)
	if err != nil {
		return nil, err
	}
	defer j.Records.Close()
	if q.Steps < 1 {
		return nil, fault.New(fault.Usage, "--steps must be an integer >= 1")
	}
	if q.FailAt != 0 && (q.FailAt < 2 || q.FailAt > q.Steps) {
		return nil, fault.New(fault.Usage, "--fail-at must be an integer in [2,%d]", q.Steps)
	}
	r, err := j.Start(ctx, q.Session, q.Steps, q.FailAt)
	return jobAnswer(j, r), err
}

func (s *Server) runtimeResume(ctx context.Context, q control.JobRequest) (any, error) {
	j, err := s.jobs(q.Policy, "resume", q.Session)
	if err != nil {
		return nil, err
	}
	defer j.Records.Close()
	if q.Steps < 1 {
		return nil, fault.New(fault.Usage, "--steps must be an integer >= 1")
	}
	if q.FailAt != 0 {
		return nil, fault.New(fault.Usage, "resume takes no --fail-at")
	}
	r, err := j.Resume(ctx, q.Session, q.Steps)
	return jobAnswer(j, r), err
}

func jobAnswer(j *checkpoint.Jobs, r checkpoint.Result) any {
	switch {
	case r.Already:
		return control.AlreadyAnswer{Session: r.Session, Already: true, Seq: r.Seq, Total: r.Steps}
	case r.KilledAt > 0:
		return control.KilledAnswer{
			Session: r.Session, KilledAt: r.KilledAt, Seq: r.Seq,
			Note: fmt.Sprintf("simulated abrupt kill (exit %d) — durable checkpoint intact at seq %d", control.ExitKilled, r.Seq),
		}
	}
	log := r.WorkLog
	if rel, err := filepath.Rel(j.Scope.Workspace, log); err == nil {
		log = rel
	}
	return control.JobAnswer{Session: r.Session, Completed: r.Completed, Steps: r.Steps, Seq: r.Seq, WorkLog: log}
}

func (s *Server) runtimeStatus(_ context.Context, q control.JobStatusRequest) (control.JobStatusAnswer, error) {
	if q.Session == "" {
		return control.JobStatusAnswer{}, fault.New(fault.Usage, "status requires --session")
	}
	scope, err := s.scope(q.Policy)
	if err != nil {
		return control.JobStatusAnswer{}, err
	}
	st, err := (&checkpoint.Jobs{Scope: scope}).Status(q.Session)
	a := control.JobStatusAnswer{Session: st.Session, Seq: st.Seq, Completed: st.Completed, LogLines: st.LogLines}
	if st.Total > 0 {
		a.Total = &st.Total
	}
	return a, err
}

// continuity is the process that the verbs of context continuity run in.
func (s *Server) continuity() continuity.Project {
	p := continuity.Project{Now: s.Now}
	if s.Gateway != nil {
		p.Private, p.CWD, p.Getenv = true, s.Gateway.CWD, s.Gateway.Getenv
	}
	return p
}

// contextual makes a route of a verb of context continuity.
func contextual[Q, A any](verb func(continuity.Project, context.Context, Q) (A, error)) route {
	return route{methods: []string{http.MethodPost}, serve: answer(func(s *Server, ctx context.Context, q Q) (A, error) {
		a, err := verb(s.continuity(), ctx, q)
		var half *continuity.Answered
		if errors.As(err, &half) {
			err = &partial{half.Err, half.Answer}
		}
		return a, err
	})}
}

// contextRoutes are the verbs of context continuity.
func contextRoutes() map[string]route {
	return map[string]route{
		control.ContextBands: {methods: []string{http.MethodPost}, serve: answer((*Server).contextBands)},
		control.ContextGate: contextual(func(p continuity.Project, _ context.Context, q control.ContextGateRequest) (gate.Verdict, error) {
			return p.Gate(q)
		}),
		control.ContextWrite:    contextual(continuity.Project.Write),
		control.ContextResume:   contextual(continuity.Project.Resume),
		control.ContextBypass:   contextual(continuity.Project.Bypass),
		control.ContextRepair:   contextual(continuity.Project.Repair),
		control.ContextUnlock:   contextual(continuity.Project.Unlock),
		control.ContextContinue: contextual(continuity.Project.Continue),
	}
}

func (s *Server) contextBands(_ context.Context, q control.BandsRequest) (control.BandsAnswer, error) {
	return s.continuity().Bands(q, func(id string) (*session.Manifest, error) {
		e, err := s.find(id)
		if err != nil {
			return nil, err
		}
		m, _, err := store.ReadManifest(s.Store.SessionDir(e.Project, e.ID))
		return m, err
	})
}
