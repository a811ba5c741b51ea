package ingest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/engine/session"
)

// File is an open source.
type File struct {
	// Path is where the source really is, links resolved, as
	// safefile.PathText writes it.
	Path string
	f    *os.File
	zst  bool
	// member is not nil for a session of a bundle; then f is nil.
	member  *member
	bundled bool

	size         int64
	inode        string
	mtime, ctime string
}

// Open opens a source for reading. The error is fault.SourceMissing when it
// does not exist or is not a regular file.
func Open(path string) (*File, error) { return OpenKeyed(path, "") }

// OpenKeyed is Open for a session of a bundle whose change key was just listed.
// Without one, "", the bundle is asked.
func OpenKeyed(path, key string) (*File, error) {
	f, real, err := safefile.OpenSource(path)
	if fault.Is(err, fault.SourceMissing) {
		if m, memberErr := openMember(path, key); m != nil || memberErr != nil {
			return m, memberErr
		}
	}
	if err != nil && strings.HasSuffix(path, ".jsonl") && fault.Is(err, fault.SourceMissing) {
		// Codex compresses idle sessions in place and removes the original.
		if z, zreal, zerr := safefile.OpenSource(path + ".zst"); zerr == nil {
			f, real, err = z, zreal, nil
		}
	}
	if err != nil {
		return nil, err
	}
	s := &File{Path: safefile.PathText(real), f: f, zst: strings.HasSuffix(real, ".zst")}
	if b, found, err := bundleOf(f, real); err != nil || found && b.Single() {
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		m := &member{bundle: b, path: real, key: key}
		var meta session.Meta
		b.About(real, &meta)
		m.id = meta.ID
		return newMember(m, real)
	} else if found {
		s.bundled = true
	}
	if err := s.look(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return s, nil
}

func (s *File) look() error {
	info, err := s.f.Stat()
	if err != nil {
		return fmt.Errorf("look at source: %w", err)
	}
	s.size = info.Size()
	s.inode, s.ctime = safefile.Identity(info)
	s.mtime = strconv.FormatInt(info.ModTime().UnixNano(), 10)
	return nil
}

// Close closes the source.
func (s *File) Close() error {
	if s.member == nil {
		return s.f.Close()
	}
	if s.member.spool == nil {
		return nil
	}
	return s.member.spool.close()
}

// Name is the path by which the harness knows the source: without the suffix
// of compression, which comes and goes.
func (s *File) Name() string { return strings.TrimSuffix(s.Path, ".zst") }

// Base is the file name without the extensions that transcripts have.
func (s *File) Base() string {
	b := filepath.Base(s.Name())
	if s.member != nil {
		b = s.member.base()
	}
	for _, ext := range []string{".jsonl", ".json", ".txt", ".md"} {
		if t, ok := strings.CutSuffix(b, ext); ok && t != "" {
			return t
		}
	}
	return b
}

// The bounds on what a compressed source may unfold to.
const (
	maxUnfold      = 200       // times its size ...
	maxUnfoldFloor = 256 << 20 // ... but always this much
	zstdWindow     = 128 << 20
)

// content returns the content from offset on, at most to what the file held
// when it was opened.
func (s *File) content(offset int64) (io.ReadCloser, error) {
	if s.member != nil {
		sp, err := s.export()
		if err != nil {
			return nil, err
		}
		offset = min(offset, sp.size)
		return io.NopCloser(io.NewSectionReader(sp, offset, sp.size-offset)), nil
	}
	if !s.zst {
		if offset > s.size {
			offset = s.size
		}
		return io.NopCloser(io.NewSectionReader(s.f, offset, s.size-offset)), nil
	}
	dec, err := zstd.NewReader(io.NewSectionReader(s.f, 0, s.size),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return nil, fmt.Errorf("open compressed source: %w", err)
	}
	limit := max(s.size*maxUnfold, maxUnfoldFloor)
	r := &unfolding{dec: dec, left: limit}
	if _, err := io.CopyN(io.Discard, r, offset); err != nil {
		dec.Close()
		if errors.Is(err, io.EOF) {
			return io.NopCloser(strings.NewReader("")), nil
		}
		return nil, fmt.Errorf("read compressed source: %w", err)
	}
	return r, nil
}

// unfolding is a decompressor that refuses to be a bomb.
type unfolding struct {
	dec  *zstd.Decoder
	left int64
}

func (u *unfolding) Read(p []byte) (int, error) {
	n, err := u.dec.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, fault.New(fault.Unsupported, "compressed source unfolds to more than %d times its size", maxUnfold)
	}
	return n, err
}

func (u *unfolding) Close() error {
	u.dec.Close()
	return nil
}

// Head returns up to n bytes from the start; complete says that this is all.
func (s *File) Head(n int) (head []byte, complete bool, err error) {
	r, err := s.content(0)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	head, err = io.ReadAll(io.LimitReader(r, int64(n)+1))
	if err != nil {
		return nil, false, fmt.Errorf("read source: %w", err)
	}
	if len(head) > n {
		return head[:n], false, nil
	}
	return head, true, nil
}

// stamped reports whether the file is as it was, by its looks alone.
func (s *File) stamped(o *Source) bool {
	if s.member != nil {
		return o.Key == s.member.key && o.Path == s.Path
	}
	return o.Size == s.size && o.Inode == s.inode && o.ModTime == s.mtime && o.ChangeTime == s.ctime && o.Path == s.Path
}

// stamp notes how the file looks.
func (s *File) stamp(o *Source) {
	o.Path, o.Size, o.Inode, o.ModTime, o.ChangeTime = s.Path, s.size, s.inode, s.mtime, s.ctime
	o.Gone, o.Key = false, ""
	if s.member != nil {
		o.Key = s.member.key
	}
}

// sumRange hashes the content from..to; ok is false when it ends before.
func (s *File) sumRange(from, to int64) (sum string, ok bool, err error) {
	r, err := s.content(from)
	if err != nil {
		return "", false, err
	}
	defer r.Close()
	h := seal.NewHash()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(r, to-from), make([]byte, max(1, min(256<<10, to-from))))
	if err != nil {
		return "", false, fmt.Errorf("read source: %w", err)
	}
	return h.Sum(), n == to-from, nil
}

// StartsWith reports whether the first n bytes of content have the given
// hash.
func (s *File) StartsWith(n int64, sum string) bool {
	got, ok, err := s.sumRange(0, n)
	return err == nil && ok && got == sum
}

// sum is the hash of all that was read of o.
func (o *Source) sum() string {
	h, err := seal.RestoreHash(o.Hash)
	if err != nil {
		return ""
	}
	return h.Sum()
}

// relation says how a file stands to what was captured of a source.
type relation int

const (
	unchanged relation = iota // nothing to read
	touched                   // same content, other looks
	grown                     // what was captured, and more
	other                     // other content
)

// compare finds out how the file stands to o with as little reading as the
// case allows: an append by the same inode reads the two ends, everything
// else the whole of what was captured.
func (s *File) compare(o *Source) (relation, error) {
	if s.stamped(o) {
		return unchanged, nil
	}
	if s.member != nil {
		if _, err := s.export(); err != nil {
			return other, err
		}
	}
	if !s.zst && s.size < o.Bytes {
		return other, nil
	}
	if !s.zst && s.inode == o.Inode && s.inode != "" && s.Path == o.Path && s.size > o.Bytes {
		head, ok, err := s.sumRange(0, o.HeadBytes)
		if err != nil || !ok || head != o.Head {
			return other, err
		}
		tail, ok, err := s.sumRange(max(0, o.Bytes-identifying), o.Bytes)
		if err != nil || !ok || tail != o.Tail {
			return other, err
		}
		return grown, nil
	}
	whole, ok, err := s.sumRange(0, o.Bytes)
	if err != nil || !ok || whole != o.sum() {
		return other, err
	}
	if !s.zst && s.size == o.Bytes {
		return touched, nil
	}
	return grown, nil
}

// startsLike reports whether the file begins as o did.
func (s *File) startsLike(o *Source) (bool, error) {
	if o.HeadBytes == 0 {
		return false, nil
	}
	head, ok, err := s.sumRange(0, o.HeadBytes)
	return ok && head == o.Head, err
}
