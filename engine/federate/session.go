package federate

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"

	"handoffd/engine/fault"
	"handoffd/engine/render"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/turn"
)

// Session is a session of another store, checked against itself.
type Session struct {
	store.Location
	// Manifest is what it says of itself, with text cut to what a manifest of
	// ours holds. Paths in it are another machine's.
	Manifest *session.Manifest
	Contract render.Contract
	// Sum is the hash of the committed lines of the timeline, and Decided
	// how many turns of it will not change.
	Sum     string
	Decided int

	root  *Root
	bytes int64
}

// attempts is how often a session that fails is looked at again because it
// was written meanwhile.
const attempts = 3

// Session reads and checks the session at l. The error is fault.Integrity for
// one that does not hold what its manifest says.
func (r *Root) Session(l store.Location) (*Session, error) {
	for try := 1; ; try++ {
		s, sum, err := r.session(l)
		if err == nil || try == attempts {
			return s, err
		}
		again, readErr := r.read(filepath.Join(store.ProjectsDir, l.Project, l.Dir, store.ManifestName), maxManifest)
		if readErr == nil && sha256.Sum256(again) == sum {
			return s, err
		}
	}
}

func (r *Root) session(l store.Location) (*Session, [sha256.Size]byte, error) {
	s := &Session{Location: l, root: r}
	raw, err := r.read(s.path(store.ManifestName), maxManifest)
	sum := sha256.Sum256(raw)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sum, fault.New(fault.Integrity, "no manifest")
	}
	if err != nil {
		return nil, sum, err
	}
	if err := session.Sealed(raw); err != nil {
		return nil, sum, err
	}
	if s.Manifest, err = session.Decode(raw); err != nil {
		return nil, sum, err
	}
	if err := tame(s.Manifest); err != nil {
		return nil, sum, err
	}
	if err := s.check(); err != nil {
		return nil, sum, err
	}
	brief, err := r.read(s.path(store.BriefName), maxBrief)
	if err == nil {
		if c, err := render.ExtractContract(brief); err == nil {
			s.Contract = c
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, sum, err
	}
	return s, sum, nil
}

func (s *Session) path(name string) string {
	return filepath.Join(store.ProjectsDir, s.Project, s.Dir, name)
}

// tame refuses a manifest whose numbers cannot be, and bounds its text.
func tame(m *session.Manifest) error {
	c := m.Counts
	switch {
	case m.Session == "" || len(m.Session) > maxName:
		return fault.New(fault.Integrity, "the manifest names no session")
	case m.TurnCount <= 0 || m.TurnCount > maxTurns || m.Provisional < 0 || m.Provisional > m.TurnCount:
		return fault.New(fault.Integrity, "the manifest counts %d turns, %d of them undecided", m.TurnCount, m.Provisional)
	case c.User < 0 || c.Agent < 0 || c.Thought < 0 || c.Tool < 0 || m.Revisions < 0:
		return fault.New(fault.Integrity, "the manifest counts less than nothing")
	}
	x := &m.Meta
	for _, text := range []*string{
		&m.Session, &m.Project, &m.Harness, &m.Model, &m.CreatedAt, &m.UpdatedAt, &m.Format, &m.Title, &m.Objective,
		&x.ID, &x.CWD, &x.Branch, &x.Model, &x.Version, &x.Title, &x.Thread, &x.Parent, &x.ForkedFrom, &x.Kind,
		&x.FirstID, &x.FirstTS, &x.LastTS,
	} {
		*text = bounded(*text)
	}
	for i, p := range m.SourcePaths {
		m.SourcePaths[i] = bounded(p)
	}
	if len(m.SourcePaths) > 1000 {
		m.SourcePaths = m.SourcePaths[:1000]
	}
	if len(m.MergedFrom) > 1000 {
		return fault.New(fault.Integrity, "merged from %d sessions", len(m.MergedFrom))
	}
	return nil
}

// bounded is a text of another store as far as it is taken over.
func bounded(s string) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// check reads the timeline once: its hash, its count and every turn must be
// what the manifest says.
func (s *Session) check() error {
	a, covered := s.Manifest.Artifact(store.TimelineName)
	if covered && (a.Bytes <= 0 || a.Bytes > maxTimeline) {
		return fault.New(fault.Integrity, "a timeline of %d bytes", a.Bytes)
	}
	s.bytes = -1
	if covered {
		s.bytes = a.Bytes
	}
	h := sha256.New()
	n := 0
	for _, err := range s.lines(h) {
		if err != nil {
			return err
		}
		n++
	}
	s.Sum = hex.EncodeToString(h.Sum(nil))
	if covered && s.Sum != a.SHA256 {
		return fault.New(fault.Integrity, "%s altered (sha mismatch)", store.TimelineName)
	}
	if n != s.Manifest.TurnCount {
		return fault.New(fault.Integrity, "turn count drift (%d vs manifest %d)", n, s.Manifest.TurnCount)
	}
	s.Decided = n - s.Manifest.Provisional
	return nil
}

// Turns iterates the turns; decided says which: those that will not change, or
// those that stand for an unfinished end.
func (s *Session) Turns(decided bool) iter.Seq2[turn.Turn, error] {
	return func(yield func(turn.Turn, error) bool) {
		n := 0
		for t, err := range s.lines(nil) {
			if err != nil {
				yield(t, err)
				return
			}
			if n++; (n <= s.Decided) == decided && !yield(t, nil) {
				return
			}
		}
	}
}

// lines iterates the committed turns, and hashes their lines into h if that is
// not nil.
func (s *Session) lines(h hash.Hash) iter.Seq2[turn.Turn, error] {
	return func(yield func(turn.Turn, error) bool) {
		f, size, err := s.root.open(s.path(store.TimelineName), 1<<62)
		if errors.Is(err, fs.ErrNotExist) {
			err = fault.New(fault.Integrity, "%s missing", store.TimelineName)
		}
		if err != nil {
			yield(turn.Turn{}, err)
			return
		}
		defer f.Close()
		switch {
		case s.bytes > size:
			err = fault.New(fault.Integrity, "%s cut: %d of %d bytes", store.TimelineName, size, s.bytes)
		case s.bytes < 0 && size > maxTimeline:
			err = fault.New(fault.Integrity, "%s has %d bytes, more than %d", store.TimelineName, size, int64(maxTimeline))
		case s.bytes >= 0:
			size = s.bytes
		}
		if err != nil {
			yield(turn.Turn{}, err)
			return
		}
		r := bufio.NewReaderSize(io.LimitReader(f, size), 256<<10)
		for n := 1; ; n++ {
			line, err := boundedLine(r)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(turn.Turn{}, fmt.Errorf("%s, line %d: %w", store.TimelineName, n, err))
				return
			}
			if h != nil {
				_, _ = h.Write(line)
			}
			t, err := parse(line)
			if err != nil {
				yield(t, fault.New(fault.Integrity, "%s, line %d: %w", store.TimelineName, n, err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// boundedLine reads a whole line, newline included.
func boundedLine(r *bufio.Reader) ([]byte, error) {
	var long []byte
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if long = append(long, part...); len(long) > maxLine {
				return nil, fault.New(fault.Integrity, "longer than %d bytes", maxLine)
			}
			continue
		case errors.Is(err, io.EOF) && len(long)+len(part) > 0:
			return nil, fault.New(fault.Integrity, "cut")
		case err != nil:
			return nil, err
		case long != nil:
			return append(long, part...), nil
		}
		return part, nil
	}
}

// parse reads a turn of another store, and refuses what none of ours is.
func parse(line []byte) (turn.Turn, error) {
	t, err := store.ParseTurn(line)
	if err != nil {
		return t, err
	}
	switch t.Class {
	case turn.User, turn.Agent, turn.Thought, turn.ToolUse, turn.Other:
	default:
		return t, errors.New("a turn without a class")
	}
	if t.Text == "" {
		return t, errors.New("a turn without text")
	}
	t.Text = strings.ToValidUTF8(t.Text, "\ufffd")
	t.Source = 0
	for _, s := range []*string{&t.TS, &t.ID, &t.Agent, &t.Session, &t.Origin, &t.Mark} {
		if len(*s) > maxName {
			return t, errors.New("a turn with a name that is too long")
		}
		*s = strings.ToValidUTF8(*s, "\ufffd")
	}
	if t.Tool == nil {
		return t, nil
	}
	if p := t.Tool.Phase; p != turn.Call && p != turn.Result && p != "" {
		return t, errors.New("a tool turn of no known phase")
	}
	for _, s := range []*string{&t.Tool.Name, &t.Tool.CallID} {
		if len(*s) > maxName {
			return t, errors.New("a tool with a name that is too long")
		}
	}
	return t, nil
}
