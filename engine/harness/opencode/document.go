package opencode

import (
	"bytes"

	"handoffd/engine/harness"
)

// Recognize implements harness.Format. The unit may be cut anywhere.
func (Export) Recognize(unit []byte) harness.Confidence {
	head := bytes.TrimSpace(bytes.TrimPrefix(unit, []byte("\ufeff")))
	has := func(name string) bool { return bytes.Contains(head, []byte(`"`+name+`"`)) }
	if len(head) == 0 || head[0] != '{' || !has("info") {
		return harness.No
	}
	compact := bytes.Map(func(r rune) rune {
		if r <= ' ' {
			return -1
		}
		return r
	}, head[:min(len(head), 64)])
	switch {
	case !bytes.HasPrefix(compact, []byte(`{"info":{`)):
		return harness.No
	case has("projectID") && has("directory"), has("messages") && has("sessionID"):
		return harness.Certain
	}
	return harness.Perhaps
}

// document reads {"info":{…},"messages":[{"info":{…},"parts":[…]}]}.
type document struct {
	value harness.Value
}

// Decode implements harness.Decoder.
func (x *document) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	type message struct {
		info  record
		parts []record
	}
	var object bool
	var info record
	var messages []message
	lenient, err := x.value.Walk(bytes.TrimPrefix(unit, []byte("\ufeff")), func(v *harness.Value) {
		object, info, messages = v.Kind() == '{', record{}, nil
		v.Fields(func(name string) {
			switch name {
			case "info":
				info.read(v)
			case "messages":
				v.Items(func() {
					var m message
					v.Fields(func(name string) {
						switch name {
						case "info":
							m.info.read(v)
						case "parts":
							v.Items(func() {
								var p record
								p.read(v)
								m.parts = append(m.parts, p)
							})
						}
					})
					messages = append(messages, m)
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
	var d decoder
	add := func(kind string, r *record) {
		d.rec = *r
		if unknown := d.take(kind, out.Meta); unknown != "" {
			out.Unknown = unknown
		}
	}
	add("session", &info)
	for i := range messages {
		m := &messages[i]
		add("message", &m.info)
		for j := range m.parts {
			add("part", &m.parts[j])
		}
	}
	// A file that somebody made does not change while it is read.
	d.Close()
	d.Deliver(out)
	out.Flagged = out.Flagged || lenient
	return nil
}

// Pending implements harness.Decoder: a document has no end to wait for.
func (*document) Pending() bool { return false }

// Flush implements harness.Decoder.
func (*document) Flush(*harness.Out) {}

// State implements harness.Decoder.
func (*document) State() ([]byte, error) { return []byte("null"), nil }
