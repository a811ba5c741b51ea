package socket

import "golang.org/x/sys/unix"

// maxPath is the longest path that fits into a sockaddr_un.
const maxPath = 107

const supported = true

// peerUID returns the effective user of the process at the other end, as it
// was when it connected or began to listen.
func peerUID(fd uintptr) (uint32, error) {
	cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
