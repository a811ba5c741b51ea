package cursoride

import (
	"cmp"
	"slices"
	"strings"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/sqlite"
)

type exporter struct {
	t    *sqlite.Table
	w    harness.Spool
	line ledger.Line
}

// ordered is a bubble and its place in the conversation.
type ordered struct {
	id     string
	at     int // in the conversation's own list; after all of them when it is not there
	rowid  int64
	inline []byte // of a conversation that holds its bubbles itself
}

// unlisted is the place of bubbles that the conversation does not name: those
// of answers that were thrown away.
const unlisted = 1 << 30

func (e *exporter) export(id string) error {
	var list []ordered
	places := map[string]int{}
	found := false
	err := e.t.Where("key", composer+id, []string{"value"}, func(r sqlite.Row) error {
		found = true
		var c conversation
		if !c.read(r[0].Bytes()) {
			return nil // NULL, or written half: the bubbles tell
		}
		for i, b := range c.bubbles {
			places[b.id] = i
			if b.inline != nil {
				list = append(list, ordered{id: b.id, at: i, inline: b.inline})
			}
		}
		e.line.Begin("session")
		for _, m := range c.members {
			e.line.JSON(m.name, m.raw)
		}
		return e.line.End(e.w)
	})
	if err != nil {
		return err
	}
	err = e.t.Prefix("key", bubble+id+":", []string{"key", sqlite.Rowid}, func(r sqlite.Row) error {
		found = true
		name := strings.TrimPrefix(r[0].String(), bubble+id+":")
		rowid, _ := r[1].Int()
		at, ok := places[name]
		if !ok {
			at = unlisted
		}
		list = append(list, ordered{id: name, at: at, rowid: rowid})
		return nil
	})
	if err != nil {
		return err
	}
	if !found {
		return fault.New(fault.SourceMissing, "no conversation %s in the database", id)
	}
	slices.SortStableFunc(list, func(a, b ordered) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rowid, b.rowid)) })
	last := ""
	for _, b := range list {
		if b.id == last && b.id != "" {
			continue // held by the conversation and as a row
		}
		last = b.id
		if err := e.bubble(b); err != nil {
			return err
		}
	}
	return nil
}

// bubble writes the line of a message: those of its members that are read.
func (e *exporter) bubble(b ordered) error {
	raw := b.inline
	if raw == nil {
		r, ok, err := e.t.Row(b.rowid, []string{"value"})
		if err != nil || !ok {
			return err
		}
		raw = r[0].Bytes()
	}
	members, ok := pick(raw, bubbleMembers)
	if !ok {
		return nil // NULL and null rows are left where a bubble was
	}
	e.line.Begin("bubble")
	e.line.Text("id", b.id)
	if b.at == unlisted {
		e.line.Int("unlisted", 1)
	}
	for _, m := range members {
		e.line.JSON(m.name, m.raw)
	}
	return e.line.End(e.w)
}

// bubbleMembers and sessionMembers are what is taken of a record.
var (
	bubbleMembers  = []string{"type", "text", "thinking", "toolFormerData", "createdAt", "timingInfo", "tokenCount", "modelInfo", "isThought"}
	sessionMembers = []string{"name", "createdAt", "lastUpdatedAt", "status", "modelConfig", "contextTokensUsed", "contextTokenLimit", "workspaceIdentifier"}
)

// conversation is the record of one.
type conversation struct {
	members []member
	bubbles []struct {
		id     string
		inline []byte
	}
}

type member struct {
	name string
	raw  []byte
}

// within are members of which only one member is taken: the others can hold
// what is nobody's business.
var within = map[string]string{"modelConfig": "modelName", "modelInfo": "modelName", "workspaceIdentifier": "uri"}

// pick takes the named members of an object; ok is false when raw is none.
func pick(raw []byte, names []string) (list []member, ok bool) {
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		list, ok = nil, v.Kind() == '{'
		v.Fields(func(name string) {
			if !slices.Contains(names, name) {
				return
			}
			raw := slices.Clone(v.Raw())
			if only, some := within[name]; some {
				inside, object := pick(raw, []string{only})
				if !object || len(inside) == 0 {
					return
				}
				raw = slices.Concat([]byte(`{"`+only+`":`), inside[0].raw, []byte("}"))
			}
			list = append(list, member{name, raw})
		})
	})
	return list, ok && err == nil
}

func (c *conversation) read(raw []byte) bool {
	var ok bool
	if c.members, ok = pick(raw, sessionMembers); !ok {
		return false
	}
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		c.bubbles = nil
		v.Fields(func(name string) {
			if name != "fullConversationHeadersOnly" && name != "conversation" {
				return
			}
			v.Items(func() {
				value := slices.Clone(v.Raw())
				var in harness.Value
				id := ""
				_, _ = in.Walk(value, func(v *harness.Value) {
					v.Fields(func(name string) {
						if name == "bubbleId" {
							id = v.Text()
						}
					})
				})
				if name == "fullConversationHeadersOnly" {
					value = nil
				}
				c.bubbles = append(c.bubbles, struct {
					id     string
					inline []byte
				}{id, value})
			})
		})
	})
	return err == nil
}
