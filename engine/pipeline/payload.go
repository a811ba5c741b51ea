package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// lazyPayload is from which timeline size on the full payload is left to rest
// or to whoever asks for it: it is as large as the session, and a turn must
// not cost that.
const lazyPayload = 256 << 10

// payloadHead is where HANDOFF.llm.json names the manifest it was made from.
const payloadHead = 256 << 10

// payloadCurrent reports whether the payload was made from this revision.
func payloadCurrent(dir string, m *session.Manifest) bool {
	f, err := os.Open(filepath.Join(dir, store.PayloadName))
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, payloadHead)
	n, err := io.ReadFull(f, head)
	if err != nil && n == 0 {
		return false
	}
	info, err := f.Stat()
	tail := make([]byte, len(render.PayloadTail))
	if err != nil || info.Size() < int64(len(tail)) {
		return false
	}
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil || string(tail) != render.PayloadTail {
		return false
	}
	end := bytes.Index(head[:n], []byte(`"timeline":`))
	return bytes.Contains(head[:n], []byte(`"`+m.ManifestSHA256+`"`)) && end > 0
}

// RefreshPayload brings the full payload of a session up to date, if it is
// not. It takes the session's lock.
func (b *Builder) RefreshPayload(ctx context.Context, loc store.Location) error {
	m, _, err := store.ReadManifest(b.Store.SessionDir(loc.Project, loc.Dir))
	if err != nil {
		return fmt.Errorf("refresh payload: %w", err)
	}
	lock, err := b.Lock(ctx, m.Session)
	if err != nil {
		return err
	}
	defer lock.Release()
	l, err := b.load(loc, nil)
	if err != nil {
		return err
	}
	if l.rebuilt != nil || bare(l.m) || payloadCurrent(l.dir, l.m) {
		return nil
	}
	return b.writePayload(l)
}

// WritePayload streams what HANDOFF.llm.json holds for a revision.
func WritePayload(w io.Writer, dir string, in render.Input) error {
	head, err := render.PayloadHead(in)
	if err != nil {
		return fmt.Errorf("render payload: %w", err)
	}
	a, _ := in.M.Artifact(store.TimelineName)
	if _, err := w.Write(head); err != nil {
		return err
	}
	if err := copyLines(w, dir, a.Bytes, func([]byte) bool { return true }); err != nil {
		return err
	}
	if _, err := io.WriteString(w, render.PayloadMiddle); err != nil {
		return err
	}
	if err := copyLines(w, dir, a.Bytes, isTool); err != nil {
		return err
	}
	_, err = io.WriteString(w, render.PayloadTail)
	return err
}

var toolClass = []byte(`,"class":"TOOL","text":"`)

// isTool tells a TOOL turn by its line: seq and ts come before the class, and
// a ts cannot hold an unescaped quote.
func isTool(line []byte) bool {
	i := bytes.Index(line, []byte(`,"class":"`))
	return i >= 0 && bytes.HasPrefix(line[i:], toolClass)
}

func copyLines(w io.Writer, dir string, bytes int64, want func([]byte) bool) error {
	first := true
	for line, err := range store.Lines(dir, 0, bytes) {
		if err != nil {
			return fmt.Errorf("read timeline: %w", err)
		}
		if !want(line) {
			continue
		}
		sep := ",\n"
		if first {
			sep, first = "\n", false
		}
		if _, err := io.WriteString(w, sep); err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// writePayload replaces the payload by that of the loaded revision.
func (b *Builder) writePayload(l *loaded) error {
	path := filepath.Join(l.dir, store.PayloadName)
	f, err := safefile.CreateTemp(path)
	if err != nil {
		return err
	}
	var g safefile.Group
	defer g.Discard()
	g.Add(f, path)
	w := bufio.NewWriterSize(f, 256<<10)
	if err := WritePayload(w, l.dir, b.payloadInput(l)); err != nil {
		return fmt.Errorf("write payload: %w", err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write payload: %w", err)
	}
	return g.Commit()
}

func (b *Builder) payloadInput(l *loaded) render.Input {
	return render.Input{M: l.m, D: l.end, GeneratedAt: l.m.UpdatedAt, Title: l.m.Title, Contract: l.contract, MaxTokens: b.opt.MaxBriefTokens}
}
