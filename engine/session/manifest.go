// Package session holds a session's identity and manifest as values, and the
// bytes they are written as. It is pure: it never touches a file.
package session

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/seal"
)

// Manifest is manifest.json. The members up to Counts and the optional ones
// from EvidenceContractSHA256 on are the reference's, in its order; those
// between are ours. The seal covers every member but manifest_sha256.
//
// No object in it is keyed by text from a transcript: JavaScript reorders
// integer-like keys, and the reference seals in JavaScript's order.
type Manifest struct {
	Session   string `json:"session"`
	Project   string `json:"project"`
	Harness   string `json:"harness"`
	Model     string `json:"model"`
	CreatedAt string `json:"created_at"` // RFC 3339, UTC, milliseconds
	// SourcePaths lists every file ingested, absolute.
	SourcePaths []string `json:"source_paths"`
	// Watermark is the highest seq in the timeline.
	Watermark int64 `json:"watermark"`
	// RawSHA256 is the hash of the bytes of the source last read.
	RawSHA256 string `json:"raw_sha256"`
	Revisions int    `json:"revisions"`
	UpdatedAt string `json:"updated_at"`
	TurnCount int    `json:"turn_count"`
	Counts    Counts `json:"counts"`

	// Schema is the version of the members below, 1; 0 in a manifest that
	// the reference wrote.
	Schema  int      `json:"handoffd_schema,omitzero"`
	Format  string   `json:"format,omitempty"` // key of the format that read the sources
	Meta    Meta     `json:"transcript,omitzero"`
	Sources []Source `json:"sources,omitempty"`
	// Committed says how far each appended file belongs to this revision.
	Committed []Artifact `json:"committed,omitempty"`
	// Renders are the replaced files, each hashed with this manifest's hash
	// in its text replaced by zeros.
	Renders []Artifact `json:"renders,omitempty"`
	// State names the file from which the next build continues, and
	// StateSHA256 is its hash.
	State       string `json:"state,omitempty"`
	StateSHA256 string `json:"state_sha256,omitempty"`
	// Quarantined counts what was skipped as damage and kept in quarantine/,
	// Unknown the records kept there whose type the format does not know.
	Quarantined int `json:"quarantined,omitzero"`
	Unknown     int `json:"unknown_records,omitzero"`
	// Provisional counts the turns at the end of the timeline that stand for
	// the unfinished end of a source; they are replaced when it grows.
	Provisional int `json:"provisional_turns,omitzero"`
	// Salvaged is the last revision for which a damaged timeline could only
	// be taken over as it was found.
	Salvaged int `json:"salvaged_at_revision,omitzero"`
	// Title is the one given by hand with retitle.
	Title string `json:"title,omitempty"`
	// Objective is the one given by hand, kept for later builds.
	Objective string `json:"objective,omitempty"`

	ManifestSHA256 string `json:"manifest_sha256"`

	EvidenceContractSHA256 string   `json:"evidence_contract_sha256,omitempty"`
	PrevProject            string   `json:"prev_project,omitempty"`
	TitledFrom             []string `json:"titled_from,omitempty"`
	PromotedAt             string   `json:"promoted_at,omitempty"`
	PromotedBy             string   `json:"promoted_by,omitempty"`
	PromotedGate           string   `json:"promoted_gate,omitempty"`
	PromotedStale          bool     `json:"promoted_stale,omitzero"`
	FederatedFrom          string   `json:"federated_from,omitempty"`
	FederatedAt            string   `json:"federated_at,omitempty"`
	MergedFrom             []string `json:"merged_from,omitempty"`
	// MergedInputs says what of each session in MergedFrom is merged, and
	// Imported what of each history that was imported.
	MergedInputs []Input `json:"merged_inputs,omitempty"`
	Imported     []Input `json:"imported,omitempty"`

	// Extra are members that this version does not know, kept as they are.
	Extra jsontext.Value `json:",embed"`
}

// Counts are the turns of each class; OTHER is the rest of the total.
type Counts struct {
	User    int `json:"USER"`
	Agent   int `json:"AGENT"`
	Thought int `json:"THOUGHT"`
	Tool    int `json:"TOOL"`
}

// Source is one transcript of a session and how far it is captured.
type Source struct {
	Path   string `json:"path"`
	Format string `json:"format,omitempty"`
	// Bytes is how many bytes of content were read and hashed, the
	// unfinished tail included; SHA256 is their hash.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Pending is how many of Bytes, at the end, are not decided yet.
	Pending int64 `json:"pending,omitzero"`
	// Size, Inode, ModTime and ChangeTime (nanoseconds) are the file's at
	// the last build. They are hints, never identity.
	Size       int64  `json:"size"`
	Inode      string `json:"inode,omitempty"`
	ModTime    string `json:"mtime,omitempty"`
	ChangeTime string `json:"ctime,omitempty"`
	// Key is set for a session of a database or tree that holds many, whose
	// path then ends in "#" and its id there, or is the tree's file of it: what
	// was read is an export, and its next one differs when the key does.
	Key string `json:"key,omitempty"`
	// Quarantined and Unknown are this source's share.
	Quarantined int `json:"quarantined,omitzero"`
	Unknown     int `json:"unknown_records,omitzero"`
	// Flagged counts records that were readable only leniently.
	Flagged int `json:"flagged,omitzero"`
	// Gone says that the file was missing at the last look.
	Gone bool `json:"gone,omitzero"`
	// Rewritten says that other content took the place of what was captured
	// at least once; the old turns stay.
	Rewritten bool `json:"rewritten,omitzero"`
}

// Input is another session's timeline as far as it was taken over.
type Input struct {
	Session string `json:"session"`
	Project string `json:"project"`
	// From is the store that it stands in, "" for the same.
	From string `json:"from,omitempty"`
	// ManifestSHA256 is the seal of its manifest, TimelineSHA256 the hash of
	// the Turns lines that were taken over.
	ManifestSHA256 string `json:"manifest_sha256"`
	TimelineSHA256 string `json:"timeline_sha256"`
	Turns          int    `json:"turns"`
	// ContractSHA256 is the hash of the contract that came with it.
	ContractSHA256 string `json:"contract_sha256,omitempty"`
	// Conflict says that both sides had turns that the other had not.
	Conflict bool `json:"conflict,omitzero"`
}

// Artifact is a file of the session as of one revision.
type Artifact struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Generated is how many bytes of it, from the start, are not meant to be
	// edited by hand, and GeneratedSHA256 their hash; for the brief only.
	Generated       int64  `json:"generated_bytes,omitzero"`
	GeneratedSHA256 string `json:"generated_sha256,omitempty"`
}

// Meta is what a transcript says about its session, beyond its turns.
type Meta struct {
	ID          string `json:"id,omitempty"`      // the harness's own session id
	CWD         string `json:"cwd,omitempty"`     // first working directory that a record names
	Branch      string `json:"branch,omitempty"`  // newest
	Model       string `json:"model,omitempty"`   // newest real model
	Version     string `json:"version,omitempty"` // newest harness version
	Title       string `json:"title,omitempty"`
	Thread      string `json:"thread,omitempty"`         // canonical only
	Parent      string `json:"parent_session,omitempty"` // session that started this one as a subagent
	ForkedFrom  string `json:"forked_from,omitempty"`    // session whose history this one continues
	Kind        string `json:"source_kind,omitempty"`    // "", subagent, warmup, fork, import, sdk
	FirstID     string `json:"first_id,omitempty"`       // id of the first turn that has one
	FirstTS     string `json:"first_ts,omitempty"`
	LastTS      string `json:"last_ts,omitempty"` // newest record time
	Tokens      Tokens `json:"tokens,omitzero"`
	Compactions int    `json:"compactions,omitzero"`
	Inherited   int    `json:"inherited_turns,omitzero"` // leading turns that ForkedFrom holds too
}

// Tokens is the usage that a harness reports.
type Tokens struct {
	Input      int64 `json:"input,omitzero"`
	Output     int64 `json:"output,omitzero"`
	CacheRead  int64 `json:"cache_read,omitzero"`
	CacheWrite int64 `json:"cache_write,omitzero"`
	// Context is the fill of the context window at the last turn, in tokens;
	// Window is its size when the harness reports one.
	Context int64 `json:"context,omitzero"`
	Window  int64 `json:"window,omitzero"`
}

// Source returns the source with the given path.
func (m *Manifest) Source(path string) (int, bool) {
	for i := range m.Sources {
		if m.Sources[i].Path == path {
			return i, true
		}
	}
	return 0, false
}

// Artifact returns the committed or rendered file with the given name.
func (m *Manifest) Artifact(name string) (Artifact, bool) {
	for _, list := range [][]Artifact{m.Committed, m.Renders} {
		for _, a := range list {
			if a.Name == name {
				return a, true
			}
		}
	}
	return Artifact{}, false
}

// Encode seals m, stores the hash in it and returns the bytes of
// manifest.json: two-space indentation and no final newline, as the reference
// writes it.
func Encode(m *Manifest) ([]byte, error) {
	m.ManifestSHA256 = seal.Zero
	if m.SourcePaths == nil {
		m.SourcePaths = []string{}
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	compact, _, err := seal.Compact(raw, "manifest_sha256")
	if err != nil {
		return nil, fmt.Errorf("seal manifest: %w", err)
	}
	m.ManifestSHA256 = seal.Sum(compact)
	raw = bytes.Replace(raw, []byte(`"manifest_sha256":"`+seal.Zero), []byte(`"manifest_sha256":"`+m.ManifestSHA256), 1)
	v := jsontext.Value(raw)
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, fmt.Errorf("indent manifest: %w", err)
	}
	return v, nil
}

// Decode reads manifest.json. It does not check the seal.
func Decode(raw []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fault.New(fault.Integrity, "unparsable manifest: %w", err)
	}
	return m, nil
}

// Sealed checks the seal of manifest.json, ours or the reference's.
func Sealed(raw []byte) error {
	compact, want, err := seal.Compact(raw, "manifest_sha256")
	if err != nil {
		return fault.New(fault.Integrity, "unparsable manifest: %w", err)
	}
	if got := seal.Sum(compact); got != want {
		return fault.New(fault.Integrity, "manifest tampered (sha mismatch)")
	}
	return nil
}
