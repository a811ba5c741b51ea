// Package fault holds the closed set of error kinds that callers branch on,
// each with its name on the wire and its exit status. It is a leaf: it knows
// no verb and no file, and never prints.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Kind names why an operation failed. The zero Kind is Internal.
type Kind int

// The kinds. Their exit statuses are contract; see Table.
const (
	Internal Kind = iota
	Integrity
	Unreachable
	Usage
	Config
	SourceMissing
	Locked
	Ambiguous
	NoDaemon
	NotFound
	NoTurns
	Exists
	Unparsable
	Rejected
	Degraded
	Unsupported
	Denied
	NeedsAuth
	NoCheckpoint
	CorruptCheckpoint
	Missing
	GateRejected
	Operational
	Refused
)

// Row describes one kind for help texts, problem documents and exit codes.
type Row struct {
	Kind   Kind
	Name   string // wire name, kebab-case
	Exit   int    // process exit status
	Status int    // HTTP status of a problem document
	Title  string // one short line for people
}

// Table is the one mapping from kind to wire name and exit status, for both
// binaries, in the order of the statuses.
var Table = []Row{
	{Internal, "internal", 1, 500, "unexpected error"},
	{Integrity, "integrity", 1, 409, "integrity check failed"},
	{Unreachable, "unreachable", 1, 502, "nobody answers on the named socket"},
	{GateRejected, "gate-rejected", 1, 422, "the handoff is not complete enough to hand on"},
	{Degraded, "degraded", 1, 503, "the daemon is degraded"},
	{Operational, "operational", 1, 422, "could not be done as asked, or was not asked for as it must be"},
	{Usage, "usage", 2, 400, "usage error"},
	{Config, "config", 2, 400, "invalid configuration"},
	{SourceMissing, "source-missing", 2, 404, "no source, or the source is missing"},
	{Refused, "refused", 2, 403, "refused, and nothing was changed"},
	{Locked, "locked", 3, 423, "held by another process"},
	{Ambiguous, "ambiguous", 3, 300, "more than one session matches"},
	{NoDaemon, "no-daemon", 3, 503, "no daemon is running"},
	{Missing, "missing", 3, 404, "a referenced path is missing"},
	{Denied, "denied", 3, 403, "denied by the permission policy"},
	{NotFound, "not-found", 4, 404, "no session matches"},
	{NoTurns, "no-turns", 4, 422, "no usable turn"},
	{Exists, "exists", 4, 409, "the target exists"},
	{Unsupported, "unsupported", 4, 422, "not a known transcript"},
	{NeedsAuth, "needs-auth", 4, 403, "needs an authorization that the permission policy does not give"},
	{NoCheckpoint, "no-checkpoint", 4, 404, "no checkpoint to resume from"},
	{Unparsable, "unparsable", 5, 422, "unparsable line"},
	{CorruptCheckpoint, "corrupt-checkpoint", 5, 422, "checkpoint corrupt, or its seal does not match"},
	{Rejected, "rejected", 6, 422, "evidence gate rejected"},
}

// row returns the table row of k; an unknown kind is Internal.
func (k Kind) row() Row {
	for _, r := range Table {
		if r.Kind == k {
			return r
		}
	}
	return Table[0]
}

// String returns the wire name.
func (k Kind) String() string { return k.row().Name }

// Exit returns the process exit status.
func (k Kind) Exit() int { return k.row().Exit }

// Status returns the HTTP status of the kind's problem document.
func (k Kind) Status() int { return k.row().Status }

// Title returns one short line for people.
func (k Kind) Title() string { return k.row().Title }

// ParseKind returns the kind with the wire name s.
func ParseKind(s string) (Kind, bool) {
	for _, r := range Table {
		if r.Name == s {
			return r.Kind, true
		}
	}
	return Internal, false
}

// Error is a failure of a known kind. Hint says what to do next and is kept
// apart from what went wrong.
type Error struct {
	Kind Kind
	Msg  string // the whole sentence, causes included
	Hint string
	Err  error // the cause, for errors.Is and errors.As
}

// Error implements error.
func (e *Error) Error() string { return e.Msg }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error of kind k. Like fmt.Errorf it wraps an operand of %w.
func New(k Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if _, many := err.(interface{ Unwrap() []error }); many {
		cause = err
	}
	return &Error{Kind: k, Msg: err.Error(), Err: cause}
}

// WithHint returns e with a hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// KindOf returns the kind of the outermost *Error in err's chain, Internal
// for any other non-nil error.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is of kind k.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }

// HintOf returns the first hint in err's chain, or "".
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// ExitOf returns the exit status for err; 0 for nil.
func ExitOf(err error) int {
	if err == nil {
		return 0
	}
	return KindOf(err).Exit()
}

// ExitHelp renders the exit statuses of the given kinds for a verb's help,
// success first.
func ExitHelp(kinds ...Kind) string {
	var b strings.Builder
	b.WriteString("Exit status:\n  0  success\n")
	for _, r := range Table {
		for _, k := range kinds {
			if k == r.Kind {
				fmt.Fprintf(&b, "  %d  %s (%s)\n", r.Exit, r.Title, r.Name)
				break
			}
		}
	}
	return b.String()
}
