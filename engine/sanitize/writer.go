package sanitize

import (
	"io"
	"unicode/utf8"
)

// Writer returns a writer that passes what Terminal makes of its input to w.
// The pieces come out as if they had been one string: a rune split over two
// writes is held back until it is whole. Close writes a held back half rune as
// escapes; it does not close w. A Writer is for one goroutine.
//
// After an error of w the number of bytes that reached it is unknown, and the
// error is returned by every later call.
func Writer(w io.Writer) io.WriteCloser { return &writer{w: w} }

type writer struct {
	w    io.Writer
	held []byte // an incomplete rune, at most utf8.UTFMax-1 bytes
	err  error
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	whole := append(w.held, p...)
	cut := len(whole) - tail(whole)
	err := w.put(string(whole[:cut]))
	w.held = append([]byte(nil), whole[cut:]...)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements io.Closer.
func (w *writer) Close() error {
	if w.err != nil {
		return w.err
	}
	held := string(w.held)
	w.held = nil
	return w.put(held)
}

func (w *writer) put(s string) error {
	if s == "" {
		return nil
	}
	_, w.err = io.WriteString(w.w, Terminal(s))
	return w.err
}

// tail returns how many bytes at the end of p begin a rune that more bytes
// could complete.
func tail(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		c := p[len(p)-n]
		if utf8.RuneStart(c) {
			if utf8.FullRune(p[len(p)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}
