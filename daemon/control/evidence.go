package control

import "fmt"

// ContractSetRequest gives fields of an evidence contract their values; those
// that are nil stay as they are.
type ContractSetRequest struct {
	ID          string  `json:"id,omitempty"`
	Result      *string `json:"result,omitempty"`
	WhatChanged *string `json:"what_changed,omitempty"`
	Validation  *string `json:"validation,omitempty"`
	Evidence    *string `json:"evidence,omitempty"`
	Blockers    *string `json:"blockers,omitempty"`
	Risks       *string `json:"risks,omitempty"`
	FollowUp    *string `json:"follow_up,omitempty"`
}

// Fields are the fields that a request gives, by their names in a contract.
func (q ContractSetRequest) Fields() map[string]string {
	out := map[string]string{}
	for name, v := range map[string]*string{
		"RESULT": q.Result, "WHAT_CHANGED": q.WhatChanged, "VALIDATION": q.Validation, "EVIDENCE": q.Evidence,
		"BLOCKERS": q.Blockers, "RISKS": q.Risks, "FOLLOW_UP": q.FollowUp,
	} {
		if v != nil {
			out[name] = *v
		}
	}
	return out
}

// ContractShowRequest asks for a session's evidence contract.
type ContractShowRequest struct {
	ID string `json:"id,omitempty"`
}

// ContractAnswer is a session's evidence contract as it stands.
type ContractAnswer struct {
	OK      bool   `json:"ok"`
	Action  string `json:"action"`
	Session string `json:"session"`
	Project string `json:"project"`
	// Fields are the values by the names of a request, Missing the names of
	// those that the contract lacks.
	Fields  map[string]string `json:"fields"`
	Missing []string          `json:"missing"`
	Text    string            `json:"text"`
	SHA256  string            `json:"evidence_contract_sha256"`
	// Committed is false for a contract that was edited by hand and not taken
	// over by a build yet.
	Committed bool `json:"committed"`
	Revision  int  `json:"revision,omitzero"`
}

// GateRequest asks for the five checks of the evidence gate.
type GateRequest struct {
	ID string `json:"id,omitempty"`
	// ExitCode makes a rejection a failure.
	ExitCode bool `json:"exit_code,omitzero"`
}

// GateAnswer has the reference's members, and why a check failed.
type GateAnswer struct {
	OK      bool              `json:"ok"`
	Verdict string            `json:"verdict"` // VERIFIED or REJECTED
	Session string            `json:"session"`
	Project string            `json:"project"`
	Checks  GateChecks        `json:"checks"`
	Reasons map[string]string `json:"reasons,omitempty"`
}

// GateChecks are PASS or FAIL each.
type GateChecks struct {
	SHA      string `json:"sha"`
	Counts   string `json:"counts"`
	Payload  string `json:"payload"`
	Contract string `json:"contract"`
	Evidence string `json:"evidence"`
}

// PromoteRequest asks to stamp a session with what the gate says of it.
type PromoteRequest struct {
	ID string `json:"id,omitempty"`
	// RequireVerified refuses a session that the gate rejects.
	RequireVerified bool `json:"require_verified,omitzero"`
}

// PromoteAnswer is the stamp, with the verdict that it rests on.
type PromoteAnswer struct {
	OK       bool        `json:"ok"`
	Action   string      `json:"action"`
	Session  string      `json:"session"`
	Project  string      `json:"project"`
	At       string      `json:"promoted_at"`
	By       string      `json:"promoted_by"`
	Gate     string      `json:"promoted_gate"`
	Revision int         `json:"revision"`
	Verdict  *GateAnswer `json:"verdict,omitempty"`
}

// Line is the answer as one line for people.
func (a ContractAnswer) Line() string {
	return fmt.Sprintf("handoff: contract of %s set rev=%d sha256=%s", a.Session, a.Revision, a.SHA256)
}
