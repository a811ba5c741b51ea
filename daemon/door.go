package daemon

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"handoffd/daemon/logging"
	"handoffd/daemon/socket"
)

const (
	// tendEvery is the pace of door.tend.
	tendEvery = 250 * time.Millisecond
	// idleWait is how long a connection may say nothing when there is hardly
	// room for another.
	idleWait = time.Second
	// crowded is how many connections leave hardly any room.
	crowded = socket.MaxConns * 3 / 4
)

// door is the socket that is served: it is made again when its file is lost,
// and kept free of those who say nothing.
type door struct {
	path string
	http *http.Server
	log  *slog.Logger
	// failed gets what serving ended with; it is buffered.
	failed  chan error
	serving sync.WaitGroup
	trouble string // of the last try to listen again

	mu       sync.Mutex // guards what follows
	listener *socket.Listener
	quiet    map[net.Conn]time.Time // since when they wait for a request
}

// openDoor serves l with h until h is shut down.
func openDoor(path string, h *http.Server, l *socket.Listener, log *slog.Logger) *door {
	o := &door{path: path, http: h, log: log, failed: make(chan error, 1), quiet: map[net.Conn]time.Time{}}
	h.ConnState = o.note
	o.serve(l)
	return o
}

// serve makes l the socket that counts. It returns the one before.
func (o *door) serve(l *socket.Listener) (before *socket.Listener) {
	o.mu.Lock()
	before, o.listener = o.listener, l
	o.mu.Unlock()
	o.serving.Go(func() {
		if err := o.http.Serve(l); o.present() == l {
			o.failed <- err
		}
	})
	return before
}

func (o *door) present() *socket.Listener {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listener
}

// note keeps count of who waits for a request.
func (o *door) note(c net.Conn, s http.ConnState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s == http.StateNew || s == http.StateIdle {
		o.quiet[c] = time.Now()
	} else {
		delete(o.quiet, c)
	}
}

// tend makes the socket again if somebody removed it, which the daemon's lock
// allows, and makes room. It is called from the loop alone.
func (o *door) tend() {
	l := o.present()
	if l.Lost() {
		o.reopen()
	}
	if l.Conns() < crowded {
		return
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for c, since := range o.quiet {
		if now.Sub(since) >= idleWait {
			delete(o.quiet, c)
			_ = c.Close()
		}
	}
}

func (o *door) reopen() {
	l, err := socket.Listen(o.path)
	if err != nil {
		if o.trouble != err.Error() {
			o.trouble = err.Error()
			o.log.Error("the socket is lost and cannot be made again", logging.Socket, o.path, logging.Err, err)
		}
		return
	}
	o.trouble = ""
	o.log.Warn("the socket was removed, and is made again", logging.Socket, o.path)
	_ = o.serve(l).Close()
}

// close ends the listening; the server has been shut down.
func (o *door) close() error {
	_ = o.present().Close()
	o.serving.Wait()
	return <-o.failed
}
