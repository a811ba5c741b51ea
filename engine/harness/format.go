// Package harness is the contract between transcript formats and the rest of
// the engine: how a format is recognised, how one record becomes turns, and
// the reading loop that all formats share (lines, damage, unfinished ends).
// It never writes a file and knows no particular format; those live in the
// packages below it, strangers to one another.
package harness

import (
	"errors"
	"iter"
	"path/filepath"

	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// Container says how a source holds its records.
type Container int

const (
	// JSONL is one JSON object a line, appended. Damage costs only itself.
	JSONL Container = iota
	// Lines is plain text, appended; every physical line is one unit.
	Lines
	// Document is one value that is rewritten as a whole; any change is read
	// again from the start.
	Document
	// Rows is one JSON object a line, made from a session of a Bundle. Rows
	// change in place, so any change is read again from the start.
	Rows
)

// Whole reports whether a source is read again from its start whenever it
// changed, so that no position in it means anything.
func (c Container) Whole() bool { return c == Document || c == Rows }

// Confidence is how sure a format is that bytes are its own.
type Confidence int

const (
	// No: some other format, or nothing at all.
	No Confidence = iota
	// Perhaps: could be, if no other format and no place says otherwise.
	Perhaps
	// Certain: no other known format writes this.
	Certain
)

// Identity says what makes two turns of a session the same turn when a source
// is read again.
type Identity int

const (
	// ByID: a turn with an ID is the same wherever it appears; the same ID
	// with other content is another turn. Turns without an ID count like
	// ByContent.
	ByID Identity = iota
	// ByContent: the n-th turn with this time, class and text is the n-th
	// one captured, in whichever of the session's sources.
	ByContent
	// BySource: like ByContent, but each source counts for itself.
	BySource
)

// Traits are the fixed properties of a format.
type Traits struct {
	// Key names the format in stored state; unique in the list.
	Key string
	// Harness is the label of sessions read by it ("claude-code").
	Harness   string
	Container Container
	Identity  Identity
	// OwnSeq says that turns carry their own Seq.
	OwnSeq bool
	// Replays says that a session can begin with the turns of the one it was
	// started from, which its decoder looks up.
	Replays bool
	// Unlabelled says that the format is nobody's in particular, so that
	// sessions are labelled "unknown" unless the user says otherwise.
	Unlabelled bool
}

// Format reads one kind of transcript. Implementations are stateless and safe
// for concurrent use.
type Format interface {
	Traits() Traits
	// Recognize judges one unit from near the start of a source: a JSON
	// object of a JSONL container, a line of text, or the head of a
	// document (which may be cut). It is called on content alone.
	Recognize(unit []byte) Confidence
	// Place judges a path alone: is this where the harness keeps sessions?
	Place(path string) bool
	// Record reports whether a whole JSON object found by resynchronising
	// inside a damaged line is a record of this format at top level.
	Record(obj []byte) bool
	// About fills in what the path alone says: m.ID from the file's name,
	// m.Kind and m.Parent from its directory. It must leave the rest alone.
	About(path string, m *session.Meta)
	// Decoder returns a decoder that continues from state, which is nil at
	// the start of a source or what an earlier decoder's State returned.
	Decoder(state []byte, env Env) (Decoder, error)
	// Stores lists where the harness keeps its sessions under the given
	// home directory, taking its own environment variables into account.
	Stores(home string, getenv func(string) string) []Store
}

// Store is a directory that holds a harness's sessions.
type Store struct {
	Root string
	// Keep says which directories below Root to enter and which files are
	// sessions; rel is slash-separated and relative to Root.
	Keep func(rel string, dir bool) bool
}

// Env is what a decoder may ask of the store it feeds. The zero Env answers
// that nothing else is known.
type Env struct {
	// Session iterates the turns already captured of another session, in
	// order; ok is false when the session is not in the store.
	Session func(id string) (turns iter.Seq[turn.Turn], ok bool)
	// Path is where the source is, absolute, or "" when nobody knows. Text of
	// a transcript is never made a path, but may be held against this one.
	Path string
	// Beside reads a small file near the source; rel is slash-separated,
	// starts at the source's directory and may climb out of it a few steps.
	// It is for what a harness keeps in files of its own (a title, a working
	// directory). A decoder must do without: the file may be missing, too
	// large or half written, and is gone when the transcript travels.
	Beside func(rel string) ([]byte, error)
}

// Name is the last element of Path, or "".
func (e Env) Name() string {
	if e.Path == "" {
		return ""
	}
	return filepath.Base(e.Path)
}

// Near is Beside, or nothing when e has none or the file cannot be read.
func (e Env) Near(rel string) []byte {
	if e.Beside == nil {
		return nil
	}
	data, err := e.Beside(rel)
	if err != nil {
		return nil
	}
	return data
}

// Lookup is Session, or nothing when e has none.
func (e Env) Lookup(id string) (iter.Seq[turn.Turn], bool) {
	if e.Session == nil || id == "" {
		return nil, false
	}
	return e.Session(id)
}

// Position says where a unit stands in its source.
type Position struct {
	Offset int64 // bytes from the start, of the decompressed content
	Line   int64 // physical lines before it, from 0
}

// Out receives what a decoder finds in one unit. A decoder that returns an
// error must leave it as it was.
type Out struct {
	// Meta is what is known of the session so far; a decoder updates it.
	Meta *session.Meta
	// Turns are appended in order. Seq counts only where Traits.OwnSeq.
	Turns []turn.Turn
	// Unit is the unit that was decoded; the shared loop sets it.
	Unit []byte
	// Unknown names the type of a record that the format does not know.
	Unknown string
	// Flagged says that the record was readable only leniently (a duplicate
	// key, invalid UTF-8, a lone surrogate).
	Flagged bool
}

// Decoder turns the units of one source into turns. It is used by one
// goroutine.
type Decoder interface {
	// Decode takes one unit. An error for which Syntax holds means that the
	// bytes are not JSON; a *Rejection that they are no record. Anything
	// else a record may hold is not an error.
	Decode(unit []byte, at Position, out *Out) error
	// Pending reports whether Flush would emit anything.
	Pending() bool
	// Flush emits what the records so far amount to if the source ends
	// here. The decoder is not used afterwards.
	Flush(out *Out)
	// State returns what Decoder needs to continue after the last unit.
	State() ([]byte, error)
}

// Rejection says that bytes are well-formed but no record.
type Rejection struct{ Reason string }

// Error implements error.
func (r *Rejection) Error() string { return r.Reason }

// errSyntax marks errors of the JSON grammar.
var errSyntax = errors.New("not JSON")

// Syntax reports whether err says that bytes are not JSON.
func Syntax(err error) bool { return errors.Is(err, errSyntax) }
