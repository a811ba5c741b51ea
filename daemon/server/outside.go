package server

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/verb"
	"handoffd/policy/execute"
	"handoffd/policy/permission"
)

const (
	// brokerPatience is how long a broker may take, and outputLimit how much
	// of what it prints is read, in bytes.
	brokerPatience = 60 * time.Second
	outputLimit    = 1 << 20
	// fetchPatience is how long the copying of another machine's store may
	// take.
	fetchPatience = 4 * time.Hour
)

// outside is what verbs may do beyond the store: what the permission policy
// lets the user who asks do. Only the user's own process has one.
type outside struct {
	s     *Server
	scope permission.Scope
	named []string
}

// outside returns what a verb may do on whose command line the user named
// these places.
func (s *Server) outside(named ...string) (*outside, error) {
	o := &outside{s: s, named: named}
	if s.Gateway == nil {
		return o, nil
	}
	var err error
	o.scope, err = s.scope("")
	return o, err
}

// guard returns the one who is asked. It records what it is asked about
// running, not about reading: a look at another store leaves nothing behind.
func (o *outside) guard(named ...string) (*permission.Guard, error) {
	if o.s.Gateway == nil {
		return nil, fault.New(fault.Denied, "a daemon reads, runs and contacts nothing outside of its store for others").
			WithHint("handoffctl does it in its own process")
	}
	return o.scope.Guard(o.record, append(named, o.named...)...), nil
}

func (o *outside) record(op, target string, d permission.Decision) error {
	if op == "read" && d.Allowed() {
		return nil
	}
	records, err := execute.OpenRecords(o.scope, o.s.Now)
	if err != nil {
		return err
	}
	defer records.Close()
	r := records.New(op, d)
	r.Set("target", target)
	_, err = r.Write()
	return err
}

// Read asks whether a place may be read.
func (o *outside) Read(path string) error {
	g, err := o.guard()
	if err != nil {
		return err
	}
	return g.Read(path)
}

// Connect implements federate.Fetcher.
func (o *outside) Connect(host string) error {
	g, err := o.guard(host)
	if err != nil {
		return err
	}
	return g.Connect(host)
}

// Execute implements verb.Outside.
func (o *outside) Execute(path string) error {
	g, err := o.guard(path)
	if err != nil {
		return err
	}
	return g.Execute(path)
}

// Look implements verb.Outside: a program on the user's search path is one
// that the user named.
func (o *outside) Look(name string) (string, error) {
	if o.s.Gateway == nil {
		_, err := o.guard()
		return "", err
	}
	for _, dir := range filepath.SplitList(o.s.Gateway.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fault.New(fault.Missing, "%s is not installed: it is nowhere on PATH", name)
}

// Run implements verb.Outside.
func (o *outside) Run(ctx context.Context, dir string, argv []string) (verb.Ran, error) {
	f, err := o.run(ctx, execute.Command{Argv: argv, Dir: dir, Timeout: brokerPatience, Limit: outputLimit})
	return verb.Ran(f), err
}

// Stream implements federate.Fetcher.
func (o *outside) Stream(ctx context.Context, argv []string, w io.Writer) (exit int, stderr []byte, err error) {
	f, err := o.run(ctx, execute.Command{Argv: argv, Timeout: fetchPatience, Limit: outputLimit, Stream: w})
	if err == nil && f.TimedOut {
		err = fault.New(fault.Internal, "%s did not end in time", filepath.Base(argv[0]))
	}
	return f.Exit, f.Stderr, err
}

func (o *outside) run(ctx context.Context, c execute.Command) (execute.Finished, error) {
	g, err := o.guard(c.Argv[0])
	if err != nil {
		return execute.Finished{}, err
	}
	c.Env = os.Environ()
	return c.Run(ctx, g)
}

// stateDir is where what is not a handoff is kept.
func (s *Server) stateDir() (string, error) {
	if s.Gateway == nil {
		return "", control.WithStatus(fault.New(fault.Denied, "a daemon has no workspace to write to").
			WithHint("handoffctl does it in its own process"), 403)
	}
	scope, err := s.scope("")
	return scope.StateDir, err
}
