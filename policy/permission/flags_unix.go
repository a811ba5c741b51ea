//go:build unix && !linux

package permission

import "golang.org/x/sys/unix"

// openFlags keep a FIFO from blocking and refuse a link at the end.
const openFlags = unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_NOCTTY
