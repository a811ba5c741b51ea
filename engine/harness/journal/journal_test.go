package journal

import (
	"reflect"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

func TestTick(t *testing.T) {
	var c Clock
	var m session.Meta
	for _, s := range []struct{ ts, now, mark, first, last string }{
		{"", "", "", "", ""},
		{"2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z", "", "2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"", "2026-01-02T00:00:00Z", Approximate, "2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "", "2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"2026-01-03T00:00:00Z", "2026-01-03T00:00:00Z", "", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"},
	} {
		mark := c.Tick(&m, s.ts)
		if c.TS != s.now || mark != s.mark || m.FirstTS != s.first || m.LastTS != s.last {
			t.Errorf("Tick(%q): %q, mark %q, first %q, last %q", s.ts, c.TS, mark, m.FirstTS, m.LastTS)
		}
	}
}

func TestRestore(t *testing.T) {
	c := Clock{TS: "x"}
	if err := Restore("acme", nil, &c); err != nil || c.TS != "x" {
		t.Errorf("no state: %v, %v", c, err)
	}
	if err := Restore("acme", []byte(`{"ts":"y"}`), &c); err != nil || c.TS != "y" {
		t.Errorf("a state: %v, %v", c, err)
	}
	if err := Restore("acme", []byte(`{"ts":`), &c); err == nil || !strings.HasPrefix(err.Error(), "acme: ") {
		t.Errorf("half a state: %v", err)
	}
}

// TestRead checks what a page hands out, and that an error leaves all as it was.
func TestRead(t *testing.T) {
	var p Page
	var names []string
	read := func(v *harness.Value) {
		names = nil
		v.Fields(func(name string) { names = append(names, name) })
	}
	take := func() string {
		p.Mark = "m"
		for _, name := range names {
			one := turn.Turn{Text: name}
			if name == "own" {
				one.Mark = "its"
			}
			p.Sign(&one, "now", "id")
			p.Add(one)
		}
		return "kind"
	}
	out := harness.Out{Meta: &session.Meta{}}
	for _, c := range []struct {
		unit, names, ids, marks string
		flagged                 bool
	}{
		{`{"a":1,"own":2,"c":3}`, "a own c", "id id#2 id#3", "m its m", false},
		{`{"d":1,"d":2}`, "d d", "id id#2", "m m", true},
		{`{}`, "", "", "", false},
	} {
		out.Turns, out.Unknown, out.Flagged = nil, "", false
		if err := p.Read([]byte(c.unit), &out, read, take); err != nil {
			t.Fatalf("%s: %v", c.unit, err)
		}
		var texts, ids, marks []string
		for _, one := range out.Turns {
			texts, ids, marks = append(texts, one.Text), append(ids, one.ID), append(marks, one.Mark)
		}
		if join(texts) != c.names || join(ids) != c.ids || join(marks) != c.marks || out.Unknown != "kind" || out.Flagged != c.flagged {
			t.Errorf("%s: %+v", c.unit, out)
		}
	}
	for _, unit := range []string{`[1]`, `{"a":`, ``, `{} {}`} {
		before := harness.Out{Meta: &session.Meta{}, Turns: []turn.Turn{{Text: "x"}}, Unknown: "u"}
		after := before
		if err := p.Read([]byte(unit), &after, read, take); err == nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q: %v, %+v", unit, err, after)
		}
	}
}

func TestSignNameless(t *testing.T) {
	var p Page
	p.Begin(&session.Meta{})
	for range 2 {
		one := turn.Turn{}
		if p.Sign(&one, "now", ""); one.ID != "" || one.TS != "now" {
			t.Errorf("a turn of a record without an id: %+v", one)
		}
	}
	long := turn.Turn{}
	p.Begin(&session.Meta{})
	if p.Sign(&long, "", strings.Repeat("é", 100)); len(long.ID) != maxID {
		t.Errorf("an id of %d bytes", len(long.ID))
	}
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		raw, command string
		edits        []string
	}{
		{`{"command":"ls","path":"/a"}`, "ls", []string{"/a"}},
		{`{"path":"/a","file_path":"/b"}`, "", []string{"/b"}},
		{`{"path":"/a","file_path":""}`, "", []string{"/a"}},
		{`{"path":"/a","path":"/b"}`, "", []string{"/b"}},
		{`{"command":["ls"],"path":{"x":1},"target":"/a"}`, "", nil},
		{`{"command":"ls","path":`, "", nil},
		{`"ls"`, "", nil},
		{``, "", nil},
	} {
		command, edits := Targets([]byte(c.raw), "path", "file_path")
		if command != c.command || !reflect.DeepEqual(edits, c.edits) {
			t.Errorf("Targets(%s) = %q, %q, want %q, %q", c.raw, command, edits, c.command, c.edits)
		}
	}
}

func join(list []string) string { return strings.Join(list, " ") }
