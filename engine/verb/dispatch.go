package verb

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/redact"
	"handoffd/engine/store"
	"handoffd/engine/verify"
)

// The states of a dispatch.
const (
	DryRun     = "DRY_RUN"
	Dispatched = "DISPATCHED"
	// Uncertain is a dispatch that was begun and of which nobody knows how it
	// ended.
	Uncertain = "UNCERTAIN"
)

// The modes that an envelope names.
const (
	modeLive   = "live"
	modeDryRun = "dry-run"
)

// DefaultRole is the role that a request is addressed to.
const DefaultRole = "implementation-agent"

// Dispatch is a request to hand a session's continuation to a worker.
type Dispatch struct {
	Task, Role, Parent string
	// Broker is the root of the broker program, absolute, "" for none.
	Broker string
	Live   bool
	// Once records the dispatch, so that the same request is made at most
	// once; Again makes one all the same that is recorded as begun or made.
	Once, Again bool
	// Verified asks for the whole evidence gate instead of the contract's.
	Verified bool
}

// Envelope is what a worker is told. Its text is free of credentials.
type Envelope struct {
	FromHandoff  string   `json:"from_handoff"`
	Project      string   `json:"project"`
	Role         string   `json:"role"`
	ParentTaskID string   `json:"parentTaskId"`
	Objective    string   `json:"objective"`
	Evidence     string   `json:"evidence"` // seal of the manifest
	Requirements []string `json:"evidenceRequirements"`
	DispatchedAt string   `json:"dispatchedAt"`
	BrokerMode   string   `json:"broker_mode"`
	HandoffDir   string   `json:"handoff_dir"`
}

// Sent is what a dispatch came to.
type Sent struct {
	Status   string
	Envelope Envelope
	// Output is the broker's answer, in JSON.
	Output jsontext.Value
	// Record is the file that records it, Before whether it was made earlier.
	Record string
	Before bool
}

// Outside is what a verb may do beyond the store. Each method refuses or does.
type Outside interface {
	// Execute asks whether the program at path may be run.
	Execute(path string) error
	// Run runs a program without a shell, in dir, for a limited time.
	Run(ctx context.Context, dir string, argv []string) (Ran, error)
	// Look finds a program by its name, as a shell would.
	Look(name string) (string, error)
}

// Ran is what running a program came to.
type Ran struct {
	// Started says that it ran at all, whatever became of it.
	Started        bool
	Stdout, Stderr []byte
	Exit           int
	TimedOut       bool
	Cut            bool // more output than is kept
}

// Send checks that the handoff is complete and hands it on. Without Live and a
// broker nothing is written and nothing started. The error is
// fault.GateRejected, fault.Missing when the broker has no entry, or one of
// the broker.
func Send(ctx context.Context, b *pipeline.Builder, e index.Entry, q Dispatch, out Outside, now time.Time) (Sent, error) {
	dir := b.Store.SessionDir(e.Project, e.ID)
	m, _, err := store.ReadManifest(dir)
	if err != nil {
		return Sent{}, fault.New(fault.Integrity, "session %s: read manifest: %w", e.UUID, err)
	}
	contract, err := verify.Written(dir)
	if err == nil {
		err = verify.Ready(contract)
	}
	if err != nil && !fault.Is(err, fault.GateRejected) {
		err = fault.New(fault.GateRejected, "handoff fails the evidence gate (%w)", err)
	}
	if err == nil && q.Verified {
		err = b.RefreshPayload(ctx, e.Location())
		if err == nil {
			err = fullGate(b.Store, e.Location())
		}
	}
	if err != nil {
		return Sent{}, err
	}
	s := Sent{Status: DryRun, Envelope: Envelope{
		FromHandoff: m.Session, Project: m.Project, Role: q.Role, ParentTaskID: q.Parent, Objective: redact.Text(q.Task),
		Evidence: m.ManifestSHA256, Requirements: []string{"verified-handoff"}, BrokerMode: modeDryRun,
		DispatchedAt: pipeline.StampTime(now), HandoffDir: absolute(dir),
	}}
	if s.Envelope.Role == "" {
		s.Envelope.Role = DefaultRole
	}
	if s.Envelope.ParentTaskID == "" {
		s.Envelope.ParentTaskID = "handoff:" + m.Session
	}
	if !q.Live || q.Broker == "" {
		return s, nil
	}
	s.Envelope.BrokerMode, s.Status = modeLive, Dispatched
	program, err := brokerEntry(q.Broker, out)
	if err != nil {
		return s, err
	}
	argv := append(program, q.Broker, s.Envelope.ParentTaskID, s.Envelope.Role, s.Envelope.Objective, "handoff:"+m.Session)
	if !q.Once {
		s.Output, err = ask(ctx, out, q.Broker, argv)
		return s, err
	}
	return once(ctx, b, e, q, s, contract.SHA256, func() (jsontext.Value, error) { return ask(ctx, out, q.Broker, argv) })
}

func fullGate(s store.Store, loc store.Location) error {
	v, err := verify.Gate(s, loc)
	if err != nil {
		return err
	}
	if !v.OK {
		return fault.New(fault.GateRejected, "handoff fails the evidence gate (%v)", v.Failed())
	}
	return nil
}

// ask runs the broker and reads its answer.
func ask(ctx context.Context, out Outside, dir string, argv []string) (jsontext.Value, error) {
	ran, err := out.Run(ctx, dir, argv)
	switch {
	case err != nil && ran.Started:
		return nil, fmt.Errorf("ask the broker: %w", err)
	case err != nil:
		return nil, &notStarted{fmt.Errorf("start the broker: %w", err)}
	case ran.TimedOut:
		return nil, fault.New(fault.Internal, "the broker did not answer in time")
	case ran.Exit != 0:
		return nil, fault.New(fault.Internal, "the broker failed with status %d: %s", ran.Exit, lastLine(ran.Stderr))
	case ran.Cut:
		return nil, fault.New(fault.Internal, "the broker answered with more than is read")
	}
	v := jsontext.Value(ran.Stdout)
	if !v.IsValid() {
		return nil, fault.New(fault.Internal, "the broker did not answer with JSON: %s", lastLine(ran.Stdout))
	}
	err = v.Compact()
	return v, err
}

// notStarted is a broker that never ran. All other failures leave open what it
// did, also one that ended with an error: it may have enqueued the request
// before.
type notStarted struct{ error }

// Unwrap returns the cause.
func (n *notStarted) Unwrap() error { return n.error }

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
