package ingest

import (
	"fmt"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/seal"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/turn"
)

// Observer learns of every turn that is appended, in order, and of the point
// from which they stand for an unfinished end.
type Observer interface {
	Turn(t *turn.Turn) error
	Settled() error
}

// Request is one reading of one source into one session.
type Request struct {
	Dir     string // of the session
	State   *State // decided so far; not changed
	Journal *store.Journal
	// Keys reads the keys of the captured turns when they are needed.
	Keys func() (*Keys, error)
	// IDs reads the record ids of the captured turns when they are needed.
	IDs func() (map[string]bool, error)
	// Undecided reads the turns that stand for the unfinished ends of the
	// session's sources as they were.
	Undecided func() ([]turn.Turn, error)
	Observer  Observer
	File      *File
	Format    harness.Format
	Env       harness.Env
	// LineBytes is the longest line read as a whole; 0 is the default.
	LineBytes int
	// Strict makes damage an error of kind fault.Unparsable.
	Strict bool
	// Follower, if not nil, is the one that read this source last.
	Follower *harness.Follower
}

// Result is what a reading came to.
type Result struct {
	// State is decided now; End is what it amounts to with the unfinished
	// end of the source included. Both are new values.
	State, End *State
	Source     int // index of the source
	New        int // turns appended, the unfinished end's included
	// Provisional counts the turns of the unfinished end.
	Provisional int
	// Changed is false when the source has nothing that State does not
	// know; nothing was appended then.
	Changed bool
	// Pending is how many bytes at the end of the source are undecided.
	Pending  int64
	Follower *harness.Follower
	// Keys are those of all turns, the unfinished end's included; nil when
	// they were not needed.
	Keys *Keys
}

// pass is one reading; it implements harness.Handler.
type pass struct {
	*Request
	st          *State // working copy
	index       int
	rereading   bool
	keys        *Keys
	seen        map[store.Key]int // of this pass, where turns are counted
	logged      map[store.Key]int
	ids         map[string]bool
	fragments   map[string]bool
	byID, own   bool
	settled     *State
	before      Source       // as it was, when it is read again
	meta        session.Meta // as it was before the pass
	fresh       int
	provisional int
	found       int // turns that are captured already
	line        []byte
}

// Run reads what is new in the source. The journal holds the appended bytes
// afterwards; the caller commits or discards it.
func Run(req Request) (*Result, error) {
	p := &pass{Request: &req, st: req.State.Clone()}
	rel, err := p.place()
	if err != nil {
		return nil, err
	}
	src := p.source()
	if rel == unchanged || rel == touched {
		return &Result{State: req.State, End: req.State, Source: p.index, Pending: src.Bytes - src.Cursor.Offset}, nil
	}
	traits := req.Format.Traits()
	p.byID, p.own = traits.Identity == harness.ByID, traits.OwnSeq && p.index == 0 && !p.st.Guests
	whole := traits.Container.Whole() || src.Rewritten && !p.byID
	if rel == other || whole {
		p.rereading = true
		if rel == other && src.Bytes > 0 && traits.Container != harness.Rows {
			src.Rewritten = true
		}
		src.Reread = false
		p.before = *src
		src.recount(&p.st.Meta)
		src.Cursor, src.Bytes, src.Hash, src.Fragment = harness.Cursor{}, 0, nil, nil
		req.Follower = nil
	}
	if p.index > 0 && rel == other {
		p.rereading = true
	}
	if err := p.loadKeys(); err != nil {
		return nil, err
	}
	if rel == other && p.before.Bytes > 0 && !traits.Container.Whole() {
		if err := p.promote(); err != nil {
			return nil, err
		}
	}
	if p.before.Bytes > 0 && traits.Container.Whole() {
		// A document that is torn is refused by the reading below.
		if err := p.promoteDeleted(); err != nil && !harness.Syntax(err) {
			return nil, err
		}
	}
	return p.read()
}

func (p *pass) source() *Source { return &p.st.Sources[p.index] }

// place finds the source of the state that the file continues, or adds one.
func (p *pass) place() (relation, error) {
	for i := range p.st.Sources {
		if o := &p.st.Sources[i]; o.Path == p.File.Path {
			p.index = i
			if o.Reread {
				return other, nil
			}
			return p.File.compare(o)
		}
	}
	scope := len(p.st.Sources)
	for i := range p.st.Sources {
		o := &p.st.Sources[i]
		if o.Format != p.Format.Traits().Key {
			continue
		}
		like, err := p.File.startsLike(o)
		if err != nil {
			return other, err
		}
		if !like {
			continue
		}
		rel, err := p.File.compare(o)
		if err != nil {
			return other, err
		}
		if rel == grown || rel == touched { // moved, copied or compressed
			p.index = i
			p.File.stamp(o)
			return rel, nil
		}
		scope = o.Scope
	}
	p.index = len(p.st.Sources)
	p.st.Sources = append(p.st.Sources, Source{Path: p.File.Path, Format: p.Format.Traits().Key, Scope: scope})
	return other, nil
}

func (p *pass) loadKeys() error {
	p.keys = &Keys{}
	if p.State.Counts.Total() == 0 || !p.byID && !p.rereading {
		return nil
	}
	var err error
	if p.keys, err = p.Request.Keys(); err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	if p.rereading && !p.byID {
		p.logged, p.seen = p.keys.counts(), map[store.Key]int{}
	}
	if p.rereading && p.byID {
		if p.ids, err = p.IDs(); err != nil {
			return fmt.Errorf("read record ids: %w", err)
		}
	}
	return nil
}

func (p *pass) read() (*Result, error) {
	src := p.source()
	from := src.Cursor.Offset
	r, err := p.File.content(from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h, err := seal.RestoreHash(src.Hash)
	if err != nil {
		return nil, fault.New(fault.Integrity, "source hash: %w", err)
	}
	hashing := newHashingReader(r, h, src.Bytes-from)
	defer hashing.Close()
	f := p.Follower
	if f == nil {
		f = &harness.Follower{Format: p.Format, Env: p.Env, LineBytes: p.LineBytes}
	}
	p.meta = p.st.Meta
	if err := f.Pass(hashing, src.Cursor, &p.st.Meta, p); err != nil {
		if p.Format.Traits().Container == harness.Document && harness.Syntax(err) {
			// A file that is rewritten as a whole is met half written.
			return nil, fault.New(fault.NoTurns, "no usable turns parsed from %s: the document is not whole", p.File.Path)
		}
		return nil, err
	}
	if p.settled == nil {
		return nil, fmt.Errorf("source of %s was never settled", p.Format.Traits().Key)
	}
	hashing.Close()
	res := &Result{
		State: p.settled, End: p.st, Source: p.index, New: p.fresh,
		Provisional: p.provisional, Changed: true, Follower: f,
	}
	if p.byID {
		res.Keys = p.keys
	}
	for _, st := range []*State{p.settled, p.st} {
		o := &st.Sources[p.index]
		o.Bytes, o.Hash = from+hashing.n, h.Save()
		if err := p.File.identify(o); err != nil {
			return nil, err
		}
	}
	o := &p.settled.Sources[p.index]
	if !p.Format.Traits().Container.Whole() {
		res.Pending = o.Bytes - o.Cursor.Offset
	}
	return res, nil
}

// identify notes what identifies the content read of o.
func (s *File) identify(o *Source) (err error) {
	s.stamp(o)
	if want := min(o.Bytes, identifying); o.HeadBytes != want || o.Head == "" {
		o.HeadBytes = want
		if o.Head, _, err = s.sumRange(0, want); err != nil {
			return err
		}
	}
	if s.zst {
		o.Tail = ""
		return nil
	}
	o.Tail, _, err = s.sumRange(max(0, o.Bytes-identifying), o.Bytes)
	return err
}

// Unit implements harness.Handler.
func (p *pass) Unit(out *harness.Out, at harness.Position) error {
	if out.Meta != &p.st.Meta && p.settled == nil {
		p.st.Meta = *out.Meta
	}
	src := p.source()
	if out.Unknown != "" && p.settled == nil {
		kept, err := p.quarantine(harness.Fragment{Offset: at.Offset, Raw: out.Unit, Reason: harness.ReasonUnknown})
		if err != nil {
			return err
		}
		if kept {
			src.Unknown++
		}
	}
	if out.Flagged && p.settled == nil && !p.rereading {
		src.Flagged++
	}
	for i := range out.Turns {
		if err := p.turn(&out.Turns[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) turn(t *turn.Turn) error {
	t.Source = p.index
	scope := -1
	if p.Format.Traits().Identity == harness.BySource {
		scope = p.source().Scope
	}
	k := store.KeyOf(t, p.byID, scope)
	if p.captured(t, k) {
		p.found++
		return nil
	}
	if p.ids != nil && t.ID != "" && t.Mark == "" && p.ids[t.ID] {
		t.Mark = "conflict"
	}
	return p.admit(t, k)
}

// captured reports whether the turn is in the timeline already.
func (p *pass) captured(t *turn.Turn, k store.Key) bool {
	if p.byID && (t.ID != "" || t.TS != "") {
		return p.keys.has(k)
	}
	if !p.rereading {
		return false
	}
	if p.seen == nil { // by id, but this turn has neither id nor time
		p.logged, p.seen = p.keys.counts(), map[store.Key]int{}
	}
	p.seen[k]++
	return p.seen[k] <= p.logged[k]
}

// Reject implements harness.Handler.
func (p *pass) Reject(f harness.Fragment) error {
	if p.Strict {
		return unparsable(f.Offset, f.Reason)
	}
	kept, err := p.quarantine(f)
	if kept {
		p.source().Quarantined++
	}
	return err
}

// Torn implements harness.TornEnd.
func (p *pass) Torn(_ []byte, offset int64) error {
	if p.Strict {
		return unparsable(offset, harness.ReasonTorn)
	}
	return nil
}

func unparsable(offset int64, reason string) error {
	return fault.New(fault.Unparsable, "refusing to continue: %s at byte %d", reason, offset).
		WithHint("leave out --strict to keep the damage in quarantine and go on")
}

// Settled implements harness.Handler.
func (p *pass) Settled(cur harness.Cursor, out *harness.Out) error {
	src := p.source()
	src.Cursor = cur
	src.account(&p.meta, &p.st.Meta)
	if p.rereading {
		src.keepLarger(p.before, &p.st.Meta)
	}
	if p.Format.Traits().Container == harness.Rows && p.found < p.State.Counts.Total() {
		// That rows change is what they do; that some are gone is not.
		src.Rewritten = true
	}
	p.settled = p.st.Clone()
	p.Journal.Settle()
	out.Meta = &p.st.Meta
	if err := p.Observer.Settled(); err != nil {
		return err
	}
	return p.keep()
}

// New returns the state of a session of which nothing is captured.
func New(meta session.Meta) *State { return &State{Meta: meta} }
