//go:build unix

package safefile

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// openFlags keep a FIFO from blocking.
	openFlags = unix.O_NONBLOCK | unix.O_CLOEXEC
	// lockFlags also refuse a symbolic link.
	lockFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK
)

func notSupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP)
}

// Identity returns what tells files and their changes apart, as decimal text:
// the inode and the change time in nanoseconds. Both are hints.
func Identity(info fs.FileInfo) (inode, ctime string) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(uint64(st.Ino), 10), changeTime(st)
	}
	return "", ""
}

// OwnedByUs reports whether the file belongs to the user that runs this
// process.
func OwnedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
