package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"handoffd/engine/fault"
)

// Listener accepts connections of our own user and of root. It implements
// net.Listener.
type Listener struct {
	l       *net.UnixListener
	path    string   // "" if the socket file is not ours to remove
	id      identity // of the socket file
	slots   chan struct{}
	closed  chan struct{}
	once    sync.Once
	err     error // of Close
	refused atomic.Uint64
	check   func(net.Conn) error
}

// Listen listens on path. It makes the directory if it is missing, private,
// and refuses one that is not (fault.Config, with a hint). A socket of ours
// that is in the way is removed: the caller holds the daemon's lock, so nobody
// listens on it. Anything else in the way is refused. The socket is readable
// and writable by its owner only.
func Listen(path string) (*Listener, error) {
	if !supported {
		return nil, fault.New(fault.Unsupported, "listen on %q: %w", path, ErrUnsupported)
	}
	if !filepath.IsAbs(path) {
		return nil, fault.New(fault.Config, "socket path %q is not absolute", path)
	}
	if err := checkLength(path); err != nil {
		return nil, fault.New(fault.Config, "%w", err)
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := removeOld(path); err != nil {
		return nil, err
	}
	// The directory keeps others out while the umask decides on the mode.
	nl, err := new(net.ListenConfig).Listen(context.Background(), "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fault.New(fault.Locked, "another process has taken the socket: %w", err)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "%w", err)
	}
	l := nl.(*net.UnixListener)
	// Go would remove whatever has the name by then, a newer daemon's too.
	l.SetUnlinkOnClose(false)
	id, err := secure(path)
	if err != nil {
		l.Close()
		return nil, fault.New(fault.Internal, "make the socket private: %w", err)
	}
	w := Wrap(l)
	w.path, w.id = path, id
	return w, nil
}

// Wrap returns a Listener over a socket that a service manager listens on. It
// checks peers and bounds connections as Listen does, but leaves the socket
// file alone.
func Wrap(l *net.UnixListener) *Listener {
	l.SetUnlinkOnClose(false)
	return &Listener{l: l, slots: make(chan struct{}, MaxConns), closed: make(chan struct{}), check: checkPeer}
}

// removeOld removes a socket of ours at path, if there is one.
func removeOld(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.New(fault.Config, "socket: %w", err)
	case info.Mode()&fs.ModeType != fs.ModeSocket:
		return fault.New(fault.Config, "%q is in the way of the socket and is not a socket (%v)", path, info.Mode()).
			WithHint("move it away, or name another socket")
	case !owned(info):
		return fault.New(fault.Config, "the socket %q belongs to another user", path).WithHint("name another socket")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Config, "remove the old socket: %w", err)
	}
	return nil
}

// secure makes the new socket private and returns what identifies it.
func secure(path string) (identity, error) {
	if err := os.Chmod(path, 0o600); err != nil {
		return identity{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return identity{}, err
	}
	if info.Mode()&fs.ModeType != fs.ModeSocket || !owned(info) {
		return identity{}, errors.New("something else has taken its place")
	}
	return identify(info), nil
}

// Accept implements net.Listener. It waits for one of MaxConns slots, which
// the connection's Close gives back, and closes connections of other users
// without a word.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, fmt.Errorf("accept: %w", net.ErrClosed)
	}
	for {
		c, err := l.l.AcceptUnix()
		if err != nil {
			<-l.slots
			return nil, err
		}
		if err := l.check(c); err != nil {
			l.refused.Add(1)
			c.Close()
			continue
		}
		return &conn{UnixConn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
	}
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.l.Addr() }

// Refused returns how many connections of other users were closed.
func (l *Listener) Refused() uint64 { return l.refused.Load() }

// Conns returns how many connections are open, at most MaxConns. One that
// Accept is waiting for counts.
func (l *Listener) Conns() int { return len(l.slots) }

// Lost reports whether the path no longer leads to this socket, so that nobody
// can find it.
func (l *Listener) Lost() bool {
	if l.path == "" {
		return false
	}
	info, err := os.Lstat(l.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && identify(info) != l.id
}

// Close implements net.Listener. It removes the socket file if that is still
// the one Listen made. Connections stay open. A second Close does nothing.
func (l *Listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		if l.path != "" {
			// While we still listen: a new daemon's socket could otherwise
			// come between the look and the removal.
			if info, err := os.Lstat(l.path); err == nil && identify(info) == l.id {
				l.err = os.Remove(l.path)
			}
		}
		l.err = errors.Join(l.err, l.l.Close())
	})
	return l.err
}

// conn gives its slot back when it is closed.
type conn struct {
	*net.UnixConn
	release func()
}

func (c *conn) Close() error {
	err := c.UnixConn.Close()
	c.release()
	return err
}
