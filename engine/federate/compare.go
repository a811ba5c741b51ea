package federate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"strings"

	"handoffd/engine/turn"
)

// ID identifies a turn within the history that it was captured in: a hash of
// what it says and of everything before it. Two turns that say the same have
// different ids unless their histories are the same up to there, so that no
// turn is taken for another by its text.
type ID [16]byte

// originMark stands before the id in the origin of a turn that came from
// another history. Before it may stand the place that it had there.
const originMark = "@"

// Origin is the id as it stands in a timeline, behind a place, "" for none.
func (id ID) Origin(place string) string { return place + originMark + hex.EncodeToString(id[:]) }

// In returns the id that a turn has outside of its session.
func (id ID) In(session string) ID {
	h := sha256.New()
	h.Write(id[:])
	h.Write([]byte(session))
	return ID(h.Sum(nil)[:16])
}

// Undecided is the origin of a turn that has no place in a history yet.
func Undecided(t *turn.Turn) string { return next(ID{1}, t).Origin("") }

// Guest returns the id of a turn that came from another history; ok is false
// for one that was captured where it is.
func Guest(t *turn.Turn) (id ID, ok bool) {
	i := strings.LastIndex(t.Origin, originMark)
	if i < 0 {
		return id, false
	}
	raw, err := hex.DecodeString(t.Origin[i+len(originMark):])
	if err != nil || len(raw) != len(id) {
		return id, false
	}
	return ID(raw), true
}

// Tracer gives the turns of a session their ids, in order.
type Tracer struct{ last ID }

// ID returns the id of the next turn, and whether it was captured where it is.
func (r *Tracer) ID(t *turn.Turn) (id ID, native bool) {
	if id, ok := Guest(t); ok {
		return id, false
	}
	r.last = next(r.last, t)
	return r.last, true
}

// next returns the id of a turn after one with the id before.
func next(before ID, t *turn.Turn) ID {
	h := sha256.New()
	h.Write(before[:])
	part := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, s := range []string{t.TS, string(t.Class), t.Text, t.ID, t.Agent} {
		part(s)
	}
	if t.Tool != nil {
		part(string(t.Tool.Phase))
		part(t.Tool.CallID)
		part(t.Tool.Name)
	}
	return ID(h.Sum(nil)[:16])
}

// entry is a turn as an id.
type entry struct {
	id ID
	// native turns were captured here, the others came from elsewhere.
	native bool
	// record identifies the harness's record by its own id and time; zero
	// where it has not both.
	record ID
	// guest is the id under which it was taken over while it was undecided.
	guest ID
}

// History is the decided turns of a session as ids, in order.
type History struct {
	list  []entry
	trace Tracer
}

// Trace reads a history.
func Trace(turns iter.Seq2[turn.Turn, error]) (*History, error) {
	h := &History{}
	for t, err := range turns {
		if err != nil {
			return nil, err
		}
		h.add(&t)
	}
	return h, nil
}

func (h *History) add(t *turn.Turn) entry {
	var e entry
	e.id, e.native = h.trace.ID(t)
	e.guest = next(ID{1}, t)
	if t.ID != "" && t.TS != "" {
		e.record = next(ID{}, t)
	}
	h.list = append(h.list, e)
	return e
}

// Len is the number of turns.
func (h *History) Len() int { return len(h.list) }

// Plan is what another history adds to one.
type Plan struct {
	// Add holds for each turn of the other history whether it is missing.
	Add []bool
	// IDs are those of the other's turns.
	IDs []ID
	// Common counts the turns that both hold, Missing those that only the
	// other one does, Own those that only this one does.
	Common, Missing, Own int
	// Forward says that the other is this one and more, so that what is
	// added becomes part of this history and not a guest in it.
	Forward bool
}

// Compare says what other adds to h.
func (h *History) Compare(other *History) Plan {
	p := Plan{Add: make([]bool, len(other.list)), IDs: make([]ID, len(other.list))}
	mine, natives := map[ID]bool{}, 0
	for _, e := range h.list {
		mine[e.id] = true
		if e.native {
			natives++
		}
	}
	theirs := map[ID]bool{}
	for _, e := range other.list {
		theirs[e.id] = true
	}
	// What only one of both holds by its place in a history may still be the
	// same record of the harness, captured along another way.
	records := map[ID]int{}
	for _, e := range h.list {
		if !theirs[e.id] {
			p.Own++
			if e.record != (ID{}) {
				records[e.record]++
			}
		}
	}
	// Strayed says that the other's native turns are not simply more of ours:
	// some beyond them are here already, from elsewhere, and so the ids of
	// those after them would not be the same here.
	strayed, nth := false, 0
	for i, e := range other.list {
		p.IDs[i] = e.id
		if e.native {
			nth++
		}
		switch {
		case mine[e.id]:
			p.Common++
			strayed = strayed || e.native && nth > natives
		case mine[e.guest]:
			p.Common++
			strayed = true
		case e.record != (ID{}) && records[e.record] > 0:
			records[e.record]--
			p.Common++
			p.Own--
			strayed = true
		default:
			p.Add[i] = true
			p.Missing++
		}
	}
	p.Forward = p.Own == 0 && !strayed && h.nativesWithin(other)
	return p
}

// nativesWithin reports whether the native turns of h are those that the
// other one begins with.
func (h *History) nativesWithin(other *History) bool {
	n, last := 0, ID{}
	for _, e := range h.list {
		if e.native {
			n, last = n+1, e.id
		}
	}
	if n == 0 {
		return true
	}
	k := 0
	for _, e := range other.list {
		if !e.native {
			continue
		}
		if k++; k == n {
			return e.id == last
		}
	}
	return false
}
