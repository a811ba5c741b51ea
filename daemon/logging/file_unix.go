//go:build unix

package logging

import (
	"os"

	"golang.org/x/sys/unix"
)

const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

func isTerminal(f *os.File) bool {
	// Fd would make the file blocking for good.
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	tty := false
	err = conn.Control(func(fd uintptr) {
		_, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
		tty = err == nil
	})
	return err == nil && tty
}
