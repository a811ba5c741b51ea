// Package harnesstest is the conformance suite of transcript formats: what
// must hold of every decoder, whatever it reads. A format's test hands it
// samples; the suite cuts, damages and repeats them and reads them through
// the shared loop. It is used by tests only and knows no format.
package harnesstest

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"testing/iotest"

	"handoffd/engine/harness"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// Sample is one source to test with.
type Sample struct {
	Name string
	Data []byte
	// Path is what Format.About is given; it may be empty.
	Path string
}

// Reject is one piece of damage.
type Reject struct {
	Offset int64
	Reason string
	Raw    string
}

// Result is what reading a source gave. The decided part is final; the
// provisional one stands for the unfinished end.
type Result struct {
	Decided, Provisional []turn.Turn
	Meta                 session.Meta // decided
	End                  session.Meta // with the provisional end
	Rejects              []Reject
	Unknown              []string
	Flagged              int
}

// All returns the turns that a reader of the session sees.
func (r Result) All() []turn.Turn { return slices.Concat(r.Decided, r.Provisional) }

// Turns reads data in one pass and returns every turn, the provisional ones
// included, and what is known of the session. It panics when the pass fails,
// which no bytes may make a JSONL or Lines format do.
func Turns(f harness.Format, data []byte, path string) ([]turn.Turn, session.Meta) {
	r := Read(f, harness.Env{}, Sample{Data: data, Path: path})
	return r.All(), r.End
}

// Known is a store that holds the given sessions.
func Known(sessions map[string][]turn.Turn) harness.Env {
	return harness.Env{Session: func(id string) (iter.Seq[turn.Turn], bool) {
		turns, ok := sessions[id]
		return slices.Values(turns), ok
	}}
}

// Read reads a sample in one pass.
func Read(f harness.Format, env harness.Env, s Sample) Result {
	r, err := read(reading{format: f, env: env}, s)
	if err != nil {
		panic(fmt.Sprintf("%s: pass failed: %v", f.Traits().Key, err))
	}
	return r
}

// reading says how to read a sample.
type reading struct {
	format harness.Format
	env    harness.Env
	// cuts are the lengths at which the source is read before it grows to
	// its whole.
	cuts []int
	// keep says that one Follower makes all passes, as in a daemon; else
	// each pass starts from the saved cursor, as after a restart.
	keep      bool
	lineBytes int
	// byByte delivers one byte a read.
	byByte bool
}

// read reads a sample in passes.
func read(how reading, s Sample) (Result, error) {
	var r Result
	if s.Path != "" {
		how.format.About(s.Path, &r.Meta)
	}
	var cur harness.Cursor
	var follower *harness.Follower
	for _, n := range append(slices.Clone(how.cuts), len(s.Data)) {
		if follower == nil || !how.keep {
			follower = &harness.Follower{Format: how.format, Env: how.env, LineBytes: how.lineBytes}
		}
		c := &collector{result: &r, cur: cur}
		r.Provisional = nil
		meta := r.Meta
		if how.format.Traits().Container == harness.Document {
			r.Decided, r.Rejects, r.Unknown, r.Flagged = nil, nil, nil, 0
		}
		var src io.Reader = bytes.NewReader(s.Data[cur.Offset:n])
		if how.byByte {
			src = iotest.OneByteReader(src)
		}
		if err := follower.Pass(src, cur, &meta, c); err != nil {
			return r, err
		}
		if !c.settled {
			return r, fmt.Errorf("Settled was not called")
		}
		r.End = meta
		cur = c.cur
	}
	return r, nil
}

// collector implements harness.Handler.
type collector struct {
	result  *Result
	cur     harness.Cursor
	settled bool
}

// Unit implements harness.Handler.
func (c *collector) Unit(out *harness.Out, _ harness.Position) error {
	if c.settled {
		c.result.Provisional = append(c.result.Provisional, out.Turns...)
		return nil
	}
	c.result.Decided = append(c.result.Decided, out.Turns...)
	if out.Unknown != "" {
		c.result.Unknown = append(c.result.Unknown, out.Unknown)
	}
	if out.Flagged {
		c.result.Flagged++
	}
	return nil
}

// Reject implements harness.Handler. Pieces of one damaged run are joined, so
// that it looks the same however it was cut.
func (c *collector) Reject(f harness.Fragment) error {
	if c.settled {
		return nil
	}
	list := c.result.Rejects
	if n := len(list); n > 0 && f.Reason == harness.ReasonLong && list[n-1].Reason == f.Reason &&
		list[n-1].Offset+int64(len(list[n-1].Raw)) == f.Offset {
		list[n-1].Raw += string(f.Raw)
		return nil
	}
	c.result.Rejects = append(list, Reject{f.Offset, f.Reason, string(f.Raw)})
	return nil
}

// Settled implements harness.Handler. The meta is copied: what follows is
// provisional.
func (c *collector) Settled(cur harness.Cursor, out *harness.Out) error {
	c.settled = true
	c.cur = cur
	c.cur.Decoder = bytes.Clone(cur.Decoder)
	c.result.Meta = *out.Meta
	return nil
}
