package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"handoffd/engine/fault"
	"handoffd/engine/ingest"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// commit is the second half of a build: from appended bytes to a new
// revision.
type commit struct {
	b   *Builder
	l   *loaded
	j   *store.Journal
	res *ingest.Result
	obs *observer
	req Request
	t   target
}

func (c *commit) run(ctx context.Context) (*Result, error) {
	l := c.l
	next := *l.m
	next.SourcePaths = slices.Clone(l.m.SourcePaths)
	next.Meta = c.res.End.Meta
	c.label(&next)
	if err := c.b.linkFork(l, &next, c.res.End); err != nil {
		return nil, err
	}
	next.Meta = c.res.End.Meta
	c.res.State.Meta.ForkedFrom, c.res.State.Meta.Kind = next.Meta.ForkedFrom, kindOf(c.res.State.Meta.Kind, next.Meta.Kind)

	contract, edited, damaged := c.inspect()
	back := c.res.Source < len(l.m.Sources) && l.m.Sources[c.res.Source].Gone
	changed := back || c.res.New > 0 || l.isNew() || edited || l.rebuilt != nil || labelsDiffer(&next, l.m) || c.sourceNews()
	if !changed {
		return c.upToDate(ctx, damaged)
	}
	return c.revise(ctx, &next, contract)
}

func kindOf(old, now string) string {
	if old == "" {
		return now
	}
	return old
}

// sourceNews reports whether the source has decided something that is not a
// turn, or an unfinished end that came or went.
func (c *commit) sourceNews() bool {
	old, now := c.l.state.Sources, c.res.State.Sources
	if len(old) != len(now) {
		return true
	}
	a, b := &old[c.res.Source], &now[c.res.Source]
	return a.Bytes != b.Bytes || a.Path != b.Path || !bytes.Equal(a.Hash, b.Hash) || a.Rewritten != b.Rewritten
}

// label decides who the session belongs to.
func (c *commit) label(m *session.Manifest) {
	given := label(c.t.format, c.req.Harness)
	switch {
	case m.Harness == "" || m.Harness == "unknown" && c.req.Harness != "":
		m.Harness = given
	case c.req.ForceHarness && c.req.Harness != "":
		m.Harness = c.req.Harness
	}
	switch {
	case c.req.Model != "" && (m.Model == "" || c.req.ForceModel):
		m.Model = c.req.Model
	case m.Model == "" || m.Model == c.l.m.Meta.Model:
		if m.Meta.Model != "" {
			m.Model = m.Meta.Model
		}
	}
	if c.req.Objective != "" {
		m.Objective = c.req.Objective
	}
}

func labelsDiffer(a, b *session.Manifest) bool {
	return a.Harness != b.Harness || a.Model != b.Model || a.Objective != b.Objective || a.Meta.ForkedFrom != b.Meta.ForkedFrom
}

// inspect looks at what is on disk beside the manifest: a contract that was
// edited by hand, and renders that are missing or damaged.
func (c *commit) inspect() (contract render.Contract, edited bool, damaged []string) {
	l := c.l
	if l.isNew() {
		return render.Contract{}, false, nil
	}
	contract = l.contract
	for _, a := range l.m.Renders {
		raw, err := safefile.ReadSmall(filepath.Join(l.dir, a.Name), store.MaxRender)
		if err == nil && asCommitted(raw, l.m, a) {
			continue
		}
		if a.Name == store.BriefName {
			if contract, edited = l.written(raw, err); edited {
				continue
			}
		}
		damaged = append(damaged, a.Name)
	}
	if l.rebuilt == nil && !c.res.Changed && c.appendedDamaged() {
		damaged = append(damaged, appendedFiles)
	}
	return contract, edited, damaged
}

// asCommitted reports whether a render is that of the manifest.
func asCommitted(raw []byte, m *session.Manifest, a session.Artifact) bool {
	return seal.Sum(bytes.ReplaceAll(raw, []byte(m.ManifestSHA256), []byte(seal.Zero))) == a.SHA256
}

// written returns the contract of a brief that is not as committed, and
// whether someone edited it there. A contract that is gone counts as deleted
// only where its section is still there: a cut file has lost it.
func (l *loaded) written(brief []byte, err error) (render.Contract, bool) {
	if err != nil {
		return l.contract, false
	}
	found, err := render.ExtractContract(brief)
	whole := found.Block != "" || bytes.Contains(brief, []byte("\n## Evidence contract"))
	if err != nil || !whole || found.SHA256 == l.contract.SHA256 {
		return l.contract, false
	}
	return found, true
}

// current returns the contract as it stands on disk, taken over or not.
func (l *loaded) current() render.Contract {
	a, ok := l.m.Artifact(store.BriefName)
	if !ok {
		return l.contract
	}
	raw, err := safefile.ReadSmall(filepath.Join(l.dir, a.Name), store.MaxRender)
	if err == nil && asCommitted(raw, l.m, a) {
		return l.contract
	}
	c, _ := l.written(raw, err)
	return c
}

const appendedFiles = "appended files"

// appendedDamaged reports whether an appended file is not as committed. What
// only stands behind the committed bytes, left by a builder that died, is cut
// off. Content is looked at only where the caller did not ask for haste.
func (c *commit) appendedDamaged() bool {
	if c.j.Intact() && c.req.LazyPayload {
		return false
	}
	for _, a := range c.l.m.Committed {
		if !store.Holds(c.l.dir, a) {
			return true
		}
	}
	return !c.j.Intact() && store.CutBehind(c.l.dir, c.l.m.Committed) != nil
}

// upToDate answers a build that found nothing new. Nothing is written unless
// a render is missing or damaged.
func (c *commit) upToDate(ctx context.Context, damaged []string) (*Result, error) {
	l := c.l
	if len(damaged) > 0 {
		if slices.Contains(damaged, appendedFiles) {
			salvaged, err := c.b.salvage(l.loc, l.dir, l.m, c.t.format, "appended files not as committed")
			if err != nil {
				return nil, err
			}
			c.j.Discard()
			c.b.Forget(l.loc)
			f, err := ingest.Open(c.req.Source)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return c.b.build(ctx, salvaged, f, c.t, c.req)
		}
		if err := c.b.renderAgain(l); err != nil {
			return nil, err
		}
	}
	c.b.keep(l)
	r := resultOf(c.b, l)
	r.Pending = c.res.Pending
	for _, name := range damaged {
		r.Repaired = append(r.Repaired, name+" made again")
	}
	r.Repaired = append(r.Repaired, l.repaired...)
	if err := c.payload(l, r); err != nil {
		return nil, err
	}
	if err := c.b.listed(ctx, l); err != nil {
		return nil, err
	}
	if !c.b.opt.LazyIndex { // an earlier build may have died before it did
		if _, err := c.b.foldIfSmall(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// renderAgain writes the small renders of the committed revision again.
func (b *Builder) renderAgain(l *loaded) error {
	var g safefile.Group
	defer g.Discard()
	files, err := b.smallRenders(l.m, l.end, l.contract)
	if err != nil {
		return err
	}
	if err := stamped(&g, l.dir, files, l.m.ManifestSHA256); err != nil {
		return err
	}
	return g.Commit()
}

// stamped adds the renders to the group with the manifest's hash in its
// place.
func stamped(g *safefile.Group, dir string, files []rendered, sha string) error {
	for _, f := range files {
		data, ok := render.Stamp(bytes.Clone(f.data), sha)
		if !ok {
			return fmt.Errorf("render %s: no place for the manifest's hash", f.name)
		}
		if err := g.Replace(filepath.Join(dir, f.name), data); err != nil {
			return err
		}
	}
	return nil
}

type rendered struct {
	name string
	data []byte
}

// artifact describes the render for the manifest.
func (r rendered) artifact() session.Artifact {
	a := session.Artifact{Name: r.name, Bytes: int64(len(r.data)), SHA256: seal.Sum(r.data)}
	if r.name == store.BriefName {
		n := render.Generated(r.data)
		a.Generated, a.GeneratedSHA256 = int64(n), seal.Sum(r.data[:n])
	}
	return a
}

// smallRenders renders HANDOFF.md and HANDOFF.summary.json with zeros for the
// manifest's hash.
func (b *Builder) smallRenders(m *session.Manifest, d *render.Digest, contract render.Contract) ([]rendered, error) {
	zeroed := *m
	zeroed.ManifestSHA256 = seal.Zero
	in := render.Input{M: &zeroed, D: d, GeneratedAt: m.UpdatedAt, Title: m.Title, Contract: contract, MaxTokens: b.opt.MaxBriefTokens}
	summary, err := render.Summary(in)
	if err != nil {
		return nil, fmt.Errorf("render summary: %w", err)
	}
	return []rendered{{store.BriefName, render.Brief(in)}, {store.SummaryName, summary}}, nil
}

// revise commits a new revision.
func (c *commit) revise(ctx context.Context, next *session.Manifest, contract render.Contract) (*Result, error) {
	l, b := c.l, c.b
	var g safefile.Group
	defer g.Discard()
	committed, marks, err := c.j.Finish(&g)
	if err != nil {
		return nil, err
	}
	decided := c.obs.settled
	if decided == nil {
		decided = c.obs.digest
	}
	c.describe(next, committed, contract)
	if next.Meta.ForkedFrom != "" && next.Meta.Inherited == 0 && next.Format != "codex" {
		next.Meta.Inherited = b.inherited(l.dir, next, -1)
		c.res.State.Meta.Inherited = next.Meta.Inherited
	}
	final, err := b.land(ctx, &g, l, next, landing{
		marks: marks, state: c.res.State, decided: decided, end: c.obs.digest, contract: contract,
	})
	if err != nil {
		return nil, err
	}
	return c.committed(ctx, next, final, marks, decided, contract)
}

// describe fills in the next revision.
func (c *commit) describe(m *session.Manifest, committed []session.Artifact, contract render.Contract) {
	end := c.res.End
	m.Schema = 1
	m.Project = c.l.loc.Project
	m.Watermark = end.Watermark
	m.Revisions++
	m.UpdatedAt = StampTime(c.b.opt.Now())
	m.TurnCount = end.Counts.Total()
	m.Counts = session.Counts{User: end.Counts.User, Agent: end.Counts.Agent, Thought: end.Counts.Thought, Tool: end.Counts.Tool}
	m.Provisional = c.res.Provisional
	m.Committed = committed
	m.Quarantined, m.Unknown = 0, 0
	m.Sources, m.SourcePaths = nil, nil
	for i := range end.Sources {
		s := end.Sources[i].Public()
		if old, ok := c.l.m.Source(s.Path); ok && i != c.res.Source {
			s.Gone = c.l.m.Sources[old].Gone
		}
		m.Quarantined += s.Quarantined
		m.Unknown += s.Unknown
		m.Sources = append(m.Sources, s)
		m.SourcePaths = append(m.SourcePaths, s.Path)
	}
	m.RawSHA256 = m.Sources[c.res.Source].SHA256
	m.Format = end.Sources[0].Format
	m.EvidenceContractSHA256 = contract.SHA256
}

// committed makes the new revision the loaded one and brings the rest of the
// store up to date.
func (c *commit) committed(ctx context.Context, m *session.Manifest, dir string, marks store.Marks, decided *render.Digest, contract render.Contract) (*Result, error) {
	l, b := c.l, c.b
	stamp, err := stampOf(dir)
	if err != nil {
		return nil, fault.New(fault.Internal, "look at manifest: %w", err)
	}
	if err := b.Index.Mark(ctx, l.loc); err != nil {
		return nil, err
	}
	oldDamage := l.m.Quarantined
	followers := l.followers
	if c.res.Follower != nil {
		followers[c.res.Source] = c.res.Follower
	}
	now := &loaded{
		loc: l.loc, dir: dir, m: m, stamp: stamp, marks: marks, state: c.res.State,
		digest: decided, end: c.obs.digest, contract: contract, followers: followers, known: c.res.Keys,
	}
	if now.known != nil {
		now.known.Cut(int(marks.Keys()))
	}
	b.keep(now)
	r := resultOf(b, now)
	// An unfinished end that was read again is not new.
	r.Built, r.New, r.Pending = true, max(0, m.TurnCount-l.m.TurnCount), c.res.Pending
	r.Repaired = l.repaired
	r.NewDamage = m.Quarantined - oldDamage
	switch {
	case l.isNew(): // land wrote it
	case c.lazy(now):
		r.PayloadStale = true
	default:
		if err := b.writePayload(now); err != nil {
			return r, err
		}
	}
	if !b.opt.LazyIndex {
		links, err := b.foldIfSmall(ctx)
		if err != nil {
			return r, err
		}
		r.CrossLinks = links
	}
	r.Suggest = render.SuggestRetitle(m.Session, m.CreatedAt, render.Objective(m, now.end))
	return r, nil
}

// listed notes the session as changed if the index does not have it as it is:
// the build that committed it may have died before it could.
func (b *Builder) listed(ctx context.Context, l *loaded) error {
	ok, err := b.Index.Current(l.loc, l.m.ManifestSHA256)
	if err != nil || ok {
		return err
	}
	return b.Index.Mark(ctx, l.loc)
}

// payload brings HANDOFF.llm.json up to date, or notes that it is not.
func (c *commit) payload(l *loaded, r *Result) error {
	if payloadCurrent(l.dir, l.m) {
		return nil
	}
	if c.lazy(l) {
		r.PayloadStale = true
		return nil
	}
	return c.b.writePayload(l)
}

// lazy reports whether the payload is left for later.
func (c *commit) lazy(l *loaded) bool {
	if !c.req.LazyPayload || l.committed(store.TimelineName) <= lazyPayload {
		return false
	}
	// There is always one to read, if not the newest.
	_, err := os.Lstat(filepath.Join(l.dir, store.PayloadName))
	return err == nil
}

// resultOf describes a loaded session.
func resultOf(b *Builder, l *loaded) *Result {
	return &Result{
		Session: l.m.Session, Project: l.m.Project, Dir: absolute(b.Store.SessionDir(l.loc.Project, l.loc.Dir)),
		Location: l.loc, Turns: l.m.TurnCount, Revision: l.m.Revisions, Watermark: l.m.Watermark,
		Quarantined: l.m.Quarantined,
	}
}
