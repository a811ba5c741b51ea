package verb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/federate"
	"handoffd/engine/harness/all"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/redact"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/turn"
	"handoffd/engine/verify"
)

// Federation is an import of other stores' sessions.
type Federation struct {
	DryRun bool
	// Redact takes credentials out of what is imported.
	Redact bool
	Now    time.Time
	// Progress is told of each session that is looked at; nil is nobody.
	Progress func(root string, done, total int)
}

// Imported is a session that was taken over, or would be.
type Imported struct {
	Root, Project, Session string
	Action                 string // import or update
	Turns, New             int
	ManifestSHA256         string
	Verified               bool
}

// The actions of an import.
const (
	ActionImport = "import"
	ActionUpdate = "update"
)

// Conflict is a session that had turns on both sides which the other had not.
type Conflict struct {
	Root, Project, Session string
	Common, Own, Missing   int
	Contract               bool
}

// NotImported is a root or a session that could not be imported, and why.
type NotImported struct {
	Root, Project, Session string
	Err                    error
}

// Federated is what an import came to.
type Federated struct {
	Imported  []Imported
	Skipped   int
	Failed    []NotImported
	Conflicts []Conflict
}

// backupName is the manifest of a session before an import changed it.
const backupName = "manifest.json.bak-federated"

// Import takes over the sessions of another store: those that are not here, and
// of the others the turns that are missing. Nothing that is here is replaced.
// A session that cannot be imported costs only itself; the error is one of the
// root, or of this store.
func (f *Federated) Import(ctx context.Context, b *pipeline.Builder, root *federate.Root, q Federation) error {
	if root.Same(b.Store.Root) {
		return fault.New(fault.Usage, "that is this store itself")
	}
	list, refused, err := root.Sessions()
	for _, r := range refused {
		f.fail(root, r.Location, "", r.Err)
	}
	if err != nil {
		return err
	}
	for i, l := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if q.Progress != nil {
			q.Progress(root.Name, i, len(list))
		}
		s, err := root.Session(l)
		if err != nil {
			f.fail(root, l, "", err)
			continue
		}
		x := &visit{f: f, b: b, root: root, s: s, q: q}
		if err := x.run(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f.fail(root, l, s.Manifest.Session, err)
		}
	}
	if len(f.Imported) == 0 || q.DryRun {
		return nil
	}
	_, err = b.FoldIndex(ctx, true)
	return err
}

func (f *Federated) fail(root *federate.Root, l store.Location, session string, err error) {
	if session == "" {
		session = l.Dir
	}
	f.Failed = append(f.Failed, NotImported{root.Name, l.Project, session, err})
}

// visit is the import of one session.
type visit struct {
	f    *Federated
	b    *pipeline.Builder
	root *federate.Root
	s    *federate.Session
	q    Federation

	loc  store.Location
	m    *session.Manifest // of the session here, nil when there is none
	dir  string
	plan federate.Plan
	tail tails
}

func (x *visit) run(ctx context.Context) error {
	if !x.q.DryRun {
		lock, err := x.b.Lock(ctx, x.s.Manifest.Session)
		if err != nil {
			return err
		}
		defer lock.Release()
	}
	if err := x.find(); err != nil {
		return err
	}
	if x.known() {
		x.f.Skipped++
		return nil
	}
	if err := x.compare(); err != nil {
		return err
	}
	contract, disputed := x.contract()
	if x.m != nil && x.plan.Missing == 0 && !x.tail.news && contract == nil && !disputed {
		x.f.Skipped++
		return nil
	}
	done := Imported{
		Root: x.root.Name, Project: x.loc.Project, Session: x.s.Manifest.Session, Action: ActionImport,
		Turns: x.s.Manifest.TurnCount, New: x.plan.Missing + len(x.tail.guests),
	}
	if x.m != nil {
		done.Action, done.Turns = ActionUpdate, x.m.TurnCount+x.plan.Missing+len(x.tail.guests)
	} else {
		done.New = x.s.Manifest.TurnCount
	}
	if !x.q.DryRun {
		r, err := x.graft(ctx, contract, disputed)
		if err != nil {
			return err
		}
		done.Turns, done.New = r.Turns, r.New
		rep, err := verify.Session(ctx, x.b.Store, x.loc)
		if err == nil && !rep.OK {
			err = fault.New(fault.Integrity, "verify after the import: %s", rep.Reason)
		}
		if err != nil {
			return err
		}
		done.Verified = true
		if m, _, err := store.ReadManifest(x.b.Store.SessionDir(x.loc.Project, x.loc.Dir)); err == nil {
			done.ManifestSHA256 = m.ManifestSHA256
		}
	}
	x.f.Imported = append(x.f.Imported, done)
	if x.m != nil && (x.plan.Missing > 0 && x.plan.Own > 0 || disputed) {
		x.f.Conflicts = append(x.f.Conflicts, Conflict{
			Root: x.root.Name, Project: x.loc.Project, Session: x.s.Manifest.Session,
			Common: x.plan.Common, Own: x.plan.Own, Missing: x.plan.Missing, Contract: disputed,
		})
	}
	return nil
}

// find looks for the session here: by its id in the same project, or by an id
// that only one session has.
func (x *visit) find() error {
	theirs := x.s.Manifest
	project := store.Slug(theirs.Project)
	if project == "" {
		project = store.Slug(x.s.Project)
	}
	if project == "" {
		project = "unsorted"
	}
	same, err := x.b.Index.ByID(theirs.Session)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(same, func(e index.Entry) bool { return e.Project == project })
	if at < 0 && len(same) == 1 && unique(theirs.Session) {
		at = 0
	}
	if at < 0 { // moved to another project on one side
		at = slices.IndexFunc(same, func(e index.Entry) bool {
			m, _, err := store.ReadManifest(x.b.Store.SessionDir(e.Project, e.ID))
			return err == nil && m.CreatedAt == theirs.CreatedAt
		})
	}
	if at < 0 {
		x.loc, err = x.b.Place(project, x.s.Dir, theirs.Session)
		return err
	}
	x.loc = same[at].Location()
	x.dir = x.b.Store.SessionDir(x.loc.Project, x.loc.Dir)
	if !x.q.DryRun {
		if err := x.b.Recover(x.loc); err != nil {
			return err
		}
	}
	m, raw, err := store.ReadManifest(x.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the session here: %w", err)
	}
	if err := session.Sealed(raw); err != nil {
		return fmt.Errorf("the session here: %w", err)
	}
	x.m = m
	return nil
}

// unique reports whether an id is one that no two sessions have by chance.
func unique(id string) bool { return len(id) >= 32 }

// known reports whether exactly this was imported before, or is what is here.
func (x *visit) known() bool {
	if x.m == nil {
		return false
	}
	mine, _ := x.m.Artifact(store.TimelineName)
	if mine.SHA256 == x.s.Sum && x.m.EvidenceContractSHA256 == x.s.Contract.SHA256 {
		return true
	}
	for _, in := range x.m.Imported {
		if in.TimelineSHA256 == x.s.Sum && in.ContractSHA256 == x.s.Contract.SHA256 {
			return true
		}
	}
	return false
}

func (x *visit) compare() error {
	theirs, err := federate.Trace(x.s.Turns(true))
	if err != nil {
		return err
	}
	mine := &federate.History{}
	if x.m != nil {
		if mine, err = federate.Trace(x.mine(true)); err != nil {
			return fmt.Errorf("the session here: %w", err)
		}
	}
	x.plan = mine.Compare(theirs)
	if x.q.Redact {
		x.plan.Forward = false // what is imported is not what was said
	}
	return x.tail.compare(x)
}

// mine iterates the turns that are here.
func (x *visit) mine(decided bool) iter.Seq2[turn.Turn, error] {
	p := part{dir: x.dir, m: x.m}
	return p.captured(decided)
}

// contract decides which evidence contract stays: theirs where there is none
// here or where the one here came from them; else ours, and that is disputed
// if theirs says something else.
func (x *visit) contract() (take func(render.Contract) render.Contract, disputed bool) {
	theirs := x.s.Contract
	if x.q.Redact {
		theirs = render.NewContract(redact.Text(theirs.Block))
	}
	if theirs.Block == "" {
		return nil, false
	}
	if x.m != nil {
		mine, err := verify.Written(x.dir)
		came := slices.ContainsFunc(x.m.Imported, func(in session.Input) bool { return in.ContractSHA256 == mine.SHA256 })
		switch {
		case err == nil && mine.SHA256 == theirs.SHA256:
			return nil, false
		case err == nil && mine.Block != "" && !came:
			seen := slices.ContainsFunc(x.m.Imported, func(in session.Input) bool { return in.ContractSHA256 == x.s.Contract.SHA256 })
			return nil, !seen
		}
	}
	return func(render.Contract) render.Contract { return theirs }, false
}

// graft takes over what is missing.
func (x *visit) graft(ctx context.Context, contract func(render.Contract) render.Contract, disputed bool) (*pipeline.Result, error) {
	if err := x.b.Index.Mark(ctx, x.loc); err != nil {
		return nil, err
	}
	if err := safefile.MakeDir(x.b.Store.ProjectDir(x.loc.Project)); err != nil {
		return nil, err
	}
	theirs := *x.s.Manifest
	if x.q.Redact {
		for _, s := range []*string{&theirs.Title, &theirs.Objective, &theirs.Meta.Title} {
			*s = redact.Text(*s)
		}
	}
	format := theirs.Format
	if _, ok := all.ByKey(format); !ok {
		format = ""
	}
	return x.b.Graft(ctx, x.loc, pipeline.Graft{
		ID: theirs.Session, Meta: theirs.Meta, Format: format,
		Turns: x.turns(), Tail: x.tail.keep, Contract: contract, Backup: backupName,
		Describe: func(m *session.Manifest) { x.describe(m, &theirs, disputed) },
	})
}

// turns iterates what is to be added.
func (x *visit) turns() iter.Seq2[turn.Turn, error] {
	return func(yield func(turn.Turn, error) bool) {
		i := 0
		for t, err := range x.s.Turns(true) {
			if err != nil {
				yield(t, err)
				return
			}
			if i++; i > len(x.plan.Add) {
				yield(t, fault.New(fault.Integrity, "it changed while it was read"))
				return
			}
			if !x.plan.Add[i-1] {
				continue
			}
			if _, guest := federate.Guest(&t); !guest && !x.plan.Forward {
				t.Origin = x.plan.IDs[i-1].Origin("")
			}
			if !yield(x.clean(t), nil) {
				return
			}
		}
		if i != len(x.plan.Add) {
			yield(turn.Turn{}, fault.New(fault.Integrity, "it changed while it was read"))
			return
		}
		for _, t := range x.tail.guests {
			if !yield(x.clean(t), nil) {
				return
			}
		}
	}
}

// clean is a turn as it is taken over.
func (x *visit) clean(t turn.Turn) turn.Turn {
	if !x.q.Redact {
		return t
	}
	t.Text = redact.Text(t.Text)
	if t.Tool != nil {
		tool := *t.Tool
		tool.Command = redact.Text(tool.Command)
		t.Tool = &tool
	}
	return t
}

func (x *visit) describe(m *session.Manifest, theirs *session.Manifest, disputed bool) {
	if x.m == nil {
		m.Harness, m.Model, m.Title, m.Objective = theirs.Harness, theirs.Model, theirs.Title, theirs.Objective
		m.TitledFrom, m.MergedFrom, m.MergedInputs = theirs.TitledFrom, theirs.MergedFrom, theirs.MergedInputs
		if _, ok := timeOf(theirs.CreatedAt); ok {
			m.CreatedAt = theirs.CreatedAt
		}
	}
	if x.m == nil || x.plan.Forward && len(x.m.Sources) == 0 {
		first := m.Meta.FirstID
		m.Meta = theirs.Meta
		m.Meta.FirstID = first
	}
	for _, p := range theirs.SourcePaths {
		if !slices.Contains(m.SourcePaths, p) {
			m.SourcePaths = append(slices.Clip(m.SourcePaths), p)
		}
	}
	in := session.Input{
		Session: theirs.Session, Project: x.s.Project, From: x.root.Name, ManifestSHA256: theirs.ManifestSHA256,
		TimelineSHA256: x.s.Sum, Turns: theirs.TurnCount, ContractSHA256: x.s.Contract.SHA256,
		Conflict: x.m != nil && (x.plan.Missing > 0 && x.plan.Own > 0 || disputed),
	}
	m.Imported = slices.DeleteFunc(slices.Clone(m.Imported), func(o session.Input) bool { return o.From == in.From })
	m.Imported = append(m.Imported, in)
	m.FederatedFrom, m.FederatedAt = x.root.Name, pipeline.StampTime(x.q.Now)
}
