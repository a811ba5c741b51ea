package gemini

import (
	"bytes"

	"handoffd/engine/harness"
)

// document reads a session that is one JSON object.
type document struct {
	env   harness.Env
	value harness.Value
	rec   record
}

// Decode implements harness.Decoder.
func (d *document) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	lenient, err := d.value.Walk(bytes.TrimPrefix(unit, []byte("\ufeff")), d.rec.read)
	if err != nil {
		return err
	}
	if !d.rec.object {
		return &harness.Rejection{Reason: harness.ReasonNotObject}
	}
	log := &decoder{env: d.env}
	log.Begin(out.Meta)
	log.clock(&d.rec)
	log.locate(&d.rec)
	log.about(&d.rec)
	for i := range d.rec.checkpoint {
		r := &d.rec.checkpoint[i]
		log.clock(r)
		switch {
		case r.message():
			log.message(r)
		case r.kind != "":
			out.Unknown = r.kind
		}
	}
	log.decide()
	log.End(out)
	out.Flagged = out.Flagged || lenient
	return nil
}

// Pending implements harness.Decoder: a document has no end to wait for.
func (d *document) Pending() bool { return false }

// Flush implements harness.Decoder.
func (d *document) Flush(*harness.Out) {}

// State implements harness.Decoder.
func (d *document) State() ([]byte, error) { return []byte("null"), nil }
