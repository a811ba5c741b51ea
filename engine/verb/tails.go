package verb

import (
	"strings"

	"handoffd/engine/federate"
	"handoffd/engine/turn"
)

// tails is what becomes of the undecided ends of a session here and there.
type tails struct {
	// keep are the undecided turns afterwards; nil keeps those that are here.
	keep []turn.Turn
	// guests are undecided turns of theirs that are added for good, because
	// the session goes on here in another way.
	guests []turn.Turn
	// news says that keep differs from what is here, or that there are
	// guests.
	news bool
}

// compare decides. An undecided turn that the other side has, or has more of,
// is nothing new.
func (e *tails) compare(x *visit) error {
	var theirs, mine []turn.Turn
	for t, err := range x.s.Turns(false) {
		if err != nil {
			return err
		}
		theirs = append(theirs, t)
	}
	if x.m == nil {
		if e.keep = []turn.Turn{}; x.q.Redact {
			for i := range theirs {
				theirs[i] = x.clean(theirs[i])
			}
		}
		e.keep = append(e.keep, theirs...)
		return nil
	}
	for t, err := range x.mine(false) {
		if err != nil {
			return err
		}
		mine = append(mine, t)
	}
	for i := range theirs {
		theirs[i] = x.clean(theirs[i])
	}
	fresh, err := beyond(theirs, mine, x)
	if err != nil {
		return err
	}
	if x.plan.Forward && len(x.m.Sources) == 0 {
		// Nobody but them tells how this session goes on.
		e.keep = append([]turn.Turn{}, theirs...)
		for _, t := range mine {
			if !covered(&t, theirs) && x.plan.Missing == 0 {
				e.keep = append(e.keep, t)
			}
		}
		e.news = !sameTurns(e.keep, mine)
		return nil
	}
	e.guests, e.news = fresh, len(fresh) > 0
	return nil
}

// beyond are the turns of theirs that are nowhere here.
func beyond(theirs, mine []turn.Turn, x *visit) ([]turn.Turn, error) {
	left := map[int]bool{}
	for i := range theirs {
		if !covered(&theirs[i], mine) {
			left[i] = true
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	for t, err := range x.mine(true) {
		if err != nil {
			return nil, err
		}
		for i := range left {
			if covers(&t, &theirs[i]) {
				delete(left, i)
			}
		}
	}
	var out []turn.Turn
	for i, t := range theirs {
		if left[i] {
			t.Origin = federate.Undecided(&t)
			out = append(out, t)
		}
	}
	return out, nil
}

func covered(t *turn.Turn, list []turn.Turn) bool {
	for i := range list {
		if covers(&list[i], t) {
			return true
		}
	}
	return false
}

// covers reports whether a says all that b does: b is the same turn, or what
// there was of it.
func covers(a, b *turn.Turn) bool {
	if a.Class != b.Class || a.TS != b.TS || !strings.HasPrefix(a.Text, b.Text) {
		return false
	}
	if b.ID != "" && a.ID != b.ID {
		return false
	}
	return (a.Tool == nil) == (b.Tool == nil) && (a.Tool == nil || a.Tool.Phase == b.Tool.Phase && a.Tool.CallID == b.Tool.CallID)
}

func sameTurns(a, b []turn.Turn) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !covers(&a[i], &b[i]) || !covers(&b[i], &a[i]) {
			return false
		}
	}
	return true
}
