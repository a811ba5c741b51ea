// Package socket is the way between daemon and client: where the Unix socket
// lies, how it is listened on and dialled so that only its owner gets in, and
// whom it is talking to.
//
// The socket lies in a directory that only its owner may enter, both sides
// check who the other is, and the file is removed only by someone who holds
// the daemon's lock: the caller of Listen. The package never decides whether
// a daemon is alive, never uses an abstract socket or a network, and never
// removes anything that is not a socket of ours.
package socket

import (
	"errors"
)

// Name is the file name of the socket.
const Name = "handoffd.sock"

// EnvSocket is the environment variable that names the socket.
const EnvSocket = "HANDOFFD_SOCKET"

// MaxConns is how many connections are served at once. More wait in the
// kernel's queue, so that they cost the daemon no file descriptors.
const MaxConns = 64

var (
	// ErrNobody means that no daemon listens: the socket does not exist, or
	// nothing is behind it.
	ErrNobody = errors.New("nobody listens")
	// ErrForeignPeer means that the other end belongs to another user.
	ErrForeignPeer = errors.New("the other end belongs to another user")
	// ErrUnsupported means that this system cannot tell who the other end is.
	ErrUnsupported = errors.New("peer identity is not supported on this system")
)

// trusted reports whether a peer with this effective user may talk to us: we
// ourselves, or root, which can do as it likes anyway.
func trusted(uid, own uint32) bool { return uid == own || uid == 0 }
