package pressure

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/session"
)

func num(f float64) *float64 { return &f }

var (
	none = Bands{}
	all  = Bands{true, true, true}
)

func parsed(t *testing.T, text string) Observation {
	t.Helper()
	o, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

// TestBands is by the numbers of the published behaviour.
func TestBands(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     Bands
	}{
		{"1", `{"pct":40,"depth":30,"bytes":1000}`, Bands{true, true, false}},
		{"2", `{"pct":10,"depth":1,"bytes":196608}`, Bands{true, true, false}},
		{"3 empty", `{}`, none},
		{"3 null", `{"pct":null}`, none},
		{"3 low", `{"pct":10}`, none},
		{"4 numeric text", `{"pct":"99"}`, all},
		{"4 object", `{"pct":{}}`, all},
		{"4 true", `{"depth":true}`, all},
		{"4 too large for a number", `{"depth":1e999}`, all},
		{"5 null", `null`, all},
		{"5 text", `"99"`, all},
		{"5 array", `[90]`, all},
		{"5 number", `42`, all},
		{"6 79", `{"pct":79}`, Bands{true, true, false}},
		{"6 80", `{"pct":80}`, all},
		{"6 100", `{"pct":100}`, all},
		{"6 100.1", `{"pct":100.1}`, all},
		{"6 -1", `{"pct":-1}`, all},
		{"6 101", `{"pct":101}`, all},
		{"6 depth 0", `{"depth":0}`, none},
		{"6 depth -5", `{"depth":-5}`, all},
		{"6 bytes -1", `{"bytes":-1}`, all},
		{"6 edges", `{"pct":49.999,"depth":19,"bytes":131071}`, none},
		{"6 warn edge", `{"depth":20}`, Bands{Warn: true}},
		{"7 floor is ignored", `{"pct":65,"floor":40}`, Bands{true, true, false}},
		{"last member counts", `{"pct":99,"pct":1}`, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parsed(t, c.in).Bands(); got != c.want {
				t.Errorf("%s is %+v, want %+v", c.in, got, c.want)
			}
		})
	}
	for name, o := range map[string]Observation{
		"4 NaN": {Pct: num(math.NaN())}, "4 +Inf": {Depth: num(math.Inf(1))}, "4 -Inf": {Bytes: num(math.Inf(-1))},
	} {
		if o.Bands() != all {
			t.Errorf("%s: %+v", name, o.Bands())
		}
	}
	if _, err := Parse([]byte(`{"pct":`)); err == nil {
		t.Error("half JSON is an observation")
	}
}

func TestNag(t *testing.T) {
	for _, c := range []struct {
		name, in string
		tools    int
		ok       bool
		why      string
		deny     bool
	}{
		{"8", `{"pct":65}`, 100, false, NearHardReason, true},
		{"9 late", `{"pct":40}`, 100, true, "", false},
		{"9 early", `{"pct":40}`, 0, false, CooldownReason, false},
		{"9 low", `{"pct":10}`, 0, false, CooldownReason, false},
		{"no signal", `{}`, 15, true, "", false},
		{"edge of cooldown", `{}`, 14, false, CooldownReason, false},
		{"edge of near", `{"pct":60}`, 15, true, "", true},
		{"senseless", `{"pct":"x"}`, 99, false, NearHardReason, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := parsed(t, c.in)
			if ok, why := o.Nag(c.tools); ok != c.ok || why != c.why || o.Bands().Deny() != c.deny {
				t.Errorf("%v %q, deny %v", ok, why, o.Bands().Deny())
			}
		})
	}
}

func TestRemaining(t *testing.T) {
	for _, c := range []struct {
		in   Observation
		left float64
		ok   bool
	}{
		{Observation{Pct: num(40)}, 0.5, true},
		{Observation{Pct: num(math.NaN())}, 0, true},
		{Observation{Pct: num(40), Depth: num(-1)}, 0, true},
		{Observation{}, 0, false},
		{Observation{Malformed: true}, 0, true},
		{Observation{Pct: num(40), Depth: num(30)}, 0.25, true},
		{Observation{Depth: num(60)}, -0.5, true},
	} {
		if left, ok := c.in.Remaining(); left != c.left || ok != c.ok {
			t.Errorf("behaviour 10: %+v leaves %v %v, want %v %v", c.in, left, ok, c.left, c.ok)
		}
	}
}

// TestMonotone: more of anything never leaves a band, and each band is within
// the one before.
func TestMonotone(t *testing.T) {
	signal := rapid.Ptr(rapid.Float64Range(-10, 300000), true)
	rapid.Check(t, func(t *rapid.T) {
		o := Observation{Pct: signal.Draw(t, "pct"), Depth: signal.Draw(t, "depth"), Bytes: signal.Draw(t, "bytes")}
		b := o.Bands()
		if b.Hard && !b.Handoff || b.Handoff && !b.Warn {
			t.Fatalf("%+v", b)
		}
		if o.Depth != nil && *o.Depth >= 0 {
			more := o
			more.Depth = num(*o.Depth + rapid.Float64Range(0, 100).Draw(t, "more"))
			if m := more.Bands(); b.Warn && !m.Warn || b.Handoff && !m.Handoff || b.Hard && !m.Hard {
				t.Fatalf("%+v, with more %+v", b, m)
			}
		}
		if d := o.Deciding(false, false); d.Depth != nil || d.Bytes != nil || d.Pct != o.Pct {
			t.Fatalf("%+v", d)
		}
		left, ok := o.Remaining()
		if ok != (o.Pct != nil || o.Depth != nil || o.Bytes != nil) || ok && b.Hard != (left <= 0) {
			t.Fatalf("%+v leaves %v", b, left)
		}
	})
}

func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens session.Tokens
		model  string
		pct    float64 // -1 for no signal
		from   string
	}{
		{"nothing", session.Tokens{}, "", -1, ""},
		{"unknown model", session.Tokens{Context: 1000}, "house-model-7", -1, ""},
		{"harness first", session.Tokens{Context: 100, Window: 1000}, "claude-opus-4-1", 10, FromHarness},
		{"harness over its own", session.Tokens{Context: 1100, Window: 1000}, "", 100, FromHarness},
		{"table", session.Tokens{Context: 100000}, "claude-sonnet-4-5-20250929", 50, FromTable},
		{"long variant by name", session.Tokens{Context: 100000}, "claude-sonnet-4-5[1m]", 10, FromTable},
		{"long variant by what it holds", session.Tokens{Context: 250000}, "claude-sonnet-4-5", 25, FromTable},
		{"more than any variant", session.Tokens{Context: 1000001}, "claude-sonnet-4-5", -1, ""},
		{"behind a gateway", session.Tokens{Context: 20000}, "openrouter/anthropic/Claude-opus-4", 10, FromTable},
		{"Bedrock", session.Tokens{Context: 20000}, "us.anthropic.claude-sonnet-4-20250514-v1:0", 10, FromTable},
		{"no fill", session.Tokens{Window: 1000}, "", -1, FromHarness},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, _, from := Measure(c.tokens, c.model)
			got := -1.0
			if o.Pct != nil {
				got = *o.Pct
			}
			if got != c.pct || from != c.from {
				t.Errorf("%v from %q, want %v from %q", got, from, c.pct, c.from)
			}
		})
	}
	for _, k := range windows() {
		if k.Source == "" || k.Tokens <= 0 || (k.Prefix == "") == (k.Contains == "") {
			t.Errorf("row %+v", k)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"pct":1e3,"depth":"x"}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := Parse(raw)
		if err != nil {
			if o != (Observation{}) {
				t.Fatal("an error with a result")
			}
			return
		}
		if b := o.Bands(); b.Hard && !b.Warn {
			t.Fatalf("%+v", b)
		}
	})
}
