package harness

import (
	"bytes"
	"errors"
	"io"
)

// DefaultLineBytes is the longest line that is read as a whole. Longer ones
// are skipped to their end. 21.9 MB lines are known from real sessions.
const DefaultLineBytes = 32 << 20

// line is one physical line. raw excludes the newline and is valid until the
// next read.
type line struct {
	raw    []byte
	offset int64
	// ended says that a newline follows; only the last line may lack one.
	ended bool
	// part says that raw is a piece of a line above the limit; the last
	// piece has part unset unless the source ends inside it.
	part bool
	// long says that the line, of which raw is a piece, is above the limit.
	long bool
}

// lineReader cuts a stream at 0x0A and nowhere else.
type lineReader struct {
	r      io.Reader
	buf    []byte
	start  int // of the unread bytes in buf
	end    int
	offset int64 // of buf[start] in the source
	limit  int
	long   bool // inside a line above the limit
	eof    bool
}

const readChunk = 64 << 10

func newLineReader(r io.Reader, offset int64, limit int, insideLong bool) *lineReader {
	if limit <= 0 {
		limit = DefaultLineBytes
	}
	return &lineReader{r: r, offset: offset, limit: limit, long: insideLong, buf: make([]byte, readChunk)}
}

// next returns the next line, or io.EOF.
func (l *lineReader) next() (line, error) {
	scanned := 0
	for {
		if i := bytes.IndexByte(l.buf[l.start+scanned:l.end], '\n'); i >= 0 {
			n := scanned + i
			out := line{raw: l.buf[l.start : l.start+n], offset: l.offset, ended: true, long: l.long || n > l.limit}
			l.start += n + 1
			l.offset += int64(n) + 1
			l.long = false
			return out, nil
		}
		scanned = l.end - l.start
		if l.long && scanned > 0 || scanned > l.limit {
			out := line{raw: l.buf[l.start:l.end], offset: l.offset, long: true, part: true}
			l.offset += int64(scanned)
			l.start = l.end
			l.long = true
			return out, nil
		}
		if l.eof {
			if scanned == 0 {
				return line{}, io.EOF
			}
			out := line{raw: l.buf[l.start:l.end], offset: l.offset}
			l.offset += int64(scanned)
			l.start = l.end
			return out, nil
		}
		if err := l.fill(); err != nil {
			return line{}, err
		}
	}
}

func (l *lineReader) fill() error {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.end -= l.start
		l.start = 0
	}
	if l.end == len(l.buf) {
		grown := make([]byte, 2*len(l.buf))
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	n, err := l.r.Read(l.buf[l.end:])
	l.end += n
	if errors.Is(err, io.EOF) {
		l.eof = true
		return nil
	}
	return err
}
