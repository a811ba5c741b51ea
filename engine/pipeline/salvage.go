package pipeline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/all"
	"handoffd/engine/ingest"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/turn"
)

// rebuilt is a session whose state was lost, made again from its timeline.
type rebuilt struct {
	keys  []store.Key
	turns []turn.Turn // for TOOLS.md, TOOL turns only
}

// salvage makes a session again whose state or appended files are lost or
// damaged. Where the timeline's committed bytes are whole they are taken over.
// Where they are not, and the source still is what was captured, everything is
// read from it again. Otherwise the whole lines are taken over as they are
// found, and the manifest says so. m is nil when the manifest is lost too;
// hint is then the format of the source that is about to be read, if any.
func (b *Builder) salvage(loc store.Location, dir string, m *session.Manifest, hint harness.Format, why string) (*loaded, error) {
	if m == nil {
		m = &session.Manifest{Session: loc.Dir, Project: loc.Project, CreatedAt: StampTime(b.opt.Now()), Schema: 1}
		if err := sourcesOf(dir, m, hint); err != nil {
			return nil, err
		}
	}
	l := &loaded{loc: loc, dir: dir, m: m, followers: map[int]*harness.Follower{}, rebuilt: &rebuilt{}}
	l.repaired = append(l.repaired, why)
	if brief, err := os.ReadFile(filepath.Join(dir, store.BriefName)); err == nil {
		if c, err := render.ExtractContract(brief); err == nil {
			l.contract = c
		}
	}
	timeline, committed := m.Artifact(store.TimelineName)
	whole := committed && store.Holds(dir, timeline)
	if committed && !whole && readable(m) {
		l.repaired = append(l.repaired, "read again from the source")
		l.digest, l.end = &render.Digest{}, &render.Digest{}
		l.state = ingest.New(session.Meta{ID: m.Meta.ID, Kind: m.Meta.Kind, Parent: m.Meta.Parent, ForkedFrom: m.Meta.ForkedFrom})
		m.Committed, m.Renders = nil, nil
		return l, store.SetAside(dir, store.TimelineName, m.Revisions)
	}
	if committed && !whole {
		m.Salvaged = m.Revisions + 1
		l.repaired = append(l.repaired, "what was found is taken over: no source is as it was captured")
	}
	return l, l.takeOver(timeline.Bytes, whole)
}

// takeOver rebuilds the state from the timeline: from the committed bytes
// where they are whole, else from all whole lines.
func (l *loaded) takeOver(limit int64, whole bool) error {
	m := l.m
	l.digest, l.state = &render.Digest{}, ingest.New(m.Meta)
	if sourcesExist(m) { // they are counted again when they are read again
		l.state.Meta.Tokens, l.state.Meta.Compactions = session.Tokens{}, 0
	}
	for i, s := range m.Sources {
		l.state.Sources = append(l.state.Sources, ingest.Source{
			Path: s.Path, Format: s.Format, Scope: i, Reread: true, Rewritten: s.Rewritten, Flagged: s.Flagged,
		})
	}
	keep := -1
	if m.Provisional > 0 && sourcesExist(m) {
		keep = m.TurnCount - m.Provisional // the sources will tell the rest
	}
	if !whole {
		limit = -1
	}
	hash, bytes, err := l.replay(limit, keep)
	if err != nil {
		return err
	}
	l.marks[0] = store.Mark{Bytes: bytes, Hash: hash.Save()}
	if err := l.keepQuarantine(); err != nil {
		return err
	}
	l.end = l.digest
	m.Committed, m.Renders = nil, nil
	return nil
}

// readable reports whether the session can be made from its source alone: it
// has one, which still holds everything that was ever captured of it.
func readable(m *session.Manifest) bool {
	if len(m.Sources) != 1 || m.Sources[0].Rewritten || len(m.MergedFrom) > 0 || m.FederatedFrom != "" {
		return false
	}
	s := m.Sources[0]
	f, err := ingest.Open(safefile.PathBytes(s.Path))
	if err != nil {
		return false
	}
	defer f.Close()
	return f.StartsWith(s.Bytes, s.SHA256)
}

func sourcesExist(m *session.Manifest) bool {
	for _, s := range m.Sources {
		if err := ingest.Exists(s.Path); err != nil {
			return false
		}
	}
	return len(m.Sources) > 0
}

// sourcesOf makes up for a lost manifest's sources from what quarantine says.
func sourcesOf(dir string, m *session.Manifest, hint harness.Format) error {
	if hint == nil {
		return nil
	}
	m.Format = hint.Traits().Key
	entries, err := ingest.ReadQuarantine(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := m.Source(e.Source); !ok {
			m.Sources = append(m.Sources, session.Source{Path: e.Source, Format: m.Format})
		}
	}
	return nil
}

// replay feeds the timeline's whole lines to the folds: those in the first
// limit bytes when limit >= 0, and at most keep when keep >= 0.
func (l *loaded) replay(limit int64, keep int) (h *seal.Hash, bytes int64, err error) {
	h = seal.NewHash()
	for line, err := range store.Lines(l.dir, 0, limit) {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, 0, fault.New(fault.Internal, "read timeline: %w", err)
		}
		if keep == 0 {
			break
		}
		t, err := store.ParseTurn(line)
		if err != nil || t.Class == "" {
			break // torn or foreign; what follows is not trusted
		}
		keep--
		_, _ = h.Write(line)
		_, _ = h.Write([]byte{'\n'})
		bytes += int64(len(line)) + 1
		l.readopt(&t)
	}
	return h, bytes, nil
}

// readopt counts a turn that is in the timeline already.
func (l *loaded) readopt(t *turn.Turn) {
	l.rebuilt.keys = append(l.rebuilt.keys, l.keyOf(t))
	if t.Class == turn.ToolUse {
		l.rebuilt.turns = append(l.rebuilt.turns, *t)
	}
	l.state.Readopt(t)
	l.digest.Add(t)
}

// keyOf returns the key under which a reading of the turn's source finds it.
func (l *loaded) keyOf(t *turn.Turn) store.Key {
	st := l.state
	byID, scope := true, -1
	key := l.m.Format
	if t.Source < len(st.Sources) {
		key = st.Sources[t.Source].Format
	}
	if f, ok := all.ByKey(key); ok {
		traits := f.Traits()
		byID = traits.Identity == harness.ByID
		if traits.Identity == harness.BySource && t.Origin == "" {
			scope = t.Source
			if t.Source < len(st.Sources) {
				scope = st.Sources[t.Source].Scope
			}
		}
	} else if l.m.Schema == 0 { // written by the reference: canonical lines
		byID, scope = false, t.Source
	}
	return store.KeyOf(t, byID, scope)
}

// keepQuarantine carries over what is in quarantine if the list and the bytes
// agree; otherwise both start again, and reading the sources fills them.
func (l *loaded) keepQuarantine() error {
	entries, err := ingest.ReadQuarantine(l.dir)
	if err != nil {
		return err
	}
	var marks [2]store.Mark
	for i, name := range []string{store.QuarantineList, store.QuarantineRaw} {
		f, err := os.Open(filepath.Join(l.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fault.New(fault.Internal, "open quarantine: %w", err)
		}
		h := seal.NewHash()
		limit := int64(1) << 62
		if a, ok := l.m.Artifact(name); ok {
			limit = a.Bytes
		}
		n, err := io.Copy(h, io.LimitReader(f, limit))
		_ = f.Close()
		if err != nil {
			return fault.New(fault.Internal, "read quarantine: %w", err)
		}
		if a, ok := l.m.Artifact(name); ok && n < a.Bytes {
			return nil
		}
		marks[i] = store.Mark{Bytes: n, Hash: h.Save()}
	}
	for _, e := range entries {
		if e.At+e.Length > marks[1].Bytes {
			return nil
		}
	}
	l.marks[3], l.marks[4] = marks[0], marks[1]
	for _, e := range entries {
		for i := range l.state.Sources {
			s := &l.state.Sources[i]
			switch {
			case s.Path != e.Source:
			case e.Reason == harness.ReasonUnknown:
				s.Unknown++
			default:
				s.Quarantined++
			}
		}
	}
	return nil
}

// rewrite appends to the journal again what was lost beside the timeline.
func (l *loaded) rewrite(j *store.Journal) error {
	if len(l.rebuilt.turns) > 0 {
		if err := j.Tool(render.ToolsHeader(l.m)); err != nil {
			return err
		}
	}
	for i := range l.rebuilt.turns {
		if err := j.Tool(render.ToolEntry(&l.rebuilt.turns[i])); err != nil {
			return fmt.Errorf("write %s again: %w", store.ToolsName, err)
		}
	}
	return j.Keys(l.rebuilt.keys)
}
