package kiro

import (
	"bytes"
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
)

// Recognize implements harness.Format. The unit may be cut anywhere.
func (Document) Recognize(unit []byte) harness.Confidence {
	head := bytes.TrimSpace(bytes.TrimPrefix(unit, []byte("\ufeff")))
	if len(head) == 0 || head[0] != '{' {
		return harness.No
	}
	var v harness.Value
	var named, entries bool
	// The error is that of a head that is cut.
	_, _ = v.Walk(head, func(v *harness.Value) {
		named, entries = false, false
		v.Fields(func(name string) {
			switch name {
			case "conversation_id":
				named = v.Kind() == '"'
			case "history":
				v.Items(func() {
					if entries {
						return
					}
					if v.Kind() == '[' {
						n := 0
						v.Items(func() {
							n++
							v.Fields(func(name string) { entries = entries || n == 1 && name == "content" })
						})
						return
					}
					v.Fields(func(name string) { entries = entries || name == "user" || name == "assistant" })
				})
			}
		})
	})
	switch {
	case named && entries:
		return harness.Certain
	case named:
		return harness.Perhaps
	}
	return harness.No
}

// Record implements harness.Format.
func (Document) Record([]byte) bool { return false }

// Place implements harness.Format: nobody keeps them in a place of their own.
func (Document) Place(string) bool { return false }

// About implements harness.Format.
func (Document) About(string, *session.Meta) {}

// Stores implements harness.Format.
func (Document) Stores(string, func(string) string) []harness.Store { return nil }

// Decoder implements harness.Format. A document is always read from its start.
func (Document) Decoder([]byte, harness.Env) (harness.Decoder, error) { return &document{}, nil }

// document reads {"conversation_id":…,"history":[…]}: what a row of the database
// holds.
type document struct{ value harness.Value }

// Decode implements harness.Decoder.
func (x *document) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	var object bool
	var head row
	var entries []row
	lenient, err := x.value.Walk(bytes.TrimPrefix(unit, []byte("\ufeff")), func(v *harness.Value) {
		object, head, entries = v.Kind() == '{', row{}, nil
		v.Fields(func(name string) {
			switch name {
			case "conversation_id":
				head.id = v.Text()
			case "model_info":
				head.readModel(v)
			case "latest_summary":
				head.readSummary(v)
			case "history":
				v.Items(func() {
					var r row
					r.entry(v)
					entries = append(entries, r)
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
	var d rowDecoder
	d.row = head
	cwd := out.Meta.CWD
	d.session(out.Meta)
	out.Meta.CWD = cwd // which is the key of the row, and not in its value
	from := len(out.Turns)
	d.Deliver(out)
	for _, r := range entries {
		d.row = r
		d.told(out.Meta)
		d.Deliver(out)
	}
	distinguish(out, from)
	out.Flagged = out.Flagged || lenient
	return nil
}

// distinguish numbers turns whose ids say nothing: collectors blank the ids of
// messages and calls, and the same words can be said twice.
func distinguish(out *harness.Out, from int) {
	seen := map[string]int{}
	for i := from; i < len(out.Turns); i++ {
		t := &out.Turns[i]
		if strings.HasSuffix(t.ID, ":") {
			t.ID += strconv.FormatUint(plain.Hash(t.Text), 16)
		}
		if seen[t.ID]++; seen[t.ID] > 1 {
			t.ID += "#" + strconv.Itoa(seen[t.ID])
		}
	}
}

// Pending implements harness.Decoder: a document has no end to wait for.
func (*document) Pending() bool { return false }

// Flush implements harness.Decoder.
func (*document) Flush(*harness.Out) {}

// State implements harness.Decoder.
func (*document) State() ([]byte, error) { return []byte("null"), nil }
