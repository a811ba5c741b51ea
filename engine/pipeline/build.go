package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/all"
	"handoffd/engine/index"
	"handoffd/engine/ingest"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/turn"
)

// Request is one build. Only Source is required.
type Request struct {
	Source                   string
	Session, Project         string
	Harness, Model           string
	Objective                string
	ForceHarness, ForceModel bool
	// Strict refuses damage: fault.Unparsable, and nothing is written.
	Strict bool
	// LazyPayload leaves the full payload of a large session to
	// RefreshPayload.
	LazyPayload bool
	// Key is the change key of a session of a bundle that was just listed; ""
	// lets the bundle be asked.
	Key string

	depth int // of sessions that wait for their origin
}

// maxDepth bounds a chain of sessions that each begin with the one before.
const maxDepth = 8

// Result is what a build came to.
type Result struct {
	Session  string
	Project  string
	Dir      string // absolute
	Location store.Location
	// Built is false when there was nothing new.
	Built     bool
	Turns     int
	New       int
	Revision  int
	Watermark int64
	// Repaired says what was lost or damaged and was made again.
	Repaired []string
	// CrossLinks counts the notes written for other projects.
	CrossLinks int
	// Suggest is a name for a session that has none, "" otherwise.
	Suggest     string
	Quarantined int
	NewDamage   int
	// PayloadStale says that RefreshPayload is due.
	PayloadStale bool
	// Pending is how many bytes at the end of the source wait for more.
	Pending int64
}

// Build captures what is new in a source. The error is fault.SourceMissing,
// fault.Locked, fault.NoTurns (nothing is left behind), fault.Unsupported,
// fault.Unparsable with Strict, or one of the disk.
func (b *Builder) Build(ctx context.Context, req Request) (*Result, error) {
	f, err := ingest.OpenKeyed(req.Source, req.Key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if f.Bundled() {
		return nil, bundled(req.Source)
	}
	l, t, lock, err := b.acquire(ctx, f, req)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if i, ok := sourceIndex(l.state, f.Path); ok && f.Keyed(&l.state.Sources[i]) {
		return b.build(ctx, l, f, t, req) // it need not be asked again
	}
	// While we waited for the session others may have read more of the
	// source than it had when we opened it.
	now, err := ingest.Open(req.Source)
	if err != nil {
		return nil, err
	}
	_ = f.Close()
	f = now
	return b.build(ctx, l, f, t, req)
}

func bundled(path string) error {
	return fault.New(fault.Usage, "%s holds many sessions", path).WithHint("name one: %s", harness.Join(path, "ID"))
}

// acquire finds the session of a source, locks and loads it.
func (b *Builder) acquire(ctx context.Context, f *ingest.File, req Request) (*loaded, target, *safefile.Lock, error) {
	if req.Session == "" && req.Project == "" {
		if l, t, lock, err := b.acquireKnown(ctx, f, req); l != nil || err != nil {
			return l, t, lock, err
		}
	}
	t, err := b.identify(f, req)
	if err != nil {
		return nil, t, nil, err
	}
	b.originFirst(ctx, t, req)
	lock, err := b.Lock(ctx, t.id)
	if err != nil {
		return nil, t, nil, err
	}
	taken := false
	defer func() { // whatever happens, it does not stay behind
		if !taken {
			_ = lock.Release()
		}
	}()
	l, err := b.settled(ctx, f, t)
	if err != nil {
		return nil, t, nil, err
	}
	taken = true
	return l, t, lock, nil
}

// settled finds and loads the session of a source, or makes it ready to be
// built. The caller holds its lock.
func (b *Builder) settled(ctx context.Context, f *ingest.File, t target) (l *loaded, err error) {
	loc, exists, err := b.locate(t, f.Path)
	if err != nil {
		return nil, err
	}
	if t.unknown != nil && !exists {
		return nil, t.unknown
	}
	if exists {
		l, err = b.load(loc, t.format)
		if err == nil && l.undecided() && !t.fixed && t.unknown == nil && loc.Project != t.project {
			l, err = b.settleIn(ctx, l, t.project)
		}
	}
	if !exists || errors.Is(err, fs.ErrNotExist) {
		l, err = b.fresh(loc, t.id, t.meta)
	}
	return l, err
}

// originFirst captures the session that this one begins with the turns of, if
// neither is captured yet and its source is known: the replayed turns are then
// recognised. That it fails costs only this: they are captured twice.
func (b *Builder) originFirst(ctx context.Context, t target, req Request) {
	if t.origin == "" || t.origin == t.id || b.opt.Origin == nil || req.depth >= maxDepth {
		return
	}
	for _, id := range []string{t.origin, t.id} {
		if found, err := b.Index.ByID(id); err != nil || len(found) > 0 {
			return
		}
	}
	if path, ok := b.opt.Origin(t.origin); ok {
		_, _ = b.Build(ctx, Request{Source: path, LazyPayload: true, depth: req.depth + 1})
	}
}

// undecided reports whether nothing that is committed is decided, so that
// even the project is a guess.
func (l *loaded) undecided() bool { return l.rebuilt == nil && l.m.Provisional == l.m.TurnCount }

// settleIn moves an undecided session to the project that its source names by
// now, unless another session is there.
func (b *Builder) settleIn(ctx context.Context, l *loaded, project string) (*loaded, error) {
	to := store.Location{Project: project, Dir: l.loc.Dir}
	dir := b.Store.SessionDir(to.Project, to.Dir)
	if _, err := os.Lstat(dir); err == nil {
		return l, nil
	}
	for _, loc := range []store.Location{l.loc, to} {
		if err := b.Index.Mark(ctx, loc); err != nil {
			return nil, err
		}
	}
	if err := safefile.MakeDir(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if _, err := b.Revise(ctx, l.loc, to, func(m *session.Manifest) { m.Project = project }); err != nil {
		return nil, err
	}
	return b.load(to, nil)
}

// acquireKnown is acquire for a source that this process built before. It
// returns nothing when that does not hold any more.
func (b *Builder) acquireKnown(ctx context.Context, f *ingest.File, req Request) (*loaded, target, *safefile.Lock, error) {
	loc, ok := b.knownPath(f.Path)
	if !ok {
		return nil, target{}, nil, nil
	}
	known := b.remembered(loc)
	if known == nil {
		return nil, target{}, nil, nil
	}
	lock, err := b.Lock(ctx, known.m.Session)
	if err != nil {
		return nil, target{}, nil, err
	}
	taken := false
	defer func() {
		if !taken {
			_ = lock.Release()
		}
	}()
	l, err := b.load(loc, nil)
	if err == nil && !l.undecided() {
		for _, s := range l.state.Sources {
			if format, ok := all.ByKey(s.Format); ok && s.Path == f.Path {
				taken = true
				return l, target{id: l.m.Session, format: format, project: loc.Project}, lock, nil
			}
		}
	}
	b.Forget(loc)
	return nil, target{}, nil, nil
}

// build runs one build of a locked session.
func (b *Builder) build(ctx context.Context, l *loaded, f *ingest.File, t target, req Request) (*Result, error) {
	if i, ok := sourceIndex(l.state, f.Path); ok {
		// A source keeps its format while it grows.
		if format, ok := all.ByKey(l.state.Sources[i].Format); ok {
			t.format = format
		}
	}
	if t.format == nil {
		return nil, t.unknown
	}
	j, err := store.OpenJournal(l.dir, l.marks, l.m)
	if err != nil {
		if l, err = b.salvage(l.loc, l.dir, l.m, t.format, err.Error()); err != nil {
			return nil, err
		}
		if j, err = store.OpenJournal(l.dir, l.marks, l.m); err != nil {
			return nil, err
		}
	}
	defer j.Discard()
	if l.rebuilt != nil {
		if err := l.rewrite(j); err != nil {
			return nil, err
		}
	}
	obs := &observer{j: j, digest: l.digest.Clone(), l: l}
	index, _ := sourceIndex(l.state, f.Path)
	res, err := ingest.Run(ingest.Request{
		Dir: l.dir, State: l.state, Journal: j, Keys: l.keys, IDs: l.ids, Observer: obs,
		File: f, Format: t.format, LineBytes: b.opt.LineBytes, Strict: req.Strict,
		Env:       b.env(f),
		Follower:  l.followers[index],
		Undecided: l.undecidedTurns,
	})
	if err != nil {
		if l.isNew() {
			_ = os.RemoveAll(l.dir)
		}
		b.Forget(l.loc)
		return nil, err
	}
	if res.End.Counts.Total() == 0 {
		if l.isNew() {
			_ = os.RemoveAll(l.dir)
		}
		return nil, noTurns(req.Source, res)
	}
	c := commit{b: b, l: l, j: j, res: res, obs: obs, req: req, t: t}
	r, err := c.run(ctx)
	if err != nil {
		b.Forget(l.loc) // its keys are ahead of what is committed
	}
	return r, err
}

func sourceIndex(s *ingest.State, path string) (int, bool) {
	for i := range s.Sources {
		if s.Sources[i].Path == path {
			return i, true
		}
	}
	return len(s.Sources), false
}

func noTurns(path string, res *ingest.Result) error {
	s := res.State.Sources[res.Source]
	if s.Quarantined > 0 {
		return fault.New(fault.NoTurns, "no usable turns parsed from %s: %d damaged piece(s)", path, s.Quarantined)
	}
	return fault.New(fault.NoTurns, "no usable turns parsed from %s", path)
}

// observer feeds appended turns to the folds and to TOOLS.md.
type observer struct {
	bare    bool // without TOOLS.md
	j       *store.Journal
	l       *loaded
	digest  *render.Digest // working fold
	settled *render.Digest // at the decided point
}

// Turn implements ingest.Observer.
func (o *observer) Turn(t *turn.Turn) error {
	o.digest.Add(t)
	if t.Class != turn.ToolUse || o.bare {
		return nil
	}
	return o.tool(t)
}

func (o *observer) tool(t *turn.Turn) error {
	if o.j.ToolBytes() == 0 {
		if err := o.j.Tool(render.ToolsHeader(o.l.m)); err != nil {
			return err
		}
	}
	return o.j.Tool(render.ToolEntry(t))
}

// Settled implements ingest.Observer.
func (o *observer) Settled() error {
	o.settled = o.digest
	o.digest = o.settled.Clone()
	return nil
}

// turnsOf answers what a decoder asks about another session.
func (b *Builder) turnsOf(id string) (iter.Seq[turn.Turn], bool) {
	entries, err := b.Index.ByID(id)
	if err != nil || len(entries) == 0 {
		return nil, false
	}
	dir := b.Store.SessionDir(entries[0].Project, entries[0].ID)
	m, _, err := store.ReadManifest(dir)
	if err != nil {
		return nil, false
	}
	a, _ := m.Artifact(store.TimelineName)
	return func(yield func(turn.Turn) bool) {
		for t, err := range store.Turns(dir, a.Bytes) {
			if err != nil || !yield(t) {
				return
			}
		}
	}, true
}

// linkFork notes that a session continues another's history: a harness that
// forks copies the records, ids and all, without saying from where.
func (b *Builder) linkFork(l *loaded, m *session.Manifest, st *ingest.State) error {
	meta := &st.Meta
	if meta.FirstID == "" || meta.Kind == "subagent" || meta.Kind == "warmup" {
		return nil
	}
	if meta.ForkedFrom == "" {
		if !l.isNew() && meta.Kind != "fork" {
			return nil
		}
		same, err := b.Index.Where(func(e *index.Entry) bool { return e.FirstID == meta.FirstID })
		if err != nil {
			return err
		}
		for _, e := range same {
			if e.UUID == m.Session || e.ForkedFrom == m.Session {
				continue
			}
			if meta.Kind == "fork" || e.Kind != "fork" && e.LastTS <= meta.LastTS {
				meta.ForkedFrom = e.UUID
				break
			}
		}
		if meta.ForkedFrom == "" {
			return nil
		}
		if meta.Kind == "" {
			meta.Kind = "fork"
		}
	}
	return nil
}

// inherited counts the leading turns that a fork shares with its origin.
func (b *Builder) inherited(dir string, m *session.Manifest, bytes int64) int {
	found, err := b.Index.ByID(m.Meta.ForkedFrom)
	if err != nil || len(found) == 0 {
		return m.Meta.Inherited
	}
	origin := found[0]
	ids := map[string]bool{}
	for t, err := range store.Turns(b.Store.SessionDir(origin.Project, origin.ID), -1) {
		if err != nil {
			return m.Meta.Inherited
		}
		if t.ID != "" {
			ids[t.ID] = true
		}
	}
	n := 0
	for t, err := range store.Turns(dir, bytes) {
		if err != nil || !ids[t.ID] {
			break
		}
		n++
	}
	return n
}

// absolute makes a path absolute as far as that goes.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
