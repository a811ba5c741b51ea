//go:build unix

package lockfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Alive reports whether there is a process with the given id; one that belongs
// to another user is one. It is asked only about locks of the published tool.
func Alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}
