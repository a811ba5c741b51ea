package verb_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/verb"
)

// TestKilled dies before every single effect of a verb, does it again, and
// looks for every turn.
func TestKilled(t *testing.T) {
	merge := func(m *machine) error {
		a, _ := m.entry(one)
		b, _ := m.entry(two)
		_, err := verb.Merge(context.Background(), m.b, a, b, true)
		return err
	}
	for _, c := range []struct {
		name  string
		ready func(t *testing.T, m, other *machine)
		do    func(m, other *machine) error
		least int // effects
	}{
		{"first merge", func(*testing.T, *machine, *machine) {}, func(m, _ *machine) error { return merge(m) }, 20},
		{"growing merge", func(t *testing.T, m, _ *machine) {
			try(t, merge(m))
			m.say(one, "more", 20)
			m.say(two, "more", 21)
			try(t, m.build(one))
			try(t, m.build(two))
		}, func(m, _ *machine) error { return merge(m) }, 20},
		{"rendering", func(t *testing.T, m, _ *machine) {
			a, _ := m.entry(one)
			b, _ := m.entry(two)
			_, err := verb.Merge(context.Background(), m.b, a, b, false)
			try(t, err)
		}, func(m, _ *machine) error { return merge(m) }, 15},
		{"first import", func(t *testing.T, m, other *machine) {
			other.say("three", "there", 30)
			try(t, other.build("three"))
		}, imported, 15},
		{"import of what goes on there", func(t *testing.T, m, other *machine) {
			other.say("three", "there", 30)
			try(t, other.build("three"))
			try(t, imported(m, other))
			other.say("three", "there", 31)
			try(t, other.build("three"))
		}, imported, 15},
		{"import of what went on here and there", func(t *testing.T, m, other *machine) {
			other.say(one, "there", 30)
			try(t, other.build(one))
		}, imported, 15},
		{"promotion", func(*testing.T, *machine, *machine) {}, func(m, _ *machine) error {
			e, _ := m.entry(one)
			_, err := verb.Promote(context.Background(), m.b, e, false, time.Now())
			return err
		}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n := 1; ; n++ {
				dir := t.TempDir()
				m, other := newMachine(t, filepath.Join(dir, "a")), newMachine(t, filepath.Join(dir, "b"))
				m.say(one, "continue", 1)
				m.say(one, "continue", 3)
				m.say(two, "continue", 2)
				try(t, m.build(one))
				try(t, m.build(two))
				c.ready(t, m, other)
				died := dieAt(n, func() {
					if err := c.do(m, other); err != nil {
						t.Fatalf("undisturbed: %v", err)
					}
				})
				m.restart()
				m.sound("the death")
				try(t, c.do(m, other))
				m.sound("the second try")
				everything(t, n, m, other)
				if !died {
					if n <= c.least {
						t.Errorf("only %d effects were seen", n-1)
					}
					return
				}
			}
		})
	}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func imported(m, other *machine) error {
	f, err := m.from(other)
	if err == nil && len(f.Failed) > 0 {
		err = f.Failed[0].Err
	}
	return err
}

// everything looks for every turn that was said, in its session and in a merge.
func everything(t *testing.T, n int, m, other *machine) {
	t.Helper()
	var both []string
	for _, s := range []string{one, two, "three"} {
		e, ok := m.entry(s)
		if !ok {
			continue
		}
		want := append(m.said(s), other.said(s)...)
		slices.Sort(want)
		if got := times(m.turns(e)); !slices.Equal(got, want) {
			t.Fatalf("killed before effect %d: session %s has %v, want %v", n, s, got, want)
		}
		if s != "three" {
			both = append(both, m.said(s)...)
		}
	}
	e, ok := m.entry(one + "+merge+" + two)
	if !ok {
		return
	}
	slices.Sort(both)
	if got := times(m.turns(e)); !slices.Equal(got, both) {
		t.Fatalf("killed before effect %d: the merge has %v, want %v", n, got, both)
	}
	if r, err := m.from(m); !fault.Is(err, fault.Usage) {
		t.Fatalf("it imports from itself: %+v %v", r, err)
	}
}
