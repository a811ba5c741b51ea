// Package pressure says how full a session's context is: signals in, bands
// out. It is pure. It never reads a transcript, never decides what is denied,
// and takes a signal that could not be measured for no signal at all.
package pressure

import (
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limit is where the bands of one signal begin, edges included, and the
// signal's domain, which begins at 0.
type Limit struct {
	Signal              string
	Warn, Handoff, Hard float64
	Max                 float64 // +Inf when there is none
}

// Limits are those of the published tool (npm @adlc/context-handoff 1.11.1,
// github.com/voodootikigod/adlc, packages/context-handoff/lib/thresholds.mjs):
// percent of the context window, tool calls, bytes of transcript.
var Limits = []Limit{
	{"pct", 50, 60, 80, 100},
	{"depth", 20, 30, 40, math.Inf(1)},
	{"bytes", 131072, 196608, 262144, math.Inf(1)},
}

const (
	// NearHard is the share of the way to the hard band that must be left for
	// a nag to make sense.
	NearHard = 0.25
	// Cooldown is how many tool calls a resumed session is left alone.
	Cooldown = 15
)

// Observation is what was measured. A nil signal was not; NaN is one that is
// there and makes no sense, which is past every band.
type Observation struct {
	Pct, Depth, Bytes *float64
	// Malformed says that the observation itself makes no sense.
	Malformed bool
}

// Parse reads an observation as JSON. Any JSON is one: what is no object is
// malformed, null members are not there, members that are no numbers make no
// sense, others are ignored. The error says that raw is not JSON.
func Parse(raw []byte) (Observation, error) {
	v := jsontext.Value(raw)
	if !v.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return Observation{}, fmt.Errorf("the observation is not JSON")
	}
	if v.Kind() != '{' {
		return Observation{Malformed: true}, nil
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(v, &members, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return Observation{}, fmt.Errorf("the observation is not JSON: %w", err)
	}
	return Observation{
		Pct: Signal(members["pct"]), Depth: Signal(members["depth"]), Bytes: Signal(members["bytes"]),
	}, nil
}

// Signal reads one signal as JSON: nil for nothing or null, NaN for anything
// but a finite number.
func Signal(v jsontext.Value) *float64 {
	if len(v) == 0 || v.Kind() == 'n' {
		return nil
	}
	f := math.NaN()
	if v.Kind() == '0' && json.Unmarshal(v, &f) != nil {
		f = math.NaN()
	}
	return &f
}

// each hands out what is there with its limits.
func (o Observation) each(yield func(l Limit, v float64)) {
	for i, v := range []*float64{o.Pct, o.Depth, o.Bytes} {
		if v != nil {
			yield(Limits[i], *v)
		}
	}
}

// holds reports whether v makes sense: finite and in the domain.
func (l Limit) holds(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 && v <= l.Max
}

// Bands is where a session stands. They do not follow from one another, but
// each is reached before the next.
type Bands struct {
	Warn    bool `json:"warn"`
	Handoff bool `json:"handoff"`
	Hard    bool `json:"hard"`
}

// Deny reports whether the session should not change anything any more.
func (b Bands) Deny() bool { return b.Handoff || b.Hard }

// Bands returns the bands that any signal has reached. No signal is no band.
func (o Observation) Bands() Bands {
	if o.Malformed {
		return Bands{true, true, true}
	}
	var b Bands
	o.each(func(l Limit, v float64) {
		bad := !l.holds(v)
		b.Warn = b.Warn || bad || v >= l.Warn
		b.Handoff = b.Handoff || bad || v >= l.Handoff
		b.Hard = b.Hard || bad || v >= l.Hard
	})
	return b
}

// Deciding returns what of a measured observation may deny: the percentage,
// and the others only where they are configured to. A count of tool calls or
// bytes says little of how full a window is.
func (o Observation) Deciding(depth, bytes bool) Observation {
	if !depth {
		o.Depth = nil
	}
	if !bytes {
		o.Bytes = nil
	}
	return o
}

// Remaining is the smallest share of the way to the hard band that is left,
// from 1 down to below 0; ok is false when there is no signal. What makes no
// sense leaves 0.
func (o Observation) Remaining() (left float64, ok bool) {
	if o.Malformed {
		return 0, true
	}
	bad := false
	o.each(func(l Limit, v float64) {
		if !l.holds(v) {
			bad = true
			return
		}
		if r := (l.Hard - v) / l.Hard; !ok || r < left {
			left = r
		}
		ok = true
	})
	if bad {
		return 0, true
	}
	return left, ok
}

// Why a nag is not shown.
const (
	NearHardReason = "near hard"
	CooldownReason = "cooldown"
)

// Nag reports whether a session may be told that its context fills up, which
// never changes what is denied: not when the hard band is so near that the
// deny speaks for itself, and not right after a resume.
func (o Observation) Nag(toolsSinceResume int) (ok bool, why string) {
	if left, known := o.Remaining(); known && left < NearHard {
		return false, NearHardReason
	}
	if toolsSinceResume < Cooldown {
		return false, CooldownReason
	}
	return true, ""
}
