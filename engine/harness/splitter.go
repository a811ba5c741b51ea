package harness

import (
	"bytes"
	"errors"
)

// The bounds on joining the pieces of a record that raw newlines inside a
// string broke over several lines.
const (
	maxJoinLines = 64
	maxJoinBytes = 4 << 20
)

// piece is one physical line that waits for the lines after it.
type piece struct {
	raw []byte
	at  Position
}

// splitter turns the physical lines of a JSONL source into records. Damage
// costs only itself: glued records are parted, a record behind a torn one is
// found again, a record broken by raw newlines is joined.
//
// A line that ends inside its object is held until the lines after it tell
// what it is; while held it is undecided, and the source must be read again
// from Held on.
type splitter struct {
	record func(obj []byte, at Position) error // decodes and delivers
	whole  func(obj []byte) bool               // Format.Record
	reject func(raw []byte, offset int64, reason string) error
	held   []piece
	bytes  int
}

var bom = []byte("\ufeff")

// trim removes what may surround a record without being part of it, and
// reports the run of NULs if there was one.
func trim(raw []byte, offset int64) (body []byte, nuls []byte, nulOffset int64) {
	body = raw
	if offset == 0 {
		body = bytes.TrimPrefix(body, bom)
	}
	body = bytes.Trim(body, " \t\r\x00")
	if bytes.IndexByte(raw, 0) < 0 {
		return body, nil, 0
	}
	first := bytes.IndexByte(raw, 0)
	last := bytes.LastIndexByte(raw, 0)
	if len(body) > 0 {
		start := bytes.Index(raw, body)
		if first > start { // behind the record
			return body, raw[first : last+1], offset + int64(first)
		}
		if end := start + len(body); last > end { // on both sides
			last = start - 1
		}
	}
	return body, raw[first : last+1], offset + int64(first)
}

// line takes one complete physical line.
func (s *splitter) line(raw []byte, at Position) error {
	body, nuls, nulOffset := trim(raw, at.Offset)
	if len(s.held) > 0 {
		return s.heldLine(raw, body, at)
	}
	if len(body) == 0 {
		return s.rejectNULs(nuls, nulOffset)
	}
	err := s.record(body, at)
	if Syntax(err) && Unfinished(err) && body[0] == '{' && len(raw) <= maxJoinBytes && !s.resyncs(body) {
		// Its NULs wait too: what is held is read, and reported, again.
		s.held = append(s.held, piece{bytes.Clone(raw), at})
		s.bytes = len(raw)
		return nil
	}
	if err := s.rejectNULs(nuls, nulOffset); err != nil {
		return err
	}
	if !Syntax(err) {
		return s.judge(body, at.Offset, err)
	}
	return s.repair(body, at)
}

func (s *splitter) rejectNULs(nuls []byte, offset int64) error {
	if len(nuls) == 0 {
		return nil
	}
	return s.reject(nuls, offset, ReasonNUL)
}

// heldLine takes a line while others wait.
func (s *splitter) heldLine(raw, body []byte, at Position) error {
	// Inside a broken string quotes are escaped, so an object with plain ones
	// is a record; {} may be what a tool printed.
	if len(body) > 0 && body[0] == '{' && bytes.IndexByte(body, '"') >= 0 && valid(body) {
		if err := s.giveUp(); err != nil {
			return err
		}
		return s.line(raw, at)
	}
	if len(s.held) >= maxJoinLines || s.bytes+len(raw) > maxJoinBytes {
		if err := s.giveUp(); err != nil {
			return err
		}
		return s.line(raw, at)
	}
	s.held = append(s.held, piece{bytes.Clone(raw), at})
	s.bytes += len(raw)
	if len(body) > 0 && body[len(body)-1] == '}' {
		return s.tryJoin()
	}
	return nil
}

// tryJoin delivers the held lines as one record if that is what they are.
func (s *splitter) tryJoin() error {
	raws := make([][]byte, len(s.held))
	for i, p := range s.held {
		raws[i] = bytes.TrimSuffix(p.raw, []byte("\r"))
	}
	body, _, _ := trim(bytes.Join(raws, []byte("\n")), s.held[0].at.Offset)
	body = escapeControls(body)
	err := s.record(body, s.held[0].at)
	if Syntax(err) {
		return nil
	}
	at := s.held[0].at.Offset
	s.held, s.bytes = nil, 0
	return s.judge(body, at, err)
}

// giveUp decides the held lines one by one: what can be found in each is a
// record, the rest is damage.
func (s *splitter) giveUp() error {
	held := s.held
	s.held, s.bytes = nil, 0
	for _, p := range held {
		body, nuls, nulOffset := trim(p.raw, p.at.Offset)
		if err := s.rejectNULs(nuls, nulOffset); err != nil {
			return err
		}
		if len(body) == 0 {
			continue
		}
		if err := s.repair(body, p.at); err != nil {
			return err
		}
	}
	return nil
}

// end takes the bytes after the last newline and decides everything that
// waits, as if the source ended here. Damage that more bytes could mend goes
// to torn.
func (s *splitter) end(tail []byte, at Position, torn func([]byte, int64, string) error) error {
	reject := s.reject
	s.reject = torn
	defer func() { s.reject = reject }()
	body, _, _ := trim(tail, at.Offset)
	switch {
	case len(s.held) > 0 && len(body) > 0:
		if err := s.heldLine(tail, body, at); err != nil {
			return err
		}
	case len(body) > 0:
		err := s.record(body, at)
		if Syntax(err) {
			return s.repair(body, at)
		}
		return s.judge(body, at.Offset, err)
	}
	return s.giveUp()
}

// judge turns the outcome of a well-formed record into a rejection, nothing,
// or an error that ends the pass.
func (s *splitter) judge(raw []byte, offset int64, err error) error {
	var r *Rejection
	if errors.As(err, &r) {
		return s.reject(raw, offset, r.Reason)
	}
	return err
}

// Reasons of rejection, as they stand in quarantine/index.jsonl.
const (
	ReasonNUL       = "NUL bytes"
	ReasonTorn      = "torn or malformed record"
	ReasonLong      = "line above the limit"
	ReasonNotObject = "not a JSON object"
	ReasonUnknown   = "unknown record type"
	ReasonUTF16     = "UTF-16 text"
)
