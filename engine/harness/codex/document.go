package codex

import (
	"bytes"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Traits implements harness.Format.
func (Document) Traits() harness.Traits {
	return harness.Traits{Key: "codex-json", Harness: "codex", Container: harness.Document, Identity: harness.ByContent}
}

// Recognize implements harness.Format. The unit may be cut anywhere.
func (Document) Recognize(unit []byte) harness.Confidence {
	head := bytes.Map(func(r rune) rune {
		if r <= ' ' {
			return -1
		}
		return r
	}, unit[:min(len(unit), 4096)])
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if bytes.HasPrefix(head, []byte(`{"session":{"timestamp":`)) || bytes.HasPrefix(head, []byte(`{"session":{"id":`)) {
		return harness.Certain
	}
	return harness.No
}

// Record implements harness.Format.
func (Document) Record([]byte) bool { return false }

// Place implements harness.Format.
func (Document) Place(p string) bool { return stored(p) && strings.HasSuffix(p, ".json") }

// About implements harness.Format.
func (Document) About(p string, m *session.Meta) { about(p, m) }

// Stores implements harness.Format.
func (Document) Stores(home string, getenv func(string) string) []harness.Store {
	return stores(home, getenv, ".json")
}

// Decoder implements harness.Format. A document is always read from its
// start, so there is no state to continue from.
func (Document) Decoder(_ []byte, env harness.Env) (harness.Decoder, error) {
	return &document{env: env}, nil
}

// document reads {"session":{…},"items":[…]}.
type document struct {
	env   harness.Env
	value harness.Value
}

// Decode implements harness.Decoder.
func (d *document) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	var object bool
	var header record
	var list []record
	lenient, err := d.value.Walk(bytes.TrimPrefix(unit, []byte("\ufeff")), func(v *harness.Value) {
		object, header, list = v.Kind() == '{', record{}, nil
		v.Fields(func(name string) {
			switch name {
			case "session":
				header.read(v)
			case "items":
				v.Items(func() {
					list = append(list, record{})
					list[len(list)-1].read(v)
				})
			}
		})
	})
	if err != nil {
		return err
	}
	if !object {
		return &harness.Rejection{Reason: harness.ReasonNotObject}
	}
	lines, err := newDecoder(nil, d.env)
	if err != nil {
		return err
	}
	lines.meta = out.Meta
	lines.clock(&header)
	lines.header(&header)
	for i := range list {
		if !list[i].object {
			continue
		}
		if unknown := lines.take(&list[i]); unknown != "" {
			out.Unknown = unknown
		}
	}
	lines.meta = nil
	out.Turns = append(out.Turns, lines.turns...)
	lines.Flush(out)
	out.Flagged = out.Flagged || lenient
	return nil
}

// Pending implements harness.Decoder: a document has no end to wait for.
func (d *document) Pending() bool { return false }

// Flush implements harness.Decoder.
func (d *document) Flush(*harness.Out) {}

// State implements harness.Decoder.
func (d *document) State() ([]byte, error) { return []byte("null"), nil }
