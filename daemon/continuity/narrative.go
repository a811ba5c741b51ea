package continuity

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/all"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/sqlite"
	"handoffd/engine/turn"
	"handoffd/policy/capture"
)

const (
	// tailBytes is how much of the end of a transcript is read for what was
	// said last, and wholeBytes how much of one that only makes sense whole.
	tailBytes  = 1 << 20
	wholeBytes = 64 << 20
	// flailTurns is how far back signs of being stuck are looked for, and
	// flailTimes how often they must come.
	flailTurns = 60
	flailTimes = 3
)

// narrative implements capture.Read over every format that the engine knows.
func narrative(path string) (capture.Narrative, error) {
	file, id, _ := harness.Split(path)
	if _, err := os.Stat(path); err == nil {
		file, id = path, ""
	}
	if b, found, err := all.Bundle(file, isDatabase(file)); found {
		if err != nil {
			return capture.Narrative{}, capture.NoTranscript(path, err)
		}
		var out spool
		if err := b.Export(file, id, &out); err != nil {
			return capture.Narrative{}, capture.NoTranscript(path, err)
		}
		return told(b, path, out.Bytes())
	}
	f, real, err := safefile.OpenSource(file)
	if err != nil {
		return capture.Narrative{}, capture.NoTranscript(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return capture.Narrative{}, capture.NoTranscript(path, err)
	}
	tail, err := readTail(f, info.Size(), tailBytes)
	if err != nil {
		return capture.Narrative{}, capture.NoTranscript(path, err)
	}
	head := make([]byte, min(info.Size(), all.HeadBytes))
	if n, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return capture.Narrative{}, capture.NoTranscript(path, err)
	} else if n < len(head) {
		head = head[:n]
	}
	format, err := all.Detect(real, head, int64(len(head)) == info.Size(), "")
	// Lines in Claude Code's envelope are read by its own rule, also where
	// they lack what makes them certain.
	lines, objects := capture.Lines(tail)
	switch {
	case err == nil && format.Traits().Container == harness.Lines, err != nil && !objects:
		if err == nil {
			err = fault.New(fault.Unsupported, "it holds no JSON object")
		}
		return capture.Narrative{}, capture.NoTranscript(path, err)
	case err != nil || format.Traits().Harness == "claude-code" || lines.Text != "":
		if err == nil {
			if n, err := told(format, real, tail); err == nil {
				lines.Flail = n.Flail
			}
		}
		return lines, nil
	}
	if format.Traits().Container.Whole() {
		if tail, err = readTail(f, info.Size(), wholeBytes); err != nil || int64(len(tail)) < info.Size() {
			return capture.Narrative{}, capture.NoTranscript(path, errors.Join(err, fmt.Errorf("it is larger than %d bytes", wholeBytes)))
		}
	}
	return told(format, real, tail)
}

// readTail returns the last bytes of a file, without a partial first line.
func readTail(f io.ReaderAt, size, limit int64) ([]byte, error) {
	from := max(0, size-limit)
	b := make([]byte, size-from)
	n, err := f.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if b = b[:n]; from > 0 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, nil
}

func isDatabase(path string) bool {
	f, _, err := safefile.OpenSource(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(sqlite.Magic))
	n, _ := f.ReadAt(head, 0)
	return string(head[:n]) == sqlite.Magic
}

// told returns what the agent said last, which may be several turns on end.
func told(f harness.Format, path string, content []byte) (n capture.Narrative, err error) {
	var h heard
	meta := session.Meta{}
	reader := harness.Follower{Format: f, Env: harness.Env{Path: path}}
	if err := reader.Pass(bytes.NewReader(content), harness.Cursor{}, &meta, &h); err != nil {
		return n, capture.NoTranscript(path, err)
	}
	if h.turns == 0 {
		return n, capture.NoTranscript(path, fault.New(fault.NoTurns, "no usable turn"))
	}
	n.Text, n.Newest = string(bytes.TrimSpace(h.said)), h.newest
	if at, err := time.Parse(time.RFC3339, meta.LastTS); err == nil && at.After(n.Newest) {
		n.Newest = at
	}
	n.Flail = h.flail()
	return n, nil
}

// heard implements harness.Handler.
type heard struct {
	turns  int
	said   []byte
	open   bool
	newest time.Time
	calls  []string // the newest commands
	failed []bool   // the newest results
}

// Unit implements harness.Handler.
func (h *heard) Unit(out *harness.Out, _ harness.Position) error {
	for _, t := range out.Turns {
		h.turns++
		if at, err := time.Parse(time.RFC3339, t.TS); err == nil && at.After(h.newest) {
			h.newest = at
		}
		switch {
		case t.Class == turn.Agent && h.open:
			h.said = append(append(h.said, '\n'), t.Text...)
		case t.Class == turn.Agent:
			h.said, h.open = []byte(t.Text), true
		case t.Class == turn.User:
			h.open = false
		case t.Class == turn.ToolUse:
			h.open = false
			if t.Tool == nil {
				continue
			}
			if t.Tool.Phase == turn.Call && t.Tool.Command != "" {
				h.calls = append(h.calls, t.Tool.Command)
			}
			if t.Tool.Phase == turn.Result {
				h.failed = append(h.failed, t.Tool.Error || t.Tool.Exit != nil && *t.Tool.Exit != 0)
			}
		}
	}
	return nil
}

// Reject implements harness.Handler.
func (h *heard) Reject(harness.Fragment) error { return nil }

// Settled implements harness.Handler.
func (h *heard) Settled(harness.Cursor, *harness.Out) error { return nil }

// flail lists the signs that a session went round in circles.
func (h *heard) flail() (out []string) {
	calls := h.calls[max(0, len(h.calls)-flailTurns):]
	count := map[string]int{}
	for _, c := range calls {
		count[c]++
	}
	for _, c := range calls {
		if n := count[c]; n >= flailTimes {
			out = append(out, fmt.Sprintf("the same command %d times: %s", n, capture.Clip(c, 200)))
			count[c] = 0
		}
	}
	failed := 0
	recent := h.failed[max(0, len(h.failed)-flailTurns):]
	for _, f := range recent {
		if f {
			failed++
		}
	}
	if failed >= flailTimes {
		out = append(out, fmt.Sprintf("%d of the last %d tool results are failures", failed, len(recent)))
	}
	return out
}

// spool keeps an export.
type spool struct{ bytes.Buffer }

// Reset implements harness.Spool.
func (s *spool) Reset() error {
	s.Buffer.Reset()
	return nil
}
