// Package continuity answers the verbs of context continuity: it finds the
// project, gives policy what only this process knows, and reads transcripts of
// every known format for what was said last. A daemon that has it answers
// bands and gate alone, and is never given the key.
package continuity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/session"
	"handoffd/policy/deny"
	"handoffd/policy/evidence"
	"handoffd/policy/gate"
	"handoffd/policy/pressure"
	"handoffd/policy/signed"
)

// Project is the process that a verb runs in. Only that of the user who asks is
// private: a daemon has neither the key nor the user's directory.
type Project struct {
	Private bool
	CWD     string // absolute; "" where it is not private
	Getenv  func(string) string
	Now     func() time.Time
}

// Answered is a failure that has an answer all the same.
type Answered struct {
	Err    error
	Answer any
}

// Error implements error.
func (a *Answered) Error() string { return a.Err.Error() }

// Unwrap returns the failure.
func (a *Answered) Unwrap() error { return a.Err }

// Bands says where signals are, or a session of which manifest returns the
// manifest.
func (p Project) Bands(q control.BandsRequest, manifest func(id string) (*session.Manifest, error)) (control.BandsAnswer, error) {
	a := control.BandsAnswer{Signals: map[string]jsontext.Value{}}
	var o pressure.Observation
	switch {
	case q.Session != "":
		m, err := manifest(q.Session)
		if err != nil {
			return a, err
		}
		o, a.Window, a.WindowFrom = pressure.Measure(m.Meta.Tokens, m.Model)
		a.Session, a.Context = m.Session, m.Meta.Tokens.Context
		if o.Pct != nil {
			a.Signals["pct"], _ = json.Marshal(*o.Pct)
		}
	case len(q.Observation) > 0:
		var err error
		if o, err = pressure.Parse(q.Observation); err != nil {
			return a, fault.New(fault.Operational, "%w", err)
		}
		var members map[string]jsontext.Value
		_ = json.Unmarshal(q.Observation, &members, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		q.Pct, q.Depth, q.Bytes = members["pct"], members["depth"], members["bytes"]
		fallthrough
	default:
		malformed := o.Malformed
		o = pressure.Observation{Pct: pressure.Signal(q.Pct), Depth: pressure.Signal(q.Depth), Bytes: pressure.Signal(q.Bytes), Malformed: malformed}
		for name, v := range map[string]jsontext.Value{"pct": q.Pct, "depth": q.Depth, "bytes": q.Bytes} {
			if len(v) > 0 && v.Kind() != 'n' {
				a.Signals[name] = v
			}
		}
	}
	b := o.Bands()
	a.Warn, a.Handoff, a.Hard = b.Warn, b.Handoff, b.Hard
	if left, ok := o.Remaining(); ok {
		a.Remaining = &left
	}
	return a, nil
}

// ledgerName is the directory of a project's ledger.
const ledgerName = ".adlc"

// project finds the ledger that a request means: the one it names, else the
// nearest above cwd in the same checkout, else the one that would be there.
func project(dir, cwd string) (root string, err error) {
	if dir != "" {
		if filepath.Base(dir) != ledgerName {
			return "", fault.New(fault.Operational, "--dir %s does not end in %s", dir, ledgerName)
		}
		return filepath.Dir(dir), nil
	}
	for at := filepath.Clean(cwd); ; {
		if info, err := os.Stat(filepath.Join(at, ledgerName)); err == nil && info.IsDir() {
			return at, nil
		}
		up := filepath.Dir(at)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil || up == at {
			return cwd, nil
		}
		at = up
	}
}

func (p Project) stores(root string) (deny.Store, evidence.Ledger) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	st := deny.Store{Root: root, Now: p.Now, Host: host}
	return st, evidence.Ledger{Dir: st.Ledger(), Host: host, Now: p.Now}
}

// Gate decides whether a tool call may change something.
func (p Project) Gate(q control.ContextGateRequest) (gate.Verdict, error) {
	tool := gate.Tool(q.Tool)
	if tool != gate.Edit && tool != gate.Shell && tool != gate.Read {
		return gate.Verdict{}, fault.New(fault.Operational, "--tool is edit, shell or read")
	}
	cwd := q.CWD
	if cwd == "" && p.Private {
		cwd = p.CWD
	}
	if !filepath.IsAbs(cwd) || q.Dir != "" && !filepath.IsAbs(q.Dir) {
		return gate.Verdict{}, fault.New(fault.Operational, "the gate is asked with absolute directories")
	}
	root, err := project(q.Dir, cwd)
	if err != nil {
		return gate.Verdict{}, err
	}
	if q.Dir != "" && q.CWD == "" {
		cwd = root
	}
	c := gate.Call{
		Session: q.Session, Tool: tool, Targets: q.Targets, Command: q.Command, Dir: cwd, Host: q.Host, EverDenied: q.EverDenied,
		Pressure: pressure.Observation{Pct: pressure.Signal(q.Pct), Depth: pressure.Signal(q.Depth), Bytes: pressure.Signal(q.Bytes)},
	}
	c.Store, c.Ledger = p.stores(root)
	if c.Host == "" {
		c.Host = "local"
	}
	environment := ""
	if p.Private { // a daemon has neither the key nor the caller's program
		if err := p.arm(&c, q.KeyFile); err != nil {
			return refusedVerdict(gate.Failed(c, err))
		}
		environment = p.Getenv("ADLC_TICKET")
	}
	if c.Ticket = q.Ticket; c.Ticket == "" && c.Store.Present() {
		if c.Ticket, err = c.Ledger.ActiveTicket(environment); err != nil && tool != gate.Read {
			return refusedVerdict(gate.Failed(c, err))
		}
	}
	return refusedVerdict(decide(c))
}

// decide is the gate, of which a fault is no way in.
func decide(c gate.Call) (v gate.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = gate.Failed(c, fmt.Errorf("panic: %v", p))
		}
	}()
	return gate.Decide(c)
}

// arm gives the gate what only the user's own process has.
func (p Project) arm(c *gate.Call, keyFile string) (err error) {
	if c.Key, err = signed.ReadKey(p.Getenv(signed.KeyEnv), keyFile); err != nil {
		return err
	}
	c.KeyInReach = p.Getenv(signed.KeyEnv) != ""
	self, err := os.Executable()
	if err != nil {
		return nil // then no command leads out
	}
	own, err := filepath.EvalSymlinks(self)
	if err != nil {
		return nil
	}
	c.Program = self
	c.Own = func(path string) bool {
		real, err := filepath.EvalSymlinks(path)
		return err == nil && real == own
	}
	return nil
}

// refusedVerdict makes a deny a refusal that has its verdict in it.
func refusedVerdict(v gate.Verdict) (gate.Verdict, error) {
	if v.Deny {
		return v, &Answered{fault.New(fault.Refused, "this call may not change anything"), v}
	}
	return v, nil
}

// operational makes usage errors what they are in these verbs, and puts the
// head of their answers on failures.
func operational(head control.ContextHead, err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if !errors.As(err, &known) || known.Kind != fault.Refused && known.Kind != fault.Operational {
		err = fault.New(fault.Operational, "%w", err).WithHint("%s", fault.HintOf(err))
	}
	return &Answered{err, head}
}
