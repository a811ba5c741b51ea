package federate_test

import (
	"fmt"
	"iter"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/federate"
	"handoffd/engine/turn"
)

func seq(list []turn.Turn) iter.Seq2[turn.Turn, error] {
	return func(yield func(turn.Turn, error) bool) {
		for _, t := range list {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// pull takes over what another history has, as an import does.
func pull(t *rapid.T, mine, theirs []turn.Turn) ([]turn.Turn, federate.Plan) {
	a, err := federate.Trace(seq(mine))
	if err != nil {
		t.Fatal(err)
	}
	b, err := federate.Trace(seq(theirs))
	if err != nil {
		t.Fatal(err)
	}
	p := a.Compare(b)
	for i, other := range theirs {
		if !p.Add[i] {
			continue
		}
		if _, guest := federate.Guest(&other); !guest && !p.Forward {
			other.Origin = p.IDs[i].Origin("")
		}
		mine = append(mine, other)
	}
	return mine, p
}

// TestExchange lets machines work on one session and import from one another
// in any order. The turns are unique in a hidden way, so that it can be told
// whether one was lost or doubled although they say the same.
func TestExchange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		machines := make([][]turn.Turn, 3)
		made := 0
		steps := rapid.IntRange(1, 40).Draw(t, "steps")
		for range steps {
			i := rapid.IntRange(0, 2).Draw(t, "machine")
			if rapid.Bool().Draw(t, "work") {
				made++
				// Agent stands for what cannot be told apart otherwise; the
				// text repeats.
				machines[i] = append(machines[i], turn.Turn{Class: turn.User, Text: rapid.SampledFrom([]string{"continue", "done"}).Draw(t, "text"), Agent: fmt.Sprint(made)})
				continue
			}
			j := rapid.IntRange(0, 2).Draw(t, "from")
			if i == j {
				continue
			}
			want := union(machines[i], machines[j])
			machines[i], _ = pull(t, machines[i], machines[j])
			if got := count(machines[i]); !equal(got, want) {
				t.Fatalf("after an import: %v, want %v", got, want)
			}
			again, p := pull(t, machines[i], machines[j])
			if p.Missing != 0 || len(again) != len(machines[i]) {
				t.Fatalf("a second import adds %d", p.Missing)
			}
		}
	})
}

func count(list []turn.Turn) map[string]int {
	out := map[string]int{}
	for _, t := range list {
		out[t.Agent]++
	}
	return out
}

func union(a, b []turn.Turn) map[string]int {
	out := map[string]int{}
	for _, t := range append(append([]turn.Turn(nil), a...), b...) {
		out[t.Agent] = 1
	}
	return out
}

func equal(a, b map[string]int) bool {
	if len(a) != len(b) {
		return false
	}
	for k, n := range a {
		if b[k] != n {
			return false
		}
	}
	return true
}

func TestCompare(t *testing.T) {
	say := func(text, id string) turn.Turn {
		out := turn.Turn{Class: turn.User, Text: text, ID: id}
		if id != "" {
			out.TS = "2026-01-01T00:00:00Z"
		}
		return out
	}
	for _, c := range []struct {
		name         string
		mine, theirs []turn.Turn
		want         federate.Plan
	}{
		{"the same", []turn.Turn{say("a", "")}, []turn.Turn{say("a", "")}, federate.Plan{Common: 1, Forward: true}},
		{"more there", []turn.Turn{say("a", "")}, []turn.Turn{say("a", ""), say("a", "")}, federate.Plan{Common: 1, Missing: 1, Forward: true}},
		{"more here", []turn.Turn{say("a", ""), say("b", "")}, []turn.Turn{say("a", "")}, federate.Plan{Common: 1, Own: 1}},
		{"parted, saying the same later", []turn.Turn{say("a", ""), say("x", ""), say("go", "")}, []turn.Turn{say("a", ""), say("go", "")}, federate.Plan{Common: 1, Own: 2, Missing: 1}},
		{"the same records in another order", []turn.Turn{say("a", "1"), say("b", "2")}, []turn.Turn{say("b", "2"), say("a", "1")}, federate.Plan{Common: 2}},
		{"nothing here", nil, []turn.Turn{say("a", "")}, federate.Plan{Missing: 1, Forward: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _ := federate.Trace(seq(c.mine))
			b, _ := federate.Trace(seq(c.theirs))
			p := a.Compare(b)
			if p.Common != c.want.Common || p.Missing != c.want.Missing || p.Own != c.want.Own || p.Forward != c.want.Forward {
				t.Errorf("%+v, want %+v", p, c.want)
			}
		})
	}
}
