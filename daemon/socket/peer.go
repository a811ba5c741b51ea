package socket

import (
	"fmt"
	"net"
	"syscall"
)

// PeerUID returns the effective user of the process at the other end of a
// Unix connection, as the kernel knew it when the connection was made (the
// client's) or listening began (the server's).
func PeerUID(c net.Conn) (uint32, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("%T is no socket: %w", c, ErrUnsupported)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid uint32
	var inner error
	if err := raw.Control(func(fd uintptr) { uid, inner = peerUID(fd) }); err != nil {
		return 0, err
	}
	return uid, inner
}

// checkPeer refuses a peer that is neither us nor root. The kernel's word is
// compared, so root of a user namespace does not pass for root.
func checkPeer(c net.Conn) error {
	uid, err := PeerUID(c)
	if err != nil {
		return fmt.Errorf("peer identity: %w", err)
	}
	if !trusted(uid, ownUID()) {
		return fmt.Errorf("%w (uid %d)", ErrForeignPeer, uid)
	}
	return nil
}
