package control

import (
	"errors"

	"handoffd/engine/fault"
)

// Problem is a failure on the wire, and what --json prints of one: RFC 9457
// with the fault's kind and the exit status that the client ends with. An
// answer that was made all the same stands beside these members.
type Problem struct {
	OK     bool   `json:"ok"` // always false
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Kind   string `json:"kind"`
	Exit   int    `json:"exit"`
	Hint   string `json:"hint,omitempty"`
}

// ProblemOf describes err.
func ProblemOf(err error) Problem {
	k := fault.KindOf(err)
	p := Problem{
		Type: "urn:handoffd:" + k.String(), Title: k.Title(), Status: k.Status(),
		Detail: err.Error(), Kind: k.String(), Exit: k.Exit(), Hint: fault.HintOf(err),
	}
	var s *statusError
	if errors.As(err, &s) {
		p.Status = s.status
	}
	return p
}

// Err is the failure as an error. A kind that this version does not know is
// internal.
func (p Problem) Err() *fault.Error {
	k, _ := fault.ParseKind(p.Kind)
	detail := p.Detail
	if detail == "" {
		detail = p.Title
	}
	return &fault.Error{Kind: k, Msg: detail, Hint: p.Hint}
}

// Uncaptured is the failure of a poke that waited: what it waited for in vain.
type Uncaptured struct {
	error
	Failed []Failed
}

// NotCaptured returns err with the sources that it is about.
func NotCaptured(err error, failed []Failed) error { return &Uncaptured{err, failed} }

// Unwrap returns the failure.
func (u *Uncaptured) Unwrap() error { return u.error }

// statusError gives a failure another HTTP status than its kind's.
type statusError struct {
	error
	status int
}

func (e *statusError) Unwrap() error { return e.error }

// WithStatus returns err, to be answered with an HTTP status that says more
// than its kind does: a route that does not exist, a body that is too long.
func WithStatus(err error, status int) error { return &statusError{err, status} }
