package permission

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openStraight opens path if no part of it is a link. Kernels before 5.6 and
// sandboxes without openat2 are left with a last part that is none;
// locateOpen finds the rest.
func openStraight(path string) (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NOCTTY
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	for errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		fd, err = unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
			Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		fd, err = unix.Open(path, flags, 0)
	}
	if errors.Is(err, unix.ELOOP) {
		return nil, errMoved
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// locateOpen asks the kernel where the open file is.
func locateOpen(f *os.File, d Disk, at place) (place, bool) {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return locateSame(f, d, at)
	}
	now, err := locate(d, name)
	if err != nil {
		return place{}, false
	}
	return locateSame(f, d, now)
}
