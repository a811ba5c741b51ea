package verb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/verify"
)

// mergedHarness is the harness that a merged session is said to come from.
const mergedHarness = "merged"

// Merged is a session composed of two.
type Merged struct {
	Into     string // session id
	Location store.Location
	Turns    int
	New      int
	Revision int
	Rendered bool
}

// Merge composes two sessions into a third, under the first one's project: the
// turns of both in the order of time, none of one session moved against its
// neighbours, each with the place it comes from. Turns that both hold, because
// one was forked or merged from the other, are taken once. A second merge of
// the same two appends what is new in them. With rendered the brief and the
// payloads are written; once written they are kept current. The error is
// fault.Usage for a session with itself, fault.Locked, fault.Exists when the
// name is taken by something else.
func Merge(ctx context.Context, b *pipeline.Builder, first, second index.Entry, rendered bool) (Merged, error) {
	if first.Location() == second.Location() {
		return Merged{}, fault.New(fault.Usage, "cannot merge %s with itself", first.UUID)
	}
	id := first.ID + "+merge+" + second.ID
	unlock, err := lockAll(ctx, b, id, first.UUID, second.UUID)
	if err != nil {
		return Merged{}, err
	}
	defer unlock()
	var parts [2]part
	for i, e := range []index.Entry{first, second} {
		if err := b.Recover(e.Location()); err != nil {
			return Merged{}, err
		}
		if parts[i], err = readPart(b.Store, e); err != nil {
			return Merged{}, err
		}
	}
	loc, old, err := mergeTarget(b, id, first.Project, parts)
	if err != nil {
		return Merged{}, err
	}
	kept, old, err := setAsideDamaged(b, loc, old)
	if err != nil {
		return Merged{}, err
	}
	if old != nil && current(old, parts) && (len(old.Renders) > 0 || !rendered) {
		if err := b.Index.Mark(ctx, loc); err != nil {
			return Merged{}, err
		}
		m := Merged{Into: id, Location: loc, Turns: old.TurnCount, Revision: old.Revisions, Rendered: len(old.Renders) > 0}
		if rep, err := verify.Session(ctx, b.Store, loc); m.Rendered && err == nil && !rep.OK {
			again, err := b.Revise(ctx, loc, loc, func(*session.Manifest) {})
			if err != nil {
				return Merged{}, err
			}
			m.Revision = again.Revisions
		}
		return m, finishMerge(ctx, b, m, second.Project)
	}
	if err := b.Index.Mark(ctx, loc); err != nil {
		return Merged{}, err
	}
	have, err := alreadyMerged(b.Store, loc, old)
	if err != nil {
		return Merged{}, err
	}
	weave := &weave{parts: parts, have: have}
	if err := weave.shared(); err != nil {
		return Merged{}, err
	}
	if err := safefile.MakeDir(b.Store.ProjectDir(loc.Project)); err != nil {
		return Merged{}, err
	}
	tail, err := weave.tail()
	if err != nil {
		return Merged{}, err
	}
	r, err := b.Graft(ctx, loc, pipeline.Graft{
		ID: id, Turns: weave.turns(), Tail: tail, Bare: !rendered,
		Contract: func(now render.Contract) render.Contract {
			if now.Block == "" {
				return kept
			}
			return now
		},
		Describe: func(m *session.Manifest) { describeMerge(m, parts) },
	})
	if err != nil {
		return Merged{}, fmt.Errorf("merge into %s: %w", id, err)
	}
	m := Merged{Into: id, Location: loc, Turns: r.Turns, New: r.New, Revision: r.Revision, Rendered: rendered || old != nil && len(old.Renders) > 0}
	return m, finishMerge(ctx, b, m, second.Project)
}

// finishMerge brings the rest of the store up to date.
func finishMerge(ctx context.Context, b *pipeline.Builder, m Merged, other string) error {
	if _, err := b.FoldIndex(ctx, false); err != nil {
		return err
	}
	return b.NoteMerge(ctx, other, m.Location, m.Turns)
}

// lockAll takes the locks of several sessions, in one order for everybody.
func lockAll(ctx context.Context, b *pipeline.Builder, ids ...string) (unlock func(), err error) {
	slices.Sort(ids)
	var held []*safefile.Lock
	release := func() {
		for _, l := range held {
			_ = l.Release()
		}
	}
	all := false
	defer func() { // whatever happens, none stays behind
		if !all {
			release()
		}
	}()
	for _, id := range slices.Compact(ids) {
		l, err := b.Lock(ctx, id)
		if err != nil {
			return nil, err
		}
		held = append(held, l)
	}
	all = true
	return release, nil
}

// part is one of the sessions that are merged.
type part struct {
	dir  string
	m    *session.Manifest
	name string // project/session
}

// readPart reads what is committed of a session and refuses one that is not
// whole: what is merged from it could not be told from what it was.
func readPart(s store.Store, e index.Entry) (part, error) {
	dir := s.SessionDir(e.Project, e.ID)
	m, raw, err := store.ReadManifest(dir)
	if err != nil {
		return part{}, fault.New(fault.Integrity, "session %s: read manifest: %w", e.UUID, err)
	}
	if err := session.Sealed(raw); err != nil {
		return part{}, fmt.Errorf("session %s: %w", e.UUID, err)
	}
	a, ok := m.Artifact(store.TimelineName)
	if ok && !store.Holds(dir, a) {
		return part{}, fault.New(fault.Integrity, "session %s: %s is not as committed", e.UUID, store.TimelineName).
			WithHint("build it from its source first")
	}
	return part{dir: dir, m: m, name: e.Project + "/" + e.ID}, nil
}

func (p *part) timeline() session.Artifact {
	a, ok := p.m.Artifact(store.TimelineName)
	if !ok {
		a.Bytes = -1 // the reference's manifests cover no content
	}
	return a
}

// mergeTarget finds where the merged session is, or is to be made.
func mergeTarget(b *pipeline.Builder, id, project string, parts [2]part) (store.Location, *session.Manifest, error) {
	loc := store.Location{Project: project, Dir: store.DirName(id)}
	same, err := b.Index.ByID(id)
	if err != nil {
		return loc, nil, err
	}
	for _, e := range same {
		if err := b.Recover(e.Location()); err != nil {
			return loc, nil, err
		}
		m, _, err := store.ReadManifest(b.Store.SessionDir(e.Project, e.ID))
		if err != nil {
			continue
		}
		if slices.Equal(m.MergedFrom, []string{parts[0].m.Session, parts[1].m.Session}) && sameParts(b, m, parts) {
			return e.Location(), m, nil
		}
	}
	dir := b.Store.SessionDir(loc.Project, loc.Dir)
	if m, _, err := store.ReadManifest(dir); err == nil {
		return loc, nil, fault.New(fault.Exists, "%s is another session: %s", dir, m.Session)
	}
	return loc, nil, nil
}

// sameParts reports whether a merge was made of these parts. Ids alone tell it
// unless several sessions have one; a part may have been renamed since.
func sameParts(b *pipeline.Builder, m *session.Manifest, parts [2]part) bool {
	if len(m.MergedInputs) != len(parts) {
		return true
	}
	for i, p := range parts {
		project, _, _ := strings.Cut(p.name, "/")
		same, err := b.Index.ByID(p.m.Session)
		if err == nil && len(same) > 1 && m.MergedInputs[i].Project != project {
			return false
		}
	}
	return true
}

// setAsideDamaged moves an earlier merge away that is not as it was committed:
// it is made again from its parts. Its contract is not in them.
func setAsideDamaged(b *pipeline.Builder, loc store.Location, m *session.Manifest) (kept render.Contract, whole *session.Manifest, err error) {
	dir := b.Store.SessionDir(loc.Project, loc.Dir)
	if m != nil {
		if _, raw, err := store.ReadManifest(dir); err == nil && session.Sealed(raw) == nil && intact(b.Store, loc, m) {
			return kept, m, nil
		}
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return kept, nil, nil
	}
	kept, _ = verify.Written(dir)
	for n := 1; ; n++ {
		aside := filepath.Join(b.Store.ProjectDir(loc.Project), fmt.Sprintf(".damaged-%s-%d", loc.Dir, n))
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		b.Forget(loc)
		return kept, nil, safefile.Rename(dir, aside)
	}
}

// current reports whether everything in the parts is merged already.
func current(m *session.Manifest, parts [2]part) bool {
	if len(m.MergedInputs) != len(parts) {
		return false
	}
	for i, p := range parts {
		in := m.MergedInputs[i]
		if in.Session != p.m.Session || in.TimelineSHA256 != timelineSum(p) || in.Turns != p.m.TurnCount {
			return false
		}
	}
	return true
}

// intact reports whether the turns that were merged are as committed. A render
// is made again where it is missed.
func intact(s store.Store, loc store.Location, m *session.Manifest) bool {
	dir := s.SessionDir(loc.Project, loc.Dir)
	for _, a := range m.Committed {
		if !store.Holds(dir, a) {
			return false
		}
	}
	return true
}

// timelineSum identifies what a part holds. The reference's manifests say
// nothing of it but their own seal.
func timelineSum(p part) string {
	if a := p.timeline(); a.SHA256 != "" {
		return a.SHA256
	}
	return p.m.ManifestSHA256
}

func describeMerge(m *session.Manifest, parts [2]part) {
	m.Harness = mergedHarness
	m.MergedFrom, m.MergedInputs, m.SourcePaths = nil, nil, nil
	var models []string
	for _, p := range parts {
		project, _, _ := strings.Cut(p.name, "/")
		m.MergedFrom = append(m.MergedFrom, p.m.Session)
		m.MergedInputs = append(m.MergedInputs, session.Input{
			Session: p.m.Session, Project: project, ManifestSHA256: p.m.ManifestSHA256,
			TimelineSHA256: timelineSum(p), Turns: p.m.TurnCount,
		})
		m.SourcePaths = append(m.SourcePaths, p.m.Session)
		if p.m.Model != "" && !slices.Contains(models, p.m.Model) {
			models = append(models, p.m.Model)
		}
		m.Meta.LastTS = later(m.Meta.LastTS, p.m.Meta.LastTS)
	}
	m.Model = strings.Join(models, ", ")
	m.Meta.FirstID = "" // or it would be taken for the origin of a fork
}

// place is where a turn of a part was first.
func (p *part) place(seq int64) string { return p.name + "#" + strconv.FormatInt(seq, 10) }
