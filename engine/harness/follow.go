package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"handoffd/engine/session"
)

// Cursor says where the reading of a source stands. Everything before Offset
// is decided for ever; the bytes after it are read again next time.
type Cursor struct {
	Offset int64 `json:"offset"`
	Line   int64 `json:"line"`
	// InLong says that Offset is inside a line above the limit, and Dropped
	// that this line is bookkeeping which is not kept.
	InLong  bool `json:"in_long,omitempty"`
	Dropped bool `json:"dropped,omitempty"`
	// Decoder is the decoder's state at Offset.
	Decoder json.RawMessage `json:"decoder,omitempty"`
}

// Fragment is a run of bytes that is no record.
type Fragment struct {
	Offset int64
	Raw    []byte // valid during the call
	Reason string
	// More says that the next fragment continues this one.
	More bool
}

// Handler receives what a pass over a source finds, in order. An error ends
// the pass and is returned from it.
type Handler interface {
	// Unit takes what one decided unit gave.
	Unit(out *Out, at Position) error
	// Reject takes decided damage.
	Reject(f Fragment) error
	// Settled is called once, after everything decided: cur is where the
	// next pass continues. Units after it stand for the unfinished end of
	// the source and hold only until it grows; a handler that keeps the
	// decided out.Meta gives out a copy.
	Settled(cur Cursor, out *Out) error
}

// TornEnd is implemented by handlers that want to know of damage at the
// unfinished end, which more bytes could still mend.
type TornEnd interface {
	Torn(raw []byte, offset int64) error
}

// Prefixer is implemented by formats that can tell from the first bytes of a
// line that it is bookkeeping of no value, however long it is.
type Prefixer interface {
	Bookkeeping(prefix []byte) bool
}

// Follower reads one source with one decoder, from where it stopped before.
type Follower struct {
	Format Format
	Env    Env
	// LineBytes is the longest line read as a whole; 0 means
	// DefaultLineBytes.
	LineBytes int

	dec   Decoder
	decAt int64 // the cursor offset that dec stands at
	dirty bool
}

// Pass reads r, which must start at cur.Offset of the source, to its end.
// meta is updated as records tell.
func (f *Follower) Pass(r io.Reader, cur Cursor, meta *session.Meta, h Handler) error {
	if f.dec == nil || f.dirty || f.decAt != cur.Offset {
		dec, err := f.Format.Decoder(cur.Decoder, f.Env)
		if err != nil {
			return fmt.Errorf("restore decoder of %s: %w", f.Format.Traits().Key, err)
		}
		f.dec = dec
	}
	f.dirty = true
	p := pass{f: f, cur: cur, h: h, out: Out{Meta: meta}}
	var err error
	switch f.Format.Traits().Container {
	case JSONL:
		err = p.jsonl(r)
	case Lines:
		err = p.lines(r)
	case Document:
		err = p.document(r)
	case Rows:
		err = p.rows(r)
	}
	return err
}

// pass is the state of one Pass.
type pass struct {
	f   *Follower
	cur Cursor
	h   Handler
	out Out
}

// record decodes one unit and delivers it.
func (p *pass) record(unit []byte, at Position) error {
	p.out.Turns, p.out.Unknown, p.out.Flagged, p.out.Unit = p.out.Turns[:0], "", false, unit
	if err := p.f.dec.Decode(unit, at, &p.out); err != nil {
		return err
	}
	return p.h.Unit(&p.out, at)
}

func (p *pass) reject(raw []byte, offset int64, reason string) error {
	return p.h.Reject(Fragment{Offset: offset, Raw: raw, Reason: reason})
}

func (p *pass) jsonl(r io.Reader) error {
	lr := newLineReader(r, p.cur.Offset, p.f.LineBytes, p.cur.InLong)
	sp := &splitter{record: p.record, whole: p.f.Format.Record, reject: p.reject}
	number := p.cur.Line
	var tail line
	for {
		l, err := lr.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read at %d: %w", lr.offset, err)
		}
		switch {
		case l.long:
			if err := p.long(sp, l); err != nil {
				return err
			}
		case l.ended:
			if err := sp.line(l.raw, Position{l.offset, number}); err != nil {
				return err
			}
		default:
			tail = l
			continue
		}
		if l.ended {
			number++
		}
		p.cur.Offset, p.cur.Line = lr.offset, number
	}
	p.cur.InLong = lr.long
	tailAt := Position{p.cur.Offset, number}
	if len(sp.held) > 0 {
		p.cur.Offset, p.cur.Line = sp.held[0].at.Offset, sp.held[0].at.Line
	}
	if err := p.settle(); err != nil {
		return err
	}
	if len(sp.held) == 0 && len(tail.raw) == 0 {
		return p.flush()
	}
	p.f.dirty = true
	torn := func([]byte, int64, string) error { return nil }
	if t, ok := p.h.(TornEnd); ok {
		torn = func(raw []byte, offset int64, _ string) error { return t.Torn(raw, offset) }
	}
	if err := sp.end(tail.raw, tailAt, torn); err != nil {
		return err
	}
	return p.flush()
}

// long passes a piece of a line above the limit on to quarantine.
func (p *pass) long(sp *splitter, l line) error {
	if !p.cur.InLong {
		if err := sp.giveUp(); err != nil {
			return err
		}
		b, ok := p.f.Format.(Prefixer)
		p.cur.Dropped = ok && b.Bookkeeping(l.raw[:min(len(l.raw), 64<<10)])
	}
	p.cur.InLong = !l.ended
	if p.cur.Dropped {
		p.cur.Dropped = !l.ended
		return nil
	}
	return p.h.Reject(Fragment{Offset: l.offset, Raw: l.raw, Reason: ReasonLong, More: !l.ended})
}

func (p *pass) lines(r io.Reader) error {
	lr := newLineReader(r, p.cur.Offset, p.f.LineBytes, p.cur.InLong)
	number := p.cur.Line
	var tail line
	for {
		l, err := lr.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read at %d: %w", lr.offset, err)
		}
		at := Position{l.offset, number}
		switch {
		case l.long:
			p.cur.InLong = !l.ended
			err = p.h.Reject(Fragment{Offset: l.offset, Raw: l.raw, Reason: ReasonLong, More: !l.ended})
		case l.ended:
			err = p.record(l.raw, at)
		default:
			tail = l
			continue
		}
		if err != nil {
			return err
		}
		if l.ended {
			number++
		}
		p.cur.Offset, p.cur.Line = lr.offset, number
	}
	p.cur.InLong = lr.long
	if err := p.settle(); err != nil {
		return err
	}
	if len(tail.raw) > 0 {
		p.f.dirty = true
		if err := p.record(tail.raw, Position{tail.offset, number}); err != nil {
			return err
		}
	}
	return p.flush()
}

// maxDocument bounds a whole-file source in memory.
const maxDocument = 256 << 20

func (p *pass) document(r io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	if len(raw) > maxDocument {
		return &Rejection{"document above 256 MiB"}
	}
	err = p.record(raw, Position{})
	if err != nil {
		return err
	}
	if err := p.settle(); err != nil {
		return err
	}
	return p.flush()
}

// rows reads the lines of an export, which are whole.
func (p *pass) rows(r io.Reader) error {
	lr := newLineReader(r, 0, p.f.LineBytes, false)
	for number := int64(0); ; {
		l, err := lr.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read at %d: %w", lr.offset, err)
		}
		var refused *Rejection
		switch {
		case l.long:
			err = p.h.Reject(Fragment{Offset: l.offset, Raw: l.raw, Reason: ReasonLong, More: !l.ended})
		case len(l.raw) == 0:
		default:
			err = p.record(l.raw, Position{l.offset, number})
			if errors.As(err, &refused) {
				err = p.reject(l.raw, l.offset, refused.Reason)
			} else if Syntax(err) {
				err = p.reject(l.raw, l.offset, ReasonTorn)
			}
		}
		if err != nil {
			return err
		}
		if l.ended {
			number++
		}
	}
	if err := p.settle(); err != nil {
		return err
	}
	p.f.dirty = true
	return p.flush()
}

// settle fixes the cursor and tells the handler.
func (p *pass) settle() error {
	state, err := p.f.dec.State()
	if err != nil {
		return fmt.Errorf("save decoder of %s: %w", p.f.Format.Traits().Key, err)
	}
	p.cur.Decoder = state
	if p.f.Format.Traits().Container.Whole() {
		p.cur = Cursor{}
	}
	p.f.dirty = false
	p.f.decAt = p.cur.Offset
	return p.h.Settled(p.cur, &p.out)
}

// flush delivers what the decoder holds back.
func (p *pass) flush() error {
	if !p.f.dec.Pending() {
		return nil
	}
	p.f.dirty = true
	p.out.Turns, p.out.Unknown, p.out.Flagged, p.out.Unit = p.out.Turns[:0], "", false, nil
	p.f.dec.Flush(&p.out)
	return p.h.Unit(&p.out, Position{p.cur.Offset, p.cur.Line})
}
