package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/ingest"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// landing is what a new revision holds beside its manifest.
type landing struct {
	marks    store.Marks
	state    *ingest.State
	decided  *render.Digest
	end      *render.Digest // with the undecided turns
	contract render.Contract
	bare     bool // without renders
}

// land commits a revision whose appended files are in the group already, and
// returns the session's directory.
func (b *Builder) land(ctx context.Context, g *safefile.Group, l *loaded, next *session.Manifest, r landing) (dir string, err error) {
	outdate(l.m, next)
	st := &store.State{Marks: r.marks, Contract: r.contract.Block}
	if st.Ingest, err = r.state.Encode(); err != nil {
		return "", err
	}
	if st.Fold, err = r.decided.Encode(); err != nil {
		return "", err
	}
	if err := store.WriteState(g, l.dir, st, next); err != nil {
		return "", err
	}
	if err := b.publish(g, l.dir, next, r.end, r.contract, r.bare); err != nil {
		return "", err
	}
	if err := b.Index.Mark(ctx, l.loc); err != nil {
		return "", err
	}
	landed := &loaded{loc: l.loc, dir: l.dir, m: next, end: r.end, contract: r.contract}
	if !r.bare && !l.isNew() && bare(l.m) && l.m.Provisional == 0 {
		// Its first renders: a handoff is never without its payload.
		if err := b.writePayload(landed); err != nil {
			return "", err
		}
	}
	if err := g.Commit(); err != nil {
		b.Forget(l.loc)
		return "", fmt.Errorf("commit %s: %w", next.Session, err)
	}
	if l.isNew() && !r.bare {
		if err := b.writePayload(landed); err != nil {
			return "", err
		}
	}
	if !l.isNew() {
		if l.m.State != next.State && l.m.State != "" {
			_ = safefile.Remove(filepath.Join(l.dir, l.m.State))
		}
		return l.dir, nil
	}
	dir = b.Store.SessionDir(l.loc.Project, l.loc.Dir)
	if err := safefile.Rename(l.dir, dir); err != nil {
		return "", err
	}
	return dir, safefile.SyncDir(filepath.Dir(dir))
}

// outdate notes that what was promoted is not what is there now.
func outdate(old, now *session.Manifest) {
	if now.PromotedAt == "" || now.PromotedAt != old.PromotedAt {
		return
	}
	was, _ := old.Artifact(store.TimelineName)
	is, _ := now.Artifact(store.TimelineName)
	if was.SHA256 != is.SHA256 || old.EvidenceContractSHA256 != now.EvidenceContractSHA256 {
		now.PromotedStale = true
	}
}

// publish adds the small renders and the sealed manifest of a revision to the
// group, the manifest last: its rename is the commit. A bare session has no
// renders.
func (b *Builder) publish(g *safefile.Group, dir string, m *session.Manifest, d *render.Digest, contract render.Contract, bare bool) error {
	var files []rendered
	var err error
	if !bare {
		if files, err = b.smallRenders(m, d, contract); err != nil {
			return err
		}
	}
	m.Renders = nil
	for _, f := range files {
		m.Renders = append(m.Renders, f.artifact())
	}
	raw, err := session.Encode(m)
	if err != nil {
		return err
	}
	if err := stamped(g, dir, files, m.ManifestSHA256); err != nil {
		return err
	}
	return g.Replace(filepath.Join(dir, store.ManifestName), raw)
}

// Recover completes a commit of the session at loc that was cut short, if there
// is one. A verb that reads what is committed before it changes it calls this
// first, under the session's lock; builds and revisions do so themselves.
func (b *Builder) Recover(loc store.Location) error {
	done, err := rollForward(b.Store.SessionDir(loc.Project, loc.Dir))
	if done {
		b.Forget(loc)
	}
	return err
}

// rollForward completes a commit that was cut short between two renames: the
// manifest that was to come last still lies there, and everything that it says
// is in its place or about to be. It reports whether it did. Where something
// is missing nothing is touched, and the old revision stands.
func rollForward(dir string) (done bool, err error) {
	staged := filepath.Join(dir, store.ManifestName)
	raw, err := safefile.ReadSmall(safefile.TempName(staged), store.MaxRender)
	if err != nil || session.Sealed(raw) != nil {
		return false, nil
	}
	next, err := session.Decode(raw)
	if err != nil || next.Schema == 0 {
		return false, nil
	}
	if now, _, err := store.ReadManifest(dir); err == nil && (now.Session != next.Session || now.Revisions+1 != next.Revisions) {
		return false, nil
	}
	var moves []string
	place := func(name string, whole func(path string) bool) bool {
		path := filepath.Join(dir, name)
		if whole(path) {
			return true
		}
		if whole(safefile.TempName(path)) {
			moves = append(moves, path)
			return true
		}
		return false
	}
	ok := next.State == "" || place(next.State, func(path string) bool {
		raw, err := safefile.ReadSmall(path, store.MaxRender)
		return err == nil && seal.Sum(raw) == next.StateSHA256
	})
	for _, a := range next.Committed {
		ok = ok && place(a.Name, func(path string) bool {
			return store.Holds(filepath.Dir(path), session.Artifact{Name: filepath.Base(path), Bytes: a.Bytes, SHA256: a.SHA256})
		})
	}
	for _, a := range next.Renders {
		ok = ok && place(a.Name, func(path string) bool {
			raw, err := safefile.ReadSmall(path, store.MaxRender)
			return err == nil && asCommitted(raw, next, a)
		})
	}
	if !ok {
		return false, nil
	}
	return true, publishStaged(append(moves, staged), next)
}

// publishStaged syncs and renames temporaries to their places, in order.
func publishStaged(paths []string, next *session.Manifest) error {
	var g safefile.Group
	defer g.Discard()
	for _, a := range next.Committed { // appended in place, maybe not synced
		f, err := os.OpenFile(filepath.Join(filepath.Dir(paths[len(paths)-1]), a.Name), os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fault.New(fault.Internal, "complete a commit: %w", err)
		}
		g.Add(f, "")
	}
	for _, path := range paths {
		f, err := os.OpenFile(safefile.TempName(path), os.O_RDWR, 0)
		if err != nil {
			return fault.New(fault.Internal, "complete a commit: %w", err)
		}
		g.Add(f, path)
	}
	return g.Commit()
}
