package main

import (
	"bytes"
	"errors"
	"testing"

	"handoffd/daemon/client"
	"handoffd/engine/fault"
)

// Numbers as the published engine takes them, and no others.
func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "400": 400, "0x3": 3, "1e1": 10, "2.0": 2, " 7 ": 7, "-1": -1, "0": 0, "0b11": 3, "007": 7, "9007199254740992": 1 << 53,
	} {
		if n, ok := integer(text); !ok || n != want {
			t.Errorf("%q is %d, %t", text, n, ok)
		}
	}
	for _, text := range []string{"", "x", "1.5", "1e-1", "NaN", "Infinity", "inf", "1_000", "0x", "1e30", "99999999999999999999", "--", "3 4", "0x1p3"} {
		if n, ok := integer(text); ok {
			t.Errorf("%q is %d", text, n)
		}
	}
}

// A failure is one object: what the verb says of it, or else the error; never
// the members of a problem document.
func TestRefusal(t *testing.T) {
	problem := func(more string) error {
		return &client.Failure{
			Fault: fault.New(fault.Denied, "no").WithHint("ask"),
			Document: []byte(`{"ok":false,"type":"urn:x","title":"t","status":403,"detail":"no","kind":"denied","exit":3,"hint":"ask"` + more + `}
`),
		}
	}
	for _, c := range []struct {
		err    error
		pretty bool
		want   string
	}{
		{problem(`,"verdict":"DENIED","level":null,"executed":false`), false, `{"verdict":"DENIED","level":null,"executed":false}` + "\n"},
		{problem(`,"executed":false,"error":"gone","record":"r"`), false, `{"executed":false,"error":"gone","record":"r"}` + "\n"},
		{problem(``), false, `{"error":"no","hint":"ask"}` + "\n"},
		{problem(``), true, "{\n  \"error\": \"no\",\n  \"hint\": \"ask\"\n}\n"},
		{errors.New("a \"quoted\" <one>\x01"), false, `{"error":"a \"quoted\" <one>\u0001"}` + "\n"},
		{printed{problem(``)}, false, ""},
	} {
		var out bytes.Buffer
		a := &app{out: &out, json: c.pretty}
		a.refusal(c.err)
		if out.String() != c.want {
			t.Errorf("%q, want %q", out.String(), c.want)
		}
	}
}
