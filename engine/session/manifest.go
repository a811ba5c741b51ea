// Package session holds a session's identity, manifest and evidence contract
// as values. It is pure: it never touches a file.
package session

import (
	"handoffd/engine/turn"
)

// Manifest is manifest.json. The fields up to ManifestSHA256 and the optional
// ones after Ingest are the reference's, in its order; the ones between are
// ours. The seal covers every field but ManifestSHA256 itself.
//
// No object in it is keyed by text from a transcript: JavaScript reorders
// integer-like keys, and the reference's seal is over JavaScript's order.
type Manifest struct {
	Session   string
	Project   string
	Harness   string
	Model     string
	CreatedAt string // RFC 3339, UTC, milliseconds
	// SourcePaths lists every file ingested, absolute.
	SourcePaths []string
	// Watermark is the highest seq in the timeline.
	Watermark int64
	// RawSHA256 is the hash of the bytes of the source last built, as read.
	RawSHA256 string
	Revisions int
	UpdatedAt string
	TurnCount int
	Counts    turn.Counts
	// ManifestSHA256 seals all the others.
	ManifestSHA256 string

	Format  string // name of the format that read the sources
	Meta    Meta
	Sources []Source
	// Committed says how far each appended file belongs to this revision.
	Committed []Appended
	// Renders are the hashes of the replaced files, each taken with
	// ManifestSHA256 in the text replaced by zeros.
	Renders []Render
	// State names the file beside the manifest from which the next build
	// continues.
	State string
	// Quarantined counts what was skipped and kept in quarantine/.
	Quarantined int
	// Provisional counts the turns at the end of the timeline that stand for
	// an unfinished end of a source and may be replaced when it grows.
	Provisional int

	// The reference's optional fields, kept verbatim.
	EvidenceContractSHA256 string
	PrevProject            string
	TitledFrom             []string
	PromotedAt             string
	PromotedBy             string
	PromotedGate           string
	PromotedStale          bool
	FederatedFrom          string
	FederatedAt            string
	MergedFrom             []string
}

// Source is one transcript of a session and how far it is captured.
type Source struct {
	Path string
	// Bytes is how many bytes were read and hashed, the unfinished tail
	// included; SHA256 is their hash.
	Bytes  int64
	SHA256 string
	// Read is the offset up to which every record is decided.
	Read int64
	// Head is the hash of the first HeadBytes of the source.
	Head      string
	HeadBytes int64
	// Inode, ModTime (nanoseconds) and ChangeTime are those at the last
	// build; they are hints, never identity.
	Inode, ModTime, ChangeTime int64
	// Quarantined and Unknown count damaged lines and records of a type that
	// the format does not know.
	Quarantined, Unknown int
	// Gone says that the file was missing at the last look.
	Gone bool
	// Rewritten says that the source was once replaced by other content, so
	// that its position no longer tells what was captured.
	Rewritten bool
}

// Appended is the committed length of an append-only file.
type Appended struct {
	Name   string
	Bytes  int64
	SHA256 string
}

// Render is a replaced file as of this revision.
type Render struct {
	Name   string
	Bytes  int64
	SHA256 string
}

// Meta is what a transcript says about its session, beyond its turns.
type Meta struct {
	ID           string // the harness's own session id
	CWD          string // first working directory that a record names
	Branch       string // newest
	Model        string // newest real model
	Version      string // newest harness version
	Title        string
	Thread       string // canonical only
	Parent       string // session that started this one as a subagent
	ForkedFrom   string // session whose history this one continues
	Kind         string // "", "subagent", "warmup", "fork", "import", "sdk"
	FirstTS      string
	LastTS       string // newest record time
	Tokens       Tokens
	Compactions  int
	Inherited    int // leading turns that ForkedFrom holds too
	Interruption string
}

// Tokens is the usage that a harness reports.
type Tokens struct {
	Input, Output, CacheRead, CacheWrite int64
	// Context is the fill of the context window at the last turn, in tokens,
	// and Window the window's size when the harness reports one.
	Context, Window int64
}
