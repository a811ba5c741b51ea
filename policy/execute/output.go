package execute

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"os"
	"time"
)

// output counts and hashes what a child writes to one stream, as bytes. What
// is beyond the limit is read, so that the child can go on, and forgotten.
type output struct {
	read, write *os.File
	limit       int64
	sum         hash.Hash
	bytes       int64
	limited     bool
	done        chan struct{}
}

func newOutput(limit int64) (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &output{read: r, write: w, limit: limit, sum: sha256.New(), done: make(chan struct{})}, nil
}

// follow reads until nobody can write any more.
func (o *output) follow() {
	defer close(o.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := o.read.Read(buf)
		if took := min(int64(n), o.limit-o.bytes); took < int64(n) {
			o.limited = true
			n = int(took)
		}
		_, _ = o.sum.Write(buf[:n])
		o.bytes += int64(n)
		if err != nil {
			return
		}
	}
}

// finish waits for the rest of the stream, but not for a process that could
// not be ended and still holds it.
func (o *output) finish(patience time.Duration) {
	_ = o.read.SetReadDeadline(time.Now().Add(patience))
	<-o.done
	_ = o.read.Close()
}

func (o *output) digest() string { return hex.EncodeToString(o.sum.Sum(nil)) }
