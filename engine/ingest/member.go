package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/all"
	"handoffd/engine/safefile"
	"handoffd/engine/sqlite"
)

// member is a session inside a bundle, as a source. What is read is an export
// of it, which is made when somebody asks for content: whether it changed, its
// key tells.
type member struct {
	bundle harness.Bundle
	path   string // of the bundle
	id     string
	key    string
	spool  *spool // nil until content was asked for
}

// openMember returns the source that a path names which is no file of its own;
// nil when it is none. key is what a listing just told, or "".
func openMember(path, key string) (*File, error) {
	base, id, ok := harness.Split(path)
	if !ok {
		return nil, nil
	}
	f, real, err := safefile.OpenSource(base)
	if err != nil {
		return nil, err
	}
	b, found, err := bundleOf(f, real)
	_ = f.Close()
	if err != nil {
		return nil, err
	}
	if !found || b.Single() {
		return nil, nil
	}
	return newMember(&member{bundle: b, path: real, id: id, key: key}, harness.Join(real, id))
}

// newMember makes a source of a session; the error is fault.SourceMissing when
// it is not in its bundle.
func newMember(m *member, name string) (*File, error) {
	if m.key == "" {
		key, ok, err := m.bundle.Key(m.path, m.id)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fault.New(fault.SourceMissing, "source not found: no session %s in %s", m.id, m.path)
		}
		m.key = key
	}
	return &File{Path: safefile.PathText(name), member: m}, nil
}

// bundleOf finds out whether an open file is a bundle.
func bundleOf(f *os.File, path string) (harness.Bundle, bool, error) {
	var head [len(sqlite.Magic)]byte
	n, _ := f.ReadAt(head[:], 0)
	return all.Bundle(path, string(head[:n]) == sqlite.Magic)
}

// Format is the format of a session of a bundle, nil of any other source: the
// content must tell.
func (s *File) Format() harness.Format {
	if s.member == nil {
		return nil
	}
	return s.member.bundle
}

// Bundled says that the source is a bundle of many sessions, of which one has
// to be named.
func (s *File) Bundled() bool { return s.bundled }

// Keyed reports whether the source is a session of a bundle that has not
// changed since o was noted.
func (s *File) Keyed(o *Source) bool { return s.member != nil && s.stamped(o) && !o.Reread }

// export makes the content of a session.
func (s *File) export() (*spool, error) {
	m := s.member
	if m.spool == nil {
		sp := &spool{}
		if err := m.bundle.Export(m.path, m.id, sp); err != nil {
			_ = sp.close()
			return nil, err
		}
		m.spool, s.size = sp, sp.size
	}
	return m.spool, nil
}

// Session is one session of a bundle.
type Session struct {
	harness.Member
	Path string // names it as a source
}

// Sessions lists the sessions in the bundle at path, the one that changed last
// first; ok is false when path is no bundle of many. The errors are those of
// harness.Bundle, and fault.SourceMissing.
func Sessions(path string) (list []Session, ok bool, err error) {
	f, real, err := safefile.OpenSource(path)
	if err != nil {
		return nil, false, err
	}
	b, found, err := bundleOf(f, real)
	_ = f.Close()
	if err != nil || !found || b.Single() {
		return nil, err != nil, err
	}
	l, err := b.List(real, nil)
	if err != nil {
		return nil, true, err
	}
	return Sorted(real, l), true, nil
}

// Sorted lists the sessions of a listing, the one that changed last first.
func Sorted(path string, l *harness.Listing) []Session {
	list := make([]Session, 0, len(l.Members))
	for _, m := range l.Members {
		list = append(list, Session{Member: m, Path: safefile.PathText(harness.Join(path, m.ID))})
	}
	slices.SortFunc(list, func(a, b Session) int {
		if a.Updated != b.Updated {
			return int(min(1, max(-1, b.Updated-a.Updated)))
		}
		return bytes.Compare([]byte(a.ID), []byte(b.ID))
	})
	return list
}

// Exists reports whether the source that a manifest names is still there: a
// file, or a session in its bundle. It satisfies fs.ErrNotExist when it is not;
// another error says that nobody can tell now.
func Exists(text string) error {
	path := safefile.PathBytes(text)
	_, err := os.Lstat(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, memberErr := openMember(path, "")
	switch {
	case f == nil && memberErr == nil, fault.Is(memberErr, fault.SourceMissing):
		return err
	case memberErr != nil:
		return memberErr
	}
	return f.Close()
}

const (
	// spoolMemory is up to what size an export is kept in memory.
	spoolMemory = 4 << 20
	// spoolLimit bounds an export, in bytes.
	spoolLimit = 16 << 30
)

// spool holds an export: a small one in memory, a large one in a private file
// that has no name.
type spool struct {
	small []byte
	f     *os.File
	name  string // where the system keeps names of open files
	size  int64
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	if s.size+int64(len(p)) > spoolLimit {
		return 0, fault.New(fault.Unsupported, "a session of more than %d GiB", spoolLimit>>30)
	}
	if s.f == nil && len(s.small)+len(p) > spoolMemory {
		if err := s.toFile(); err != nil {
			return 0, err
		}
	}
	s.size += int64(len(p))
	if s.f == nil {
		s.small = append(s.small, p...)
		return len(p), nil
	}
	n, err := s.f.Write(p)
	if err != nil {
		err = fault.New(fault.Internal, "write export: %w", err)
	}
	return n, err
}

func (s *spool) toFile() error {
	f, err := os.CreateTemp("", "handoffd-export-*")
	if err != nil {
		return fault.New(fault.Internal, "make room for an export: %w", err)
	}
	s.f, s.name = f, f.Name()
	if os.Remove(s.name) == nil {
		s.name = ""
	}
	if _, err := f.Write(s.small); err != nil {
		return fault.New(fault.Internal, "write export: %w", err)
	}
	s.small = nil
	return nil
}

// Reset implements harness.Spool.
func (s *spool) Reset() error {
	s.small, s.size = s.small[:0], 0
	if s.f == nil {
		return nil
	}
	if err := s.f.Truncate(0); err != nil {
		return fault.New(fault.Internal, "write export: %w", err)
	}
	_, err := s.f.Seek(0, io.SeekStart)
	return err
}

// ReadAt implements io.ReaderAt.
func (s *spool) ReadAt(p []byte, at int64) (int, error) {
	if s.f != nil {
		n, err := s.f.ReadAt(p, at)
		if err != nil && !errors.Is(err, io.EOF) {
			err = fmt.Errorf("read export: %w", err)
		}
		return n, err
	}
	return bytes.NewReader(s.small).ReadAt(p, at)
}

func (s *spool) close() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	if s.name != "" {
		_ = os.Remove(s.name)
	}
	return err
}

// memberBase is the last part of a bundled session's name.
func (m *member) base() string {
	if m.bundle.Single() {
		return filepath.Base(m.path)
	}
	return m.id
}
