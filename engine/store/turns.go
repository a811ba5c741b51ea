package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"handoffd/engine/turn"
)

// Turns iterates the turns in the first limit bytes of a session's timeline;
// limit < 0 means all whole lines. It stops at the first error.
func Turns(dir string, limit int64) iter.Seq2[turn.Turn, error] {
	return turns(dir, 0, limit)
}

func turns(dir string, from, limit int64) iter.Seq2[turn.Turn, error] {
	return func(yield func(turn.Turn, error) bool) {
		for line, err := range Lines(dir, from, limit) {
			if err != nil {
				yield(turn.Turn{}, err)
				return
			}
			t, err := ParseTurn(line)
			if err != nil {
				yield(t, fmt.Errorf("timeline: %w", err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// Lines iterates the timeline's lines from one offset to another, without
// their newlines; limit < 0 means all whole lines. A line is valid until the
// next. A cut last line within limit is io.ErrUnexpectedEOF.
func Lines(dir string, from, limit int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, err := os.Open(filepath.Join(dir, TimelineName))
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		end := limit
		if end < 0 {
			end = 1 << 62
		}
		r := bufio.NewReaderSize(io.NewSectionReader(f, from, end-from), 256<<10)
		var long []byte
		for {
			part, err := r.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				long = append(long, part...)
				continue
			}
			line := part
			if len(long) > 0 {
				long = append(long, part...)
				line = long
			}
			if errors.Is(err, io.EOF) {
				if len(line) > 0 && limit >= 0 {
					yield(nil, io.ErrUnexpectedEOF)
				}
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(line[:len(line)-1], nil) {
				return
			}
			long = long[:0]
		}
	}
}

// ReadTurnsFrom reads the turns between two offsets of a timeline.
func ReadTurnsFrom(dir string, from, to int64) ([]turn.Turn, error) {
	var out []turn.Turn
	for t, err := range turns(dir, from, to) {
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// Keys is how many keys are decided.
func (m Marks) Keys() int64 { return m[keys].Bytes / 8 }
