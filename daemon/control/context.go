package control

import "github.com/go-json-experiment/json/jsontext"

// The verbs of context continuity. A daemon does the first two alone: the
// others need the project's key, which never enters it.
const (
	ContextBands    = "context/bands"
	ContextGate     = "context/gate"
	ContextWrite    = "context/write"
	ContextResume   = "context/resume"
	ContextBypass   = "context/bypass"
	ContextRepair   = "context/repair"
	ContextUnlock   = "context/unlock"
	ContextContinue = "context/continue"
)

// BandsRequest asks for the bands of signals: any JSON, of which only finite
// numbers make sense; or of an observation as a whole; or of a session of the
// store.
type BandsRequest struct {
	Pct         jsontext.Value `json:"pct,omitzero"`
	Depth       jsontext.Value `json:"depth,omitzero"`
	Bytes       jsontext.Value `json:"bytes,omitzero"`
	Observation jsontext.Value `json:"observation,omitzero"`
	Session     string         `json:"session,omitempty"`
}

// BandsAnswer is where a session stands.
type BandsAnswer struct {
	Warn      bool                      `json:"warn"`
	Handoff   bool                      `json:"handoff"`
	Hard      bool                      `json:"hard"`
	Signals   map[string]jsontext.Value `json:"signals"`
	Remaining *float64                  `json:"remaining_to_hard"` // null without a signal
	// Of a session of the store: how it is measured.
	Session    string `json:"session,omitempty"`
	Context    int64  `json:"context_tokens,omitzero"`
	Window     int64  `json:"window_tokens,omitzero"`
	WindowFrom string `json:"window_from,omitempty"` // harness or table
}

// ContextGateRequest asks whether a tool call may change something.
type ContextGateRequest struct {
	Dir     string         `json:"dir,omitempty"` // the ledger's directory, absolute
	CWD     string         `json:"cwd,omitempty"` // where the tool runs, absolute
	Session string         `json:"session,omitempty"`
	Tool    string         `json:"tool,omitempty"`
	Targets []string       `json:"target,omitempty"`
	Command string         `json:"command,omitempty"`
	Pct     jsontext.Value `json:"pct,omitzero"`
	Depth   jsontext.Value `json:"depth,omitzero"`
	Bytes   jsontext.Value `json:"bytes,omitzero"`
	Ticket  string         `json:"ticket,omitempty"`
	Host    string         `json:"host,omitempty"`
	KeyFile string         `json:"key_file,omitempty"`
	// EverDenied says that the session was denied before.
	EverDenied bool `json:"deny_ever_written,omitzero"`
}

// ContextGateAnswer is the decision on a tool call; a deny is a failure that has it.
type ContextGateAnswer struct {
	Deny       bool     `json:"deny"`
	Reasons    []string `json:"reasons"`
	Ensured    bool     `json:"ensuredMarker"`
	EverDenied bool     `json:"denyEverWritten"`
	Recovery   string   `json:"recovery,omitempty"`
}

// Continuity is what every request of the verbs that need the key has.
type Continuity struct {
	Dir     string `json:"dir,omitempty"` // the ledger's directory, absolute
	Write   bool   `json:"write,omitzero"`
	KeyFile string `json:"key_file,omitempty"`
}

// ContextHead is what every answer of those verbs begins with, failures too.
type ContextHead struct {
	Tool    string `json:"tool"` // handoff
	Command string `json:"command"`
	DryRun  bool   `json:"dryRun"`
}

// ContextWriteRequest notes what a session hands off.
type ContextWriteRequest struct {
	Continuity
	Session string `json:"session,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	Host    string `json:"host,omitempty"`
	Hash    string `json:"content_hash,omitempty"`
}

// ContextResumeRequest lets a session go on with the work of a denied one.
type ContextResumeRequest struct {
	Continuity
	Session string `json:"session,omitempty"`
	Denier  string `json:"deny_session,omitempty"`
}

// ContextBypassRequest lets one call through.
type ContextBypassRequest struct {
	Continuity
	Session string  `json:"session,omitempty"`
	Reason  *string `json:"unbound_reason,omitempty"`
	Ticket  string  `json:"ticket,omitempty"`
}

// ContextRepairRequest binds a record, or gives up what is gone.
type ContextRepairRequest struct {
	Continuity
	Session string `json:"session,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	Hash    string `json:"content_hash,omitempty"`
	Host    string `json:"host,omitempty"`
	Forget  bool   `json:"forget,omitzero"`
	Ledger  bool   `json:"ledger,omitzero"`
}

// ContextUnlockRequest removes a dead lock.
type ContextUnlockRequest struct {
	Continuity
	Session string `json:"session,omitempty"`
	PID     int    `json:"pid,omitzero"`
	Started string `json:"started_at,omitempty"`
	Host    string `json:"host,omitempty"`
	Nonce   string `json:"nonce,omitempty"`
}

// ContextContinueRequest hands a denied session's work to a successor.
type ContextContinueRequest struct {
	Continuity
	Denier  string `json:"deny_session,omitempty"`
	Session string `json:"session,omitempty"`
	From    string `json:"capture_from,omitempty"`
	Ticket  string `json:"ticket,omitempty"`
	Host    string `json:"host,omitempty"`
}
