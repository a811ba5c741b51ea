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

// salvage makes a session again from the whole lines of its timeline. The
// sources are matched from their start by the next reading, so that what the
// timeline lost comes back if a source still has it. m is nil when the
// manifest is lost too.
func (b *Builder) salvage(loc store.Location, dir string, m *session.Manifest, hint harness.Format, why string) (*loaded, error) {
	lostManifest := m == nil
	if lostManifest {
		m = &session.Manifest{Session: loc.Dir, Project: loc.Project, CreatedAt: stampTime(b.opt.Now()), Schema: 1}
		if err := sourcesOf(dir, m, hint); err != nil {
			return nil, err
		}
	}
	l := &loaded{loc: loc, dir: dir, m: m, followers: map[int]*harness.Follower{}, rebuilt: &rebuilt{}}
	l.repaired = append(l.repaired, why)
	l.digest, l.state = &render.Digest{}, ingest.New(m.Meta)
	if sourcesExist(m) { // they are counted again when they are read again
		l.state.Meta.Tokens, l.state.Meta.Compactions = session.Tokens{}, 0
	}
	for i, s := range m.Sources {
		l.state.Sources = append(l.state.Sources, ingest.Source{
			Path: s.Path, Format: s.Format, Scope: i, Reread: true, Rewritten: s.Rewritten,
			Flagged: s.Flagged,
		})
	}
	keep := -1
	if m.Provisional > 0 && sourcesExist(m) {
		keep = m.TurnCount - m.Provisional // the sources will tell the rest
	}
	hash, bytes, err := l.replay(keep)
	if err != nil {
		return nil, err
	}
	l.marks[0] = store.Mark{Bytes: bytes, Hash: hash.Save()}
	if err := l.keepQuarantine(); err != nil {
		return nil, err
	}
	l.end = l.digest
	if brief, err := os.ReadFile(filepath.Join(dir, store.BriefName)); err == nil {
		if c, err := render.ExtractContract(brief); err == nil {
			l.contract = c
		}
	}
	m.Committed, m.Renders = nil, nil
	return l, nil
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

func sourcesExist(m *session.Manifest) bool {
	for _, s := range m.Sources {
		if _, err := os.Stat(s.Path); err != nil {
			return false
		}
	}
	return len(m.Sources) > 0
}

// replay feeds the timeline's whole lines to the folds, at most keep of them
// when keep >= 0.
func (l *loaded) replay(keep int) (h *seal.Hash, bytes int64, err error) {
	h = seal.NewHash()
	for line, err := range store.Lines(l.dir, 0, -1) {
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
	st := l.state
	byID, scope := true, -1
	key := l.m.Format
	if t.Source < len(st.Sources) {
		key = st.Sources[t.Source].Format
	}
	if f, ok := all.ByKey(key); ok {
		traits := f.Traits()
		byID = traits.Identity == harness.ByID
		if traits.Identity == harness.BySource {
			scope = t.Source
			if t.Source < len(st.Sources) {
				scope = st.Sources[t.Source].Scope
			}
		}
	} else if l.m.Schema == 0 { // written by the reference: canonical lines
		byID, scope = false, t.Source
	}
	l.rebuilt.keys = append(l.rebuilt.keys, store.KeyOf(t, byID, scope))
	if t.Class == turn.ToolUse {
		l.rebuilt.turns = append(l.rebuilt.turns, *t)
	}
	st.Readopt(t)
	l.digest.Add(t)
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
	if err := j.Tool(render.ToolsHeader(l.m)); err != nil {
		return err
	}
	for i := range l.rebuilt.turns {
		if err := j.Tool(render.ToolEntry(&l.rebuilt.turns[i])); err != nil {
			return fmt.Errorf("write %s again: %w", store.ToolsName, err)
		}
	}
	return j.Keys(l.rebuilt.keys)
}
