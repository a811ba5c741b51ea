package codex

import (
	"slices"

	"handoffd/engine/turn"
)

// kind is what a record that may have a twin says.
type kind string

const (
	user       kind = "u"
	agent      kind = "a"
	reasoning  kind = "r"
	compaction kind = "k"
	search     kind = "w"
	call       kind = "t"
)

// origin is where the same may be said again: one bit each.
type origin uint8

const (
	fromEvent origin = 1 << iota // a legacy event
	fromItem                     // item_completed
	fromAll   = fromEvent | fromItem
)

// saying identifies what is said: a kind and a hash.
type saying struct {
	Kind kind   `json:"k"`
	Key  uint64 `json:"h"`
}

// said is something said once, with the origins that said it.
type said struct {
	saying
	From origin `json:"f,omitempty"`
}

// held is a place in the order of turns that waits: an event whose twin may
// follow, or decided turns behind one.
type held struct {
	Turns     []turn.Turn `json:"turns"`
	Undecided bool        `json:"undecided,omitempty"`
	said
}

func (h held) bytes() int {
	n := 0
	for _, t := range h.Turns {
		n += len(t.Text)
	}
	return n
}

// The bounds on what waits for the end of a Codex turn. Above them the oldest
// event is kept as its own; should its twin follow after all, that is dropped.
const (
	maxHeld      = 64
	maxHeldBytes = 256 << 10
	maxSaid      = 128
)

// twins decides which of two records that say the same is kept. An event is
// undecided until its twin comes or the turn ends; everything behind it waits,
// so that turns keep the order of their records.
type twins struct {
	Queue []held `json:"queue,omitempty"`
	// Said are the items of this Codex turn, for events that follow them.
	Said []said `json:"said,omitempty"`
	// Early are events that the bounds decided.
	Early []said `json:"early,omitempty"`
	// Last is the event of the record before, if that was one: a review
	// writes each of its events twice in a row.
	Last *saying `json:"last,omitempty"`
	// Fresh counts the Said at the end that are user messages after which
	// nothing was done yet; they belong to a turn that is about to start.
	Fresh int `json:"fresh,omitempty"`

	deliver func(turn.Turn)
}

// item takes a record that is kept. keys are the ways an event may say the
// same, the whole first.
func (w *twins) item(k kind, keys []uint64, turns ...turn.Turn) {
	from := make([]origin, len(keys))
	early := make([]bool, len(keys))
	for i, key := range keys {
		id := saying{k, key}
		w.Queue = slices.DeleteFunc(w.Queue, func(h held) bool {
			twin := h.Undecided && h.saying == id && from[i]&h.From == 0
			if twin {
				from[i] |= h.From
			}
			return twin
		})
		if j := slices.IndexFunc(w.Early, func(s said) bool { return s.saying == id }); j >= 0 {
			from[i] |= w.Early[j].From
			w.Early = slices.Delete(w.Early, j, j+1)
			early[i] = true
		}
	}
	if len(early) > 0 && (early[0] || len(early) > 1 && !slices.Contains(early[1:], false)) {
		turns = nil
	}
	w.drain()
	w.turns(turns...)
	for i, key := range keys {
		if from[i] == fromAll {
			continue
		}
		w.Said = append(w.Said, said{saying{k, key}, from[i]})
	}
	if n := len(w.Said) - maxSaid; n > 0 {
		w.Said = slices.Delete(w.Said, 0, n)
	}
	if k == user {
		w.Fresh += len(keys)
	} else {
		w.Fresh = 0
	}
}

// event takes a record that is kept only if no item says the same.
func (w *twins) event(k kind, key uint64, from origin, turns ...turn.Turn) {
	id := saying{k, key}
	if i := unsaid(w.Said, id, from); i >= 0 {
		if w.Said[i].From |= from; w.Said[i].From == fromAll {
			w.Said = slices.Delete(w.Said, i, i+1)
			w.Fresh = max(0, w.Fresh-1)
		}
		return
	}
	for i := range w.Queue {
		if h := &w.Queue[i]; h.Undecided && h.saying == id && h.From&from == 0 {
			h.From |= from
			return
		}
	}
	if i := unsaid(w.Early, id, from); i >= 0 {
		w.Early[i].From |= from
		return
	}
	w.Queue = append(w.Queue, held{Turns: turns, Undecided: true, said: said{id, from}})
	w.bound()
}

// turns takes decided turns.
func (w *twins) turns(turns ...turn.Turn) {
	if len(turns) == 0 {
		return
	}
	if len(w.Queue) == 0 {
		for _, t := range turns {
			w.deliver(t)
		}
		return
	}
	w.Queue = append(w.Queue, held{Turns: slices.Clone(turns)})
	w.bound()
}

// bound keeps the queue within its limits.
func (w *twins) bound() {
	total := 0
	for _, h := range w.Queue {
		total += h.bytes()
	}
	for len(w.Queue) > maxHeld || total > maxHeldBytes && len(w.Queue) > 0 {
		first := w.Queue[0]
		w.Early = append(w.Early, first.said)
		if len(w.Early) > maxSaid {
			w.Early = slices.Delete(w.Early, 0, 1)
		}
		w.Queue[0].Undecided = false
		w.drain()
		total = 0
		for _, h := range w.Queue {
			total += h.bytes()
		}
	}
}

// drain delivers what nothing undecided stands before.
func (w *twins) drain() {
	n := 0
	for n < len(w.Queue) && !w.Queue[n].Undecided {
		for _, t := range w.Queue[n].Turns {
			w.deliver(t)
		}
		n++
	}
	w.Queue = slices.Delete(w.Queue, 0, n)
}

// end decides everything: the Codex turn is over.
func (w *twins) end() {
	for i := range w.Queue {
		w.Queue[i].Undecided = false
	}
	w.drain()
	w.Said, w.Early, w.Fresh = nil, nil, 0
}

// start is end, but for a prompt that was written just before the record that
// starts its turn.
func (w *twins) start() {
	n := len(w.Queue)
	for n > 0 && w.Queue[n-1].Undecided && w.Queue[n-1].Kind == user {
		n--
	}
	for i := range n {
		w.Queue[i].Undecided = false
	}
	w.drain()
	w.Said = slices.Delete(w.Said, 0, max(0, len(w.Said)-w.Fresh))
	w.Early = nil
}

// repeated reports whether the event is that of the record before, and
// remembers it for the next.
func (w *twins) repeated(k kind, key uint64) bool {
	id := saying{k, key}
	again := w.Last != nil && *w.Last == id
	w.Last = &id
	return again
}

// unsaid returns the index of the first in list that is id and that from has
// not said yet, or -1.
func unsaid(list []said, id saying, from origin) int {
	return slices.IndexFunc(list, func(s said) bool { return s.saying == id && s.From&from == 0 })
}
