package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/ingest"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/turn"
)

// Graft is a growth of a session by turns that come from other sessions
// rather than from a source.
type Graft struct {
	// ID, Meta and Format are those of a session that is not there yet. The
	// format decides by what a source that is read later finds its turns.
	ID     string
	Meta   session.Meta
	Format string
	// Turns are appended in order, and numbered on.
	Turns iter.Seq2[turn.Turn, error]
	// Tail are turns that may still change, after the others. They take the
	// place of those that the session has; nil keeps these.
	Tail []turn.Turn
	// Describe fills in what else the manifest says.
	Describe func(*session.Manifest)
	// Contract returns the contract to keep, given the one that stands in the
	// brief now; nil keeps that.
	Contract func(now render.Contract) render.Contract
	// Backup names a file beside the manifest that keeps the one before; ""
	// keeps none.
	Backup string
	// Bare leaves out the renders, unless the session has some.
	Bare bool
}

// Graft commits a revision of the session at loc with the turns of g in it. A
// session that is not there is made. The caller holds the session's lock and
// folds the index afterwards.
func (b *Builder) Graft(ctx context.Context, loc store.Location, g Graft) (*Result, error) {
	l, err := b.load(loc, nil)
	if errors.Is(err, fs.ErrNotExist) {
		l, err = b.fresh(loc, g.ID, g.Meta)
	}
	if err != nil {
		return nil, err
	}
	defer b.Forget(loc)
	r, err := b.graft(ctx, l, g)
	if err != nil && l.isNew() {
		_ = os.RemoveAll(l.dir)
	}
	return r, err
}

func (b *Builder) graft(ctx context.Context, l *loaded, g Graft) (*Result, error) {
	if l.isNew() {
		l.m.Format = g.Format
	}
	if l.rebuilt != nil && len(l.m.Sources) > 0 {
		return nil, damaged(l) // its source can tell more than is left here
	}
	j, err := store.OpenJournal(l.dir, l.marks, l.m)
	if err != nil {
		return nil, fault.New(fault.Integrity, "session %s is damaged: %w", l.m.Session, err).
			WithHint("build it from its source first")
	}
	defer j.Discard()
	contract := l.current()
	if g.Contract != nil {
		contract = g.Contract(contract)
	}
	w := writer{
		observer: observer{j: j, digest: l.digest.Clone(), l: l, bare: g.Bare && (l.isNew() || bare(l.m)) && contract.Block == ""},
		state:    l.state.Clone(),
	}
	w.state.Guests = true
	if err := w.begin(); err != nil {
		return nil, err
	}
	tail := g.Tail
	if tail == nil {
		if tail, err = l.undecidedTurns(); err != nil {
			return nil, err
		}
	}
	for t, err := range g.Turns {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = w.add(&t)
		}
		if err != nil {
			return nil, err
		}
	}
	j.Settle()
	settled := w.state.Clone()
	if err := w.Settled(); err != nil {
		return nil, err
	}
	for i := range tail {
		if err := w.add(&tail[i]); err != nil {
			return nil, err
		}
	}
	if w.state.Counts.Total() == 0 {
		return nil, fault.New(fault.NoTurns, "nothing to take over into %s", l.m.Session)
	}
	return b.grafted(ctx, l, &w, settled, len(tail), contract, g)
}

// grafted commits what was appended.
func (b *Builder) grafted(ctx context.Context, l *loaded, w *writer, settled *ingest.State, tail int, contract render.Contract, g Graft) (*Result, error) {
	var group safefile.Group
	defer group.Discard()
	committed, marks, err := w.j.Finish(&group)
	if err != nil {
		return nil, err
	}
	next := *l.m
	counts := w.state.Counts
	next.Schema = 1
	next.Meta = w.state.Meta
	next.Watermark = w.state.Watermark
	next.Revisions++
	next.UpdatedAt = StampTime(b.opt.Now())
	next.TurnCount = counts.Total()
	next.Counts = session.Counts{User: counts.User, Agent: counts.Agent, Thought: counts.Thought, Tool: counts.Tool}
	next.Provisional = tail
	next.Committed = committed
	next.EvidenceContractSHA256 = contract.SHA256
	if len(next.Sources) == 0 {
		timeline, _ := next.Artifact(store.TimelineName)
		next.RawSHA256 = timeline.SHA256
	}
	g.Describe(&next)
	settled.Meta = next.Meta
	if g.Backup != "" && !l.isNew() {
		if err := backUp(&group, l.dir, g.Backup); err != nil {
			return nil, err
		}
	}
	dir, err := b.land(ctx, &group, l, &next, landing{
		marks: marks, state: settled, decided: w.settled, end: w.digest, contract: contract, bare: w.bare,
	})
	if err != nil {
		return nil, err
	}
	if err := b.Index.Mark(ctx, l.loc); err != nil {
		return nil, err
	}
	now := &loaded{loc: l.loc, dir: dir, m: &next, end: w.digest, contract: contract}
	r := resultOf(b, now)
	r.Built, r.New, r.Repaired = true, next.TurnCount-l.m.TurnCount, l.repaired
	if w.bare || l.isNew() || payloadCurrent(dir, &next) {
		return r, nil
	}
	return r, b.writePayload(now)
}

// backUp adds a copy of the manifest as it is to the group.
func backUp(g *safefile.Group, dir, name string) error {
	raw, err := os.ReadFile(filepath.Join(dir, store.ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is what was lost
	}
	if err != nil {
		return fault.New(fault.Internal, "read manifest: %w", err)
	}
	return g.Replace(filepath.Join(dir, name), raw)
}

// undecidedTurns reads the turns that stand for an unfinished end.
func (l *loaded) undecidedTurns() ([]turn.Turn, error) {
	if l.isNew() || l.rebuilt != nil || l.m.Provisional == 0 {
		return nil, nil
	}
	return store.ReadTurnsFrom(l.dir, l.marks[0].Bytes, l.committed(store.TimelineName))
}

// writer appends turns that no source is read for.
type writer struct {
	observer
	state *ingest.State
	line  []byte
}

// begin writes again what was lost, and what a session has to have that gets
// its first renders.
func (w *writer) begin() error {
	l := w.l
	if l.rebuilt != nil {
		return l.rewrite(w.j)
	}
	if w.bare || l.isNew() || !bare(l.m) {
		return nil
	}
	for t, err := range store.Turns(l.dir, l.marks[0].Bytes) {
		if err != nil {
			return fmt.Errorf("read timeline: %w", err)
		}
		if t.Class != turn.ToolUse {
			continue
		}
		if err := w.tool(&t); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) add(t *turn.Turn) error {
	t.Seq = w.state.Next
	w.state.Readopt(t)
	w.line = store.AppendTurn(w.line[:0], t)
	if err := w.j.Turn(w.line, w.l.keyOf(t)); err != nil {
		return err
	}
	return w.Turn(t)
}
