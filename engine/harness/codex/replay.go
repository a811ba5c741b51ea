package codex

import (
	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// The bounds on comparing with a parent. Calls and thoughts of the parent are
// passed over freely, for a subagent's replay may leave them out; of other
// turns only few.
const (
	window       = 1024
	lookAhead    = 8
	maxLead      = 32
	maxLeadBytes = 256 << 10
)

// replay drops the leading turns that repeat another session's. Versions
// differ in whether they replay, what of it, and with which timestamps (B16,
// B17, B18), so only the content decides.
type replay struct {
	// Own says that a turn was this session's own, so that all are.
	Own     bool      `json:"own,omitempty"`
	Parents []*parent `json:"parents,omitempty"`
	// Lead are the turns so far when nothing but injected context has
	// matched: every session of a project starts with the same.
	Lead []lead `json:"lead,omitempty"`
	// Confirmed says that something said has matched.
	Confirmed bool `json:"confirmed,omitempty"`
}

// lead is a turn that waits for the first thing said.
type lead struct {
	Turn    turn.Turn `json:"turn"`
	Matched bool      `json:"matched,omitempty"`
}

// parent is a session that this one may repeat, read up to At.
type parent struct {
	ID string `json:"id"`
	At int    `json:"at,omitempty"`

	ahead []mark // of the turns from At on
	whole bool   // ahead reaches the parent's end
	known bool   // to the store
}

// mark stands for a parent's turn.
type mark struct {
	hash  uint64
	class turn.Class
}

// add names a session that may be repeated.
func (r *replay) add(id string) {
	if r.Own || id == "" {
		return
	}
	for _, p := range r.Parents {
		if p.ID == id {
			return
		}
	}
	r.Parents = append(r.Parents, &parent{ID: id})
}

// take judges a turn. It returns the turns that are this session's own and
// how many are inherited, now that this one has come.
func (r *replay) take(t turn.Turn, env harness.Env) (own []turn.Turn, inherited int) {
	if r.Own {
		return []turn.Turn{t}, 0
	}
	matched := r.matches(t, env)
	spoken := t.Class != turn.Other
	switch {
	case matched && spoken && !r.Confirmed:
		r.Confirmed = true
		inherited = 1
		for _, l := range r.Lead {
			if l.Matched {
				inherited++
			} else {
				own = append(own, l.Turn)
			}
		}
		r.Lead = nil
		return own, inherited
	case matched && r.Confirmed:
		return nil, 1
	case (matched || !spoken) && !r.Confirmed && r.known():
		r.Lead = append(r.Lead, lead{t, matched})
		if len(r.Lead) <= maxLead && r.leadBytes() <= maxLeadBytes {
			return nil, 0
		}
		return r.release(), 0
	}
	return append(r.release(), t), 0
}

// release makes everything this session's own.
func (r *replay) release() []turn.Turn {
	var own []turn.Turn
	for _, l := range r.Lead {
		own = append(own, l.Turn)
	}
	*r = replay{Own: true}
	return own
}

func (r *replay) leadBytes() int {
	n := 0
	for _, l := range r.Lead {
		n += len(l.Turn.Text)
	}
	return n
}

// known reports whether the store knows any parent.
func (r *replay) known() bool {
	for _, p := range r.Parents {
		if p.known {
			return true
		}
	}
	return false
}

// matches reports whether t is the next turn of a parent, and passes it.
func (r *replay) matches(t turn.Turn, env harness.Env) bool {
	for _, p := range r.Parents {
		p.fill(env)
		want := mark{plain.Hash(string(t.Class), t.Text), t.Class}
		passed := 0
		for i, m := range p.ahead {
			if m == want {
				p.At += i + 1
				p.ahead = p.ahead[i+1:]
				return true
			}
			if m.class != turn.ToolUse && m.class != turn.Thought {
				if passed++; passed > lookAhead {
					break
				}
			}
		}
	}
	return false
}

// fill reads the parent's next turns.
func (p *parent) fill(env harness.Env) {
	if p.whole || len(p.ahead) >= window/2 {
		return
	}
	turns, ok := env.Lookup(p.ID)
	p.known = ok
	if !ok {
		p.whole = true
		return
	}
	p.ahead = p.ahead[:0]
	n := 0
	for t := range turns {
		if n++; n <= p.At {
			continue
		}
		p.ahead = append(p.ahead, mark{plain.Hash(string(t.Class), t.Text), t.Class})
		if len(p.ahead) == window {
			return
		}
	}
	p.whole = true
}
