package control

import "github.com/go-json-experiment/json/jsontext"

// MergeRequest asks to compose two sessions.
type MergeRequest struct {
	A      string `json:"a,omitempty"`
	B      string `json:"b,omitempty"`
	Render bool   `json:"render,omitzero"` // brief and payloads too
}

// MergeAnswer has the reference's members, and where the merge is.
type MergeAnswer struct {
	OK       bool   `json:"ok"`
	Action   string `json:"action"`
	Into     string `json:"into"`
	Turns    int    `json:"turns"`
	New      int    `json:"new"`
	Project  string `json:"project"`
	Dir      string `json:"dir"`
	Revision int    `json:"revision"`
	Rendered bool   `json:"rendered"`
}

// FederateRequest asks to import the sessions of other stores.
type FederateRequest struct {
	From   []string `json:"from,omitempty"` // absolute paths, or ssh://host/path
	DryRun bool     `json:"dry_run,omitzero"`
	Redact bool     `json:"redact,omitzero"`
}

// FederateAnswer has the reference's members, and the conflicts.
type FederateAnswer struct {
	OK        bool          `json:"ok"`
	Action    string        `json:"action"`
	DryRun    bool          `json:"dry_run"`
	Roots     []string      `json:"roots"`
	Imported  []Import      `json:"imported"`
	Skipped   int           `json:"skipped"`
	Failed    []NotImported `json:"failed"`
	Conflicts []Conflict    `json:"conflicts"`
}

// Import is a session that was taken over, or would be.
type Import struct {
	Root           string `json:"root"`
	Project        string `json:"project"`
	Session        string `json:"session"`
	Action         string `json:"action"` // import or update
	Turns          int    `json:"turns"`
	New            int    `json:"new"`
	ManifestSHA256 string `json:"manifest_sha256,omitempty"` // the local one, afterwards
	Verify         string `json:"verify,omitempty"`          // PASS or FAIL
}

// NotImported is a root or a session that could not be imported.
type NotImported struct {
	Root    string `json:"root"`
	Project string `json:"project,omitempty"`
	Session string `json:"session,omitempty"`
	Reason  string `json:"reason"`
}

// Conflict is a session that had turns on both sides which the other side had
// not. It has them all now.
type Conflict struct {
	Root    string `json:"root"`
	Project string `json:"project"`
	Session string `json:"session"`
	Common  int    `json:"common_turns"`
	Local   int    `json:"local_turns"`  // only here
	Remote  int    `json:"remote_turns"` // only there
	// Contract says that both sides have an evidence contract, and not the
	// same; the local one is kept.
	Contract bool `json:"contract,omitzero"`
}

// DispatchRequest asks to hand a session's continuation to a worker.
type DispatchRequest struct {
	ID       string `json:"id,omitempty"`
	Task     string `json:"task,omitempty"`
	Role     string `json:"role,omitempty"`
	Parent   string `json:"parent,omitempty"`
	Broker   string `json:"broker,omitempty"` // absolute
	Live     bool   `json:"live,omitzero"`
	Once     bool   `json:"once,omitzero"`
	Again    bool   `json:"again,omitzero"`
	Verified bool   `json:"verified,omitzero"`
}

// Envelope is what a worker is told, with the members of seed LEVEL5.
type Envelope struct {
	FromHandoff  string   `json:"from_handoff"`
	Project      string   `json:"project"`
	Role         string   `json:"role"`
	ParentTaskID string   `json:"parentTaskId"`
	Objective    string   `json:"objective"`
	Evidence     string   `json:"evidence"`
	Requirements []string `json:"evidenceRequirements"`
	DispatchedAt string   `json:"dispatchedAt"`
	BrokerMode   string   `json:"broker_mode"`
	HandoffDir   string   `json:"handoff_dir"`
}

// DispatchAnswer is what a dispatch came to.
type DispatchAnswer struct {
	OK       bool           `json:"ok"`
	Status   string         `json:"status"` // GATE_REJECTED, DRY_RUN, DISPATCHED or UNCERTAIN
	Session  string         `json:"session"`
	Reason   string         `json:"reason,omitempty"`
	Envelope *Envelope      `json:"envelope,omitempty"`
	Next     string         `json:"next,omitempty"`
	Output   jsontext.Value `json:"broker_output,omitzero"`
	// Record is the file of a dispatch that is made at most once, Already
	// whether it was made before.
	Record  string `json:"record,omitempty"`
	Already bool   `json:"already,omitzero"`
}

// ImproveRequest asks which briefs fall short.
type ImproveRequest struct{}

// ImproveAnswer says how many, and where the list is.
type ImproveAnswer struct {
	OK         bool   `json:"ok"`
	Action     string `json:"action"`
	Scanned    int    `json:"scanned"`
	Candidates int    `json:"candidates"`
	WrittenTo  string `json:"written_to"`
}
