package socket

import "golang.org/x/sys/unix"

// maxPath is the longest path that fits into a sockaddr_un.
const maxPath = 103

const supported = true

// peerUID returns the effective user of the process at the other end, as it
// was when it connected or began to listen.
func peerUID(fd uintptr) (uint32, error) {
	cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
