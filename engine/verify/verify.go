// Package verify checks a handoff against itself and against the sources that
// still exist: the seal, every artifact's content, the counts, and the bytes
// the turns came from. It only reads, and says what it cannot prove.
package verify

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"crypto/sha256"
	"encoding/hex"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// The outcomes of a check.
const (
	Pass = "pass"
	Fail = "fail"
	// Unproved says that nothing is known to be wrong and nothing shows that
	// it is right: a source that is gone or has gone on, a member that only
	// our own manifests have.
	Unproved = "unproved"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"`
}

// Report is what verifying one session came to.
type Report struct {
	Session string `json:"session"`
	Project string `json:"project"`
	Dir     string `json:"dir"`
	OK      bool   `json:"ok"`
	Reason  string `json:"reason,omitempty"` // first failed check
	Turns   int    `json:"turns"`
	// Quarantined and Unknown count what is kept in quarantine as damage, and
	// as records of a type that the format does not know.
	Quarantined int     `json:"quarantined"`
	Unknown     int     `json:"unknown_records"`
	Checks      []Check `json:"checks"`

	next *session.Manifest // of a commit that was cut short, or nil
}

// Line is the report as one line for people.
func (r Report) Line() string {
	if !r.OK {
		return fmt.Sprintf("FAIL %s: %s", r.Session, r.Reason)
	}
	var unproved []string
	for _, c := range r.Checks {
		if c.Result == Unproved {
			unproved = append(unproved, c.Name+": "+c.Detail)
		}
	}
	line := fmt.Sprintf("PASS %s [%s]: manifest sha ok / timeline=%d turns / llm json parses", r.Session, r.Project, r.Turns)
	if r.Quarantined+r.Unknown > 0 {
		line += fmt.Sprintf(" / quarantine: %d damaged, %d unknown", r.Quarantined, r.Unknown)
	}
	if len(unproved) > 0 {
		line += " / unproved: " + strings.Join(unproved, "; ")
	}
	return line
}

func (r *Report) add(name string, err error, detail string) {
	c := Check{Name: name, Result: Pass, Detail: detail}
	if err != nil {
		c.Result, c.Detail = Fail, err.Error()
		if r.Reason == "" {
			r.Reason = err.Error()
		}
	}
	r.Checks = append(r.Checks, c)
}

func (r *Report) unproved(name, detail string) {
	r.Checks = append(r.Checks, Check{Name: name, Result: Unproved, Detail: detail})
}

// attempts is how often a session that fails is looked at again because a
// build committed meanwhile.
const attempts = 5

// Session verifies the session at loc. The error is fault.NotFound when there
// is none; a failed check is no error but a report that is not OK. A session
// that is being built is looked at again until its manifest holds still.
func Session(ctx context.Context, s store.Store, loc store.Location) (Report, error) {
	dir := s.SessionDir(loc.Project, loc.Dir)
	for try := 1; ; try++ {
		before, err := os.ReadFile(filepath.Join(dir, store.ManifestName))
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return Report{}, fault.New(fault.NotFound, "no manifest for %s", loc.Dir)
			}
			return Report{}, fault.New(fault.Internal, "read manifest: %w", err)
		}
		r := check(ctx, loc, dir, before)
		if r.OK || try == attempts {
			return r, ctx.Err()
		}
		after, err := os.ReadFile(filepath.Join(dir, store.ManifestName))
		if err == nil && bytes.Equal(before, after) && !busy(ctx, s, r.Session) {
			return r, ctx.Err()
		}
	}
}

// busy waits for a builder that holds the session, and reports whether there
// was one.
func busy(ctx context.Context, s store.Store, id string) bool {
	path := s.SessionLock(id)
	if _, err := os.Stat(path); err != nil {
		return false
	}
	if l, err := safefile.Acquire(ctx, path, 0); err == nil {
		_ = l.Release()
		return false
	}
	if l, err := safefile.Acquire(ctx, path, 2*time.Second); err == nil {
		_ = l.Release()
	}
	return true
}

func check(ctx context.Context, loc store.Location, dir string, raw []byte) Report {
	r := Report{Session: loc.Dir, Project: loc.Project, Dir: dir}
	err := session.Sealed(raw)
	m, decodeErr := session.Decode(raw)
	if decodeErr != nil {
		r.add("manifest", decodeErr, "")
		return r
	}
	r.Session, r.Turns, r.Quarantined, r.Unknown = m.Session, m.TurnCount, m.Quarantined, m.Unknown
	r.next = staged(dir, m)
	r.add("manifest", err, "seal")
	if err == nil && m.Project != loc.Project && m.PrevProject == loc.Project {
		r.unproved("place", "a rename to "+m.Project+" was interrupted; the next build or rename completes it")
	} else if err == nil && m.Project != loc.Project {
		r.add("place", fmt.Errorf("manifest says project %s, stored under %s", m.Project, loc.Project), "")
	}
	r.timeline(dir, m)
	if m.Schema == 0 {
		r.unproved("artifacts", "this manifest covers no content")
		r.foreignPayload(dir)
	} else if len(m.MergedFrom) > 0 && len(m.Renders) == 0 {
		r.appended(dir, m)
		r.add("renders", errors.New("merged and never rendered; merge it again with --render"), "")
	} else {
		r.appended(dir, m)
		r.renders(dir, m)
		r.payload(dir, m)
		r.sources(ctx, m)
	}
	r.OK = r.Reason == ""
	return r
}

// timeline counts the committed lines.
func (r *Report) timeline(dir string, m *session.Manifest) {
	limit := int64(-1)
	if a, ok := m.Artifact(store.TimelineName); ok {
		limit = a.Bytes
	}
	n, err := countLines(dir, limit)
	if err == nil && n != m.TurnCount {
		err = fmt.Errorf("turn count drift (%d vs manifest %d)", n, m.TurnCount)
	}
	if err != nil && r.ahead(dir, store.TimelineName) {
		r.unproved("timeline", interrupted)
		return
	}
	r.add("timeline", err, fmt.Sprintf("%d turns", n))
}

func countLines(dir string, limit int64) (n int, err error) {
	for _, err := range store.Lines(dir, 0, limit) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return n, errors.New("timeline.jsonl missing")
		case err != nil:
			return n, fmt.Errorf("timeline.jsonl torn: %w", err)
		}
		n++
	}
	return n, nil
}

// appended hashes the committed part of every appended file.
func (r *Report) appended(dir string, m *session.Manifest) {
	for _, a := range m.Committed {
		got, n, err := hashFile(filepath.Join(dir, a.Name), a.Bytes)
		if (err != nil || n < a.Bytes || got != a.SHA256) && r.ahead(dir, a.Name) {
			r.unproved(a.Name, interrupted)
			continue
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("%s missing", a.Name)
		case err == nil && n < a.Bytes:
			err = fmt.Errorf("%s cut: %d of %d bytes", a.Name, n, a.Bytes)
		case err == nil && got != a.SHA256:
			err = fmt.Errorf("%s altered (sha mismatch)", a.Name)
		}
		r.add(a.Name, err, "")
		if info, statErr := os.Lstat(filepath.Join(dir, a.Name)); err == nil && statErr == nil && info.Size() > a.Bytes {
			r.unproved(a.Name, fmt.Sprintf("%d bytes behind what is committed; the next build drops them", info.Size()-a.Bytes))
		}
	}
	if m.Salvaged > 0 {
		r.unproved("history", fmt.Sprintf("damaged and taken over as found at revision %d", m.Salvaged))
	}
	if m.State != "" {
		got, _, err := hashFile(filepath.Join(dir, m.State), -1)
		if err == nil && got != m.StateSHA256 {
			err = errors.New("state altered (sha mismatch)")
		}
		if err != nil {
			r.add("state", err, "")
		}
	}
}

// renders compares the small renders with their hashes, which were taken with
// zeros in place of the manifest's own.
func (r *Report) renders(dir string, m *session.Manifest) {
	for _, a := range m.Renders {
		raw, err := safefile.ReadSmall(filepath.Join(dir, a.Name), store.MaxRender)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("%s missing", a.Name)
		case err == nil && seal.Sum(zeroed(raw, m)) == a.SHA256:
		case err == nil && r.aheadRender(raw, a.Name):
			r.unproved(a.Name, interrupted)
			continue
		case err == nil && editedByHand(zeroed(raw, m), a):
			r.unproved(a.Name, "the contract was edited by hand; the next build takes it over")
			continue
		case err == nil:
			err = fmt.Errorf("%s altered (sha mismatch)", a.Name)
		}
		r.add(a.Name, err, "")
	}
}

// aheadRender is ahead for a render.
func (r *Report) aheadRender(raw []byte, name string) bool {
	if r.next == nil {
		return false
	}
	a, ok := r.next.Artifact(name)
	return ok && seal.Sum(zeroed(raw, r.next)) == a.SHA256
}

// zeroed is a render as it was hashed.
func zeroed(raw []byte, m *session.Manifest) []byte {
	return bytes.ReplaceAll(raw, []byte(m.ManifestSHA256), []byte(seal.Zero))
}

// editedByHand reports whether only the part of a brief differs that people
// write.
func editedByHand(raw []byte, a session.Artifact) bool {
	return a.Generated > 0 && int64(len(raw)) >= a.Generated && seal.Sum(raw[:a.Generated]) == a.GeneratedSHA256
}

// sources hashes what was read of every source again.
func (r *Report) sources(ctx context.Context, m *session.Manifest) {
	for _, s := range m.Sources {
		name := "source " + filepath.Base(s.Path)
		if ctx.Err() != nil {
			r.unproved(name, "not looked at")
			continue
		}
		if s.Key != "" {
			r.unproved(name, exported(s.Path))
			continue
		}
		if strings.HasSuffix(s.Path, ".zst") {
			r.unproved(name, "compressed; not read again")
			continue
		}
		got, n, err := hashFile(safefile.PathBytes(s.Path), s.Bytes)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.unproved(name, "gone")
		case err != nil:
			r.unproved(name, "unreadable")
		case n < s.Bytes || got != s.SHA256:
			r.unproved(name, "no longer what was captured")
		default:
			detail := ""
			if info, err := os.Stat(safefile.PathBytes(s.Path)); err == nil && info.Size() > s.Bytes {
				detail = fmt.Sprintf("%d more bytes not captured yet", info.Size()-s.Bytes)
			}
			r.add(name, nil, detail)
		}
	}
}

// exported says what can be told of a session of a database or tree, whose
// export is made by what a checker must not share: whether it is still there.
func exported(path string) string {
	for _, file := range []string{path, path[:max(0, strings.LastIndexByte(path, '#'))]} {
		if _, err := os.Lstat(safefile.PathBytes(file)); err == nil {
			return "read as an export; not exported again"
		}
	}
	return "gone"
}

// hashFile hashes up to limit bytes of a regular file; limit < 0 is all.
func hashFile(path string, limit int64) (sum string, n int64, err error) {
	f, _, err := safefile.OpenSource(path)
	if err != nil {
		if _, statErr := os.Lstat(path); errors.Is(statErr, fs.ErrNotExist) {
			return "", 0, statErr
		}
		return "", 0, err
	}
	defer f.Close()
	var src io.Reader = f
	if limit >= 0 {
		src = io.LimitReader(f, limit)
	}
	h := sha256.New()
	n, err = io.CopyBuffer(onlyHash{h}, src, make([]byte, 256<<10))
	return hex.EncodeToString(h.Sum(nil)), n, err
}

type onlyHash struct{ hash.Hash }

// foreignPayload checks the reference's payload as the reference does.
func (r *Report) foreignPayload(dir string) {
	f, err := os.Open(filepath.Join(dir, store.PayloadName))
	if err == nil {
		defer f.Close()
		err = parses(bufio.NewReader(f))
	}
	r.add(store.PayloadName, err, "")
}
