package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/render"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// parses reports whether r is exactly one JSON object.
func parses(r io.Reader) error {
	dec := jsontext.NewDecoder(r)
	if dec.PeekKind() != '{' {
		return errors.New("llm json does not parse")
	}
	if err := dec.SkipValue(); err != nil {
		return fmt.Errorf("llm json does not parse: %w", err)
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return errors.New("llm json does not parse: data after it")
	}
	return nil
}

// payload compares the arrays of HANDOFF.llm.json with the timeline, byte for
// byte, and parses what surrounds them.
func (r *Report) payload(dir string, m *session.Manifest) {
	f, err := os.Open(filepath.Join(dir, store.PayloadName))
	if errors.Is(err, fs.ErrNotExist) {
		r.add(store.PayloadName, errors.New("HANDOFF.llm.json missing"), "")
		return
	}
	if err != nil {
		r.add(store.PayloadName, err, "")
		return
	}
	defer f.Close()
	head, err := payloadHead(f)
	if err != nil {
		r.add(store.PayloadName, err, "")
		return
	}
	if !bytes.Contains(head, []byte(`"`+m.ManifestSHA256+`"`)) {
		err := parsesFile(f)
		if err == nil && bytes.Contains(head, fmt.Appendf(nil, "\"revision\": %d,", m.Revisions)) {
			err = errors.New("llm json altered (this revision, another manifest)")
		}
		if err != nil {
			r.add(store.PayloadName, err, "")
			return
		}
		r.unproved(store.PayloadName, "made from an earlier revision; show --payload brings it up to date")
		return
	}
	r.add(store.PayloadName, comparePayload(f, int64(len(head)), head, dir, m), "")
	r.derived(head, dir, m)
}

// derived makes the payload's head again from the state, which the manifest
// covers, and compares.
func (r *Report) derived(head []byte, dir string, m *session.Manifest) {
	st, err := store.ReadState(dir, m)
	if err != nil {
		r.unproved("payload head", "the state it is derived from is missing")
		return
	}
	d, err := render.DecodeDigest(st.Fold)
	if err == nil && m.Provisional > 0 {
		a, _ := m.Artifact(store.TimelineName)
		turns, readErr := store.ReadTurnsFrom(dir, st.Marks[0].Bytes, a.Bytes)
		err = readErr
		for i := range turns {
			d.Add(&turns[i])
		}
	}
	if err != nil {
		r.unproved("payload head", "the state it is derived from is of another version")
		return
	}
	want, err := render.PayloadHead(render.Input{M: m, D: d, GeneratedAt: m.UpdatedAt, Title: m.Title, Contract: render.NewContract(st.Contract)})
	if err == nil && !bytes.Equal(bytes.TrimRight(head, " \n"), bytes.TrimRight(want, " \n")) {
		err = errors.New("llm json altered (its head is not that of the session)")
	}
	r.add("payload head", err, "")
}

func parsesFile(f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return parses(f)
}

// maxHead bounds what comes before the arrays.
const maxHead = 1 << 20

var timelineMember = []byte(`"timeline":`)

// payloadHead reads up to the opening bracket of the timeline array.
func payloadHead(f *os.File) ([]byte, error) {
	buf := make([]byte, maxHead)
	n, err := io.ReadFull(f, buf)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("llm json does not parse: empty")
	}
	buf = buf[:n]
	i := bytes.LastIndex(buf, append([]byte("\n  "), timelineMember...))
	if i < 0 {
		i = bytes.Index(buf, append([]byte("\n  "), timelineMember...))
	}
	if i < 0 {
		return nil, errors.New("llm json does not parse: no timeline")
	}
	open := bytes.IndexByte(buf[i:], '[')
	if open < 0 {
		return nil, errors.New("llm json does not parse: no timeline")
	}
	return buf[:i+open+1], nil
}

// comparePayload checks that the arrays repeat the timeline and that the whole
// parses.
func comparePayload(f *os.File, at int64, head []byte, dir string, m *session.Manifest) error {
	r := newMatcher(f, at)
	a, _ := m.Artifact(store.TimelineName)
	for _, tools := range []bool{false, true} {
		first := true
		for line, err := range store.Lines(dir, 0, a.Bytes) {
			if err != nil {
				return fmt.Errorf("read timeline: %w", err)
			}
			if tools && !toolLine(line) {
				continue
			}
			if !first && !r.next([]byte{','}) {
				return errors.New("llm json altered (differs from the timeline)")
			}
			first = false
			if !r.next(line) {
				return errors.New("llm json altered (differs from the timeline)")
			}
		}
		if !r.next([]byte{']'}) {
			return errors.New("llm json altered (differs from the timeline)")
		}
		if !tools && !r.next([]byte(`,"tool_calls":[`)) {
			return errors.New("llm json altered (no tool calls)")
		}
	}
	if !r.next([]byte{'}'}) || !r.atEnd() {
		return errors.New("llm json altered (data after it)")
	}
	return parses(io.MultiReader(bytes.NewReader(head), bytes.NewReader([]byte("]}"))))
}

func toolLine(line []byte) bool {
	i := bytes.Index(line, []byte(`,"class":"`))
	return i >= 0 && bytes.HasPrefix(line[i:], []byte(`,"class":"TOOL"`))
}

// matcher compares a stream with expected bytes, ignoring white space between
// JSON tokens.
type matcher struct {
	r   *os.File
	buf []byte
	pos int
	off int64
	eof bool
}

func newMatcher(f *os.File, at int64) *matcher { return &matcher{r: f, off: at} }

func (m *matcher) fill() bool {
	if m.eof {
		return false
	}
	if cap(m.buf) == 0 {
		m.buf = make([]byte, 0, 256<<10)
	}
	n, err := m.r.ReadAt(m.buf[:cap(m.buf)], m.off)
	m.buf, m.pos = m.buf[:n], 0
	m.off += int64(n)
	if err != nil {
		m.eof = true
	}
	return n > 0
}

func (m *matcher) skipSpace() bool {
	for {
		if m.pos == len(m.buf) && !m.fill() {
			return false
		}
		switch m.buf[m.pos] {
		case ' ', '\n', '\t', '\r':
			m.pos++
		default:
			return true
		}
	}
}

// next reports whether want comes next; space before each of its own commas,
// colons and brackets is tolerated only in front of it.
func (m *matcher) next(want []byte) bool {
	if len(want) < 32 { // structure, not a line
		for _, c := range want {
			if !m.skipSpace() || m.buf[m.pos] != c {
				return false
			}
			m.pos++
		}
		return true
	}
	if !m.skipSpace() {
		return false
	}
	for len(want) > 0 {
		if m.pos == len(m.buf) && !m.fill() {
			return false
		}
		n := min(len(want), len(m.buf)-m.pos)
		if !bytes.Equal(want[:n], m.buf[m.pos:m.pos+n]) {
			return false
		}
		m.pos += n
		want = want[n:]
	}
	return true
}

func (m *matcher) atEnd() bool { return !m.skipSpace() }
