package document

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, in, err string }{
		{"empty object", `{}`, ""},
		{"byte order mark", "\ufeff{}", ""},
		{"space around", " \n{}\t\n", ""},
		{"nothing", ``, "line 1, column 1"},
		{"array", `[]`, ErrNotObject.Error()},
		{"null", `null`, ErrNotObject.Error()},
		{"number", `12`, ErrNotObject.Error()},
		{"trailing comma", "{\n  \"a\": 1,\n}", "line 3, column 1: invalid character '}'"},
		{"trailing comma in array", `{"a":[1,]}`, "column 9"},
		{"trailing data", "{}\n{}", "line 2, column 1: invalid character '{' after top-level value"},
		{"comment", `{} // no`, "column 4"},
		{"cut off", `{"a":`, "unexpected end of JSON input"},
		{"invalid UTF-8", "{\"a\":\n\"\xff\"}", "line 2, column 2: invalid UTF-8"},
		{"second mark", "\ufeff\ufeff{}", "column 1"},
		{"huge number", `{"a":1e999}`, "number 1e999 is out of range"},
		{"huge exponent", `{"a":-1e999999999}`, "out of range"},
		{"tiny number", `{"a":1e-999999999}`, ""},
		{"deep", strings.Repeat(`{"a":`, 20000), "exceeded max depth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, _, err := Parse([]byte(c.in))
			if c.err == "" {
				if err != nil || o == nil {
					t.Fatalf("got %v, %v; want an object", o, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error %v, want %q in it", err, c.err)
			}
			if o != nil {
				t.Error("an error came with an object")
			}
		})
	}
}

func TestParseValues(t *testing.T) {
	o, faults, err := Parse([]byte(`{"z":1.0,"a":1e3,"f":0.5,"big":9007199254740993,"huge":1e300,"s":"x","n":null,"b":true,"l":[1,"2"]}`))
	if err != nil || len(faults) != 0 {
		t.Fatal(err, faults)
	}
	if got := strings.Join(o.Keys, " "); got != "z a f big huge s n b l" {
		t.Errorf("keys %q are not in the order of the text", got)
	}
	for key, want := range map[string]any{
		"z": int64(1), "a": int64(1000), "f": 0.5, "big": int64(9007199254740993), "huge": 1e300, "s": "x", "n": nil, "b": true,
	} {
		if got := o.Values[key]; got != want {
			t.Errorf("%s = %#v, want %#v", key, got, want)
		}
	}
	if l := o.Values["l"].([]any); l[0] != int64(1) || l[1] != "2" {
		t.Errorf("l = %#v", l)
	}
}

func TestParseDuplicates(t *testing.T) {
	_, faults, err := Parse([]byte(`{"a":1,"a":2,"b":{"c":1,"c":2},"l":[{"d":1,"d":1}],"\u001b[31m":{"e":1,"e":1},"A":3}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults {
		got = append(got, f.Text("x"))
	}
	want := []string{
		`x: duplicate key "a"`,
		`x.b: duplicate key "c"`,
		`x.l[0]: duplicate key "d"`,
		`x."\x1b[31m": duplicate key "e"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestParseDuplicatesAreBounded(t *testing.T) {
	_, faults, err := Parse([]byte(`{"a":0` + strings.Repeat(`,"a":0`, 5000) + `}`))
	if err != nil || len(faults) != 100 {
		t.Errorf("%d faults, %v; want 100", len(faults), err)
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct{ in, err string }{
		{`[]`, ErrNotObject.Error()},
		{`{"type":"string"}`, "must be an object"},
		{`{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}`, `schema.a: keyword "pattern" is not supported`},
		{`{"type":"object","properties":{"a":{}}}`, "schema.a: no type"},
		{`{"type":"object","properties":{"a":true}}`, "a schema is an object"},
		{`{"type":"object","properties":[]}`, "unusable properties"},
		{`{"type":"object","required":[1]}`, "unusable required"},
		{`{"type":"object","required":"a"}`, "unusable required"},
		{`{"type":"object","additionalProperties":{}}`, "unusable additionalProperties"},
		{`{"type":"object","minLength":-1}`, "unusable minLength"},
		{`{"type":"object","minimum":"1"}`, "unusable minimum"},
		{`{"type":"object","enum":1}`, "unusable enum"},
		{`{"type":"object","items":1}`, "schema.items"},
		{`{"type":"object","type":"object"}`, "duplicate key"},
	} {
		if _, err := Compile([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q in it", c.in, err, c.err)
		}
	}
}

func TestKeysAndSettings(t *testing.T) {
	s, err := Compile([]byte(`{"type":"object","properties":{
		"b":{"type":["string","null"],"default":null},
		"a":{"type":"object","properties":{"x":{"type":"integer","default":1},"y":{"type":"string"}}},
		"l":{"type":"array","items":{"type":"object","properties":{"q":{"type":"string"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range s.Keys() {
		got = append(got, k.Path)
	}
	if g := strings.Join(got, " "); g != "b a.x a.y l" {
		t.Errorf("keys %q", g)
	}
	if k := s.Keys()[0]; !k.HasDefault || k.Default != nil {
		t.Errorf("a default of null is %+v", k)
	}
	o, _, err := Parse([]byte(`{"a":{"x":2},"l":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	settings := s.Settings(o)
	if len(settings) != 2 || settings["a.x"] != int64(2) || settings["l"] == nil {
		t.Errorf("settings %v", settings)
	}
}

func TestErrNotObjectIsNotHidden(t *testing.T) {
	if _, _, err := Parse([]byte(`"x"`)); !errors.Is(err, ErrNotObject) {
		t.Error(err)
	}
}
