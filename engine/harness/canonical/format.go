// Package canonical reads the engine's own input: one JSON object a line with
// seq, ts, role, kind and text (seed INTEGRATION, "Input contract"), and the
// loose shapes that the reference engine accepts besides. It belongs to no
// harness and never guesses at one.
package canonical

import (
	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Format is the one value of this package's format.
type Format struct{}

// Traits implements harness.Format. Lines have no ids of their own and their
// numbers start again in every file, so a file counts for itself.
func (Format) Traits() harness.Traits {
	return harness.Traits{
		Key: "canonical", Harness: "canonical", Container: harness.JSONL,
		Identity: harness.BySource, OwnSeq: true, Unlabelled: true,
	}
}

// Recognize implements harness.Format. Any JSONL could be meant; a line with
// a role or kind and a body surely is.
func (Format) Recognize(obj []byte) harness.Confidence {
	var l line
	var v harness.Value
	if _, err := v.Walk(obj, l.read); err != nil || !l.object {
		return harness.No
	}
	switch {
	case (l.role != "" || l.kind != "") && l.flat:
		return harness.Certain
	case l.body() != "":
		return harness.Perhaps
	}
	return harness.No
}

// Record implements harness.Format.
func (Format) Record(obj []byte) bool {
	var l line
	var v harness.Value
	_, err := v.Walk(obj, l.read)
	return err == nil && l.object && (l.role != "" || l.kind != "") && l.body() != ""
}

// Place implements harness.Format: canonical files have no place.
func (Format) Place(string) bool { return false }

// About implements harness.Format.
func (Format) About(string, *session.Meta) {}

// Decoder implements harness.Format. Lines stand for themselves, so there is
// no state.
func (Format) Decoder([]byte, harness.Env) (harness.Decoder, error) { return &decoder{}, nil }

// Stores implements harness.Format.
func (Format) Stores(string, func(string) string) []harness.Store { return nil }
