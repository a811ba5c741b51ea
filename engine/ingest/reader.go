package ingest

import (
	"io"

	"handoffd/engine/seal"
)

// hashingReader hashes what passes, but for the first skip bytes, which are
// hashed already. Hashing runs beside the reader's consumer, a buffer behind
// it at most.
type hashingReader struct {
	r    io.Reader
	h    *seal.Hash
	skip int64
	n    int64 // bytes read

	work chan []byte // to the hasher; nil until there is much to hash
	free chan []byte // from it
	done chan struct{}
}

// aside is from which size on hashing runs beside the consumer.
const aside = 64 << 10

func newHashingReader(r io.Reader, h *seal.Hash, skip int64) *hashingReader {
	return &hashingReader{r: r, h: h, skip: skip}
}

// Read implements io.Reader.
func (r *hashingReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.n += int64(n)
	got := p[:n]
	if r.skip > 0 {
		seen := min(r.skip, int64(n))
		r.skip -= seen
		got = got[seen:]
	}
	if r.work == nil && len(got) < aside {
		_, _ = r.h.Write(got)
		return n, err
	}
	r.hand(got)
	return n, err
}

// hand gives a copy of b to the hasher: the consumer's buffer changes.
func (r *hashingReader) hand(b []byte) {
	if r.work == nil {
		r.work, r.free, r.done = make(chan []byte, 3), make(chan []byte, 4), make(chan struct{})
		for range cap(r.free) {
			r.free <- nil
		}
		go func() {
			defer close(r.done)
			for b := range r.work {
				_, _ = r.h.Write(b)
				r.free <- b
			}
		}()
	}
	r.work <- append((<-r.free)[:0], b...)
}

// Close waits until everything read is hashed. It may be called twice.
func (r *hashingReader) Close() {
	if r.work != nil {
		close(r.work)
		<-r.done
		r.work = nil
	}
}
