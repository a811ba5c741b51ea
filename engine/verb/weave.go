package verb

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"strconv"
	"strings"
	"time"

	"handoffd/engine/federate"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/turn"
)

// weave puts the turns of two sessions in one order.
type weave struct {
	parts [2]part
	// have are the turns merged before, by place and content.
	have map[mark]int
	// records counts the records of the first part, and of what was merged
	// from elsewhere, by their own id and time.
	records map[mark]int
}

// mark identifies a turn by some of what it says.
type mark [16]byte

func markOf(parts ...string) mark {
	h := sha256.New()
	for _, s := range parts {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return mark(h.Sum(nil)[:16])
}

func content(t *turn.Turn) []string {
	out := []string{t.TS, string(t.Class), t.Text}
	if t.Tool != nil {
		out = append(out, string(t.Tool.Phase), t.Tool.CallID)
	}
	return out
}

// placed identifies a merged turn: by its id in the history that it comes from,
// so that it counts once whichever way it came.
func placed(t *turn.Turn) mark {
	id, _ := federate.Guest(t)
	return mark(id)
}

// recordOf identifies a turn by the harness's own id and time; ok is false for
// one that lacks either. Text alone never makes two turns one.
func recordOf(t *turn.Turn) (m mark, ok bool) {
	if t.ID == "" || t.TS == "" {
		return m, false
	}
	return markOf(append(content(t), t.ID)...), true
}

// alreadyMerged reads what an earlier merge holds, undecided turns aside.
func alreadyMerged(s store.Store, loc store.Location, m *session.Manifest) (map[mark]int, error) {
	have := map[mark]int{}
	if m == nil {
		return have, nil
	}
	p := part{dir: s.SessionDir(loc.Project, loc.Dir), m: m}
	for t, err := range p.captured(true) {
		if err != nil {
			return nil, err
		}
		have[placed(&t)]++
	}
	return have, nil
}

// captured iterates the turns of a part as they are: those that are decided, or
// those that are not.
func (p *part) captured(decided bool) iter.Seq2[turn.Turn, error] {
	return func(yield func(turn.Turn, error) bool) {
		n, end := 0, p.m.TurnCount-p.m.Provisional
		for t, err := range store.Turns(p.dir, p.timeline().Bytes) {
			if n++; err != nil || (n <= end) == decided {
				if !yield(t, err) || err != nil {
					return
				}
			}
		}
	}
}

// each iterates the turns of a part, with their places; decided says which.
func (p *part) each(decided bool) iter.Seq2[turn.Turn, error] {
	return func(yield func(turn.Turn, error) bool) {
		n, end := 0, p.m.TurnCount-p.m.Provisional
		var trace federate.Tracer
		for t, err := range store.Turns(p.dir, p.timeline().Bytes) {
			if err != nil {
				yield(t, err)
				return
			}
			id, _ := trace.ID(&t)
			if n++; (n <= end) != decided {
				continue
			}
			if !strings.Contains(t.Origin, "#") {
				t.Origin = id.In(p.m.Session).Origin(p.place(t.Seq))
			}
			t.Source = 0
			if t.Session == "" && p.m.Session != "" {
				t.Session = p.m.Session
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// shared notes the records of the first part, so that those which the second
// holds too are taken once.
func (w *weave) shared() error {
	w.records = map[mark]int{}
	for _, decided := range []bool{true, false} {
		for t, err := range w.parts[0].each(decided) {
			if err != nil {
				return err
			}
			if m, ok := recordOf(&t); ok {
				w.records[m]++
			}
		}
	}
	return nil
}

// known reports whether a turn is merged already or stands in the other part.
func (w *weave) known(t *turn.Turn, from int) bool {
	m := placed(t)
	if w.have[m] > 0 {
		w.have[m]--
		return true
	}
	if from == 1 {
		if m, ok := recordOf(t); ok && w.records[m] > 0 {
			w.records[m]--
			return true
		}
	}
	return false
}

// turns iterates the decided turns that are not merged yet, by time. Within a
// part nothing changes its order: a turn without a time, or with one before
// its neighbour's, goes with that neighbour.
func (w *weave) turns() iter.Seq2[turn.Turn, error] {
	return func(yield func(turn.Turn, error) bool) {
		var heads [2]head
		for i := range heads {
			next, stop := iter.Pull2(w.parts[i].each(true))
			defer stop()
			heads[i].next = next
			heads[i].advance()
		}
		// A part may be a merge that the other one is in: what it brought
		// from there counts once.
		var given [2]map[mark]int
		given[0], given[1] = map[mark]int{}, map[mark]int{}
		for {
			i := 0
			if !heads[0].ok || heads[1].ok && heads[1].at.Before(heads[0].at) {
				i = 1
			}
			h := &heads[i]
			if !h.ok {
				return
			}
			if h.err != nil {
				yield(h.t, h.err)
				return
			}
			t := h.t
			h.advance()
			m := placed(&t)
			if given[1-i][m] > 0 {
				given[1-i][m]--
				continue
			}
			given[i][m]++
			if w.known(&t, i) {
				continue
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// tail are the undecided turns of both parts.
func (w *weave) tail() ([]turn.Turn, error) {
	out := []turn.Turn{}
	for i := range w.parts {
		for t, err := range w.parts[i].each(false) {
			if err != nil {
				return nil, err
			}
			if !w.known(&t, i) {
				out = append(out, t)
			}
		}
	}
	return out, nil
}

// head is the next turn of a part.
type head struct {
	next func() (turn.Turn, error, bool)
	t    turn.Turn
	err  error
	ok   bool
	at   time.Time // never before that of an earlier turn
}

func (h *head) advance() {
	h.t, h.err, h.ok = h.next()
	if at, ok := timeOf(h.t.TS); ok && at.After(h.at) {
		h.at = at
	}
}

// later returns the later of two times as harnesses write them.
func later(a, b string) string {
	ta, okA := timeOf(a)
	tb, okB := timeOf(b)
	if !okA || okB && tb.After(ta) {
		return b
	}
	return a
}

// timeLayouts are the forms of time that transcripts have, besides numbers.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02"}

// timeOf reads a time as a harness wrote it; one without a zone counts as UTC.
// A number is seconds since 1970, or milliseconds where seconds would be after
// the year 5000.
func timeOf(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n <= 0 || n > 1e17 {
		return time.Time{}, false
	}
	for n > 1e11 {
		n /= 1e3
	}
	return time.Unix(int64(n), int64((n-float64(int64(n)))*1e9)).UTC(), true
}
