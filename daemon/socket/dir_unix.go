//go:build unix

package socket

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"handoffd/engine/fault"
)

// owned reports whether info's file belongs to our effective user.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// identity tells a socket file from one that later took its name.
type identity struct {
	dev, ino uint64
	ctime    syscall.Timespec
}

func identify(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(st.Dev), uint64(st.Ino), ctime(st)}
}

// checkDir refuses a directory that others could enter, or in which they could
// put another in place of ours.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fault.New(fault.Config, "socket directory: %w", err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fault.New(fault.Config, "socket directory %q is a symbolic link", dir).WithHint("name its target, or remove it")
	case !info.IsDir():
		return fault.New(fault.Config, "socket directory %q is not a directory", dir).WithHint("remove it, or name another socket")
	case !owned(info):
		return fault.New(fault.Config, "socket directory %q belongs to another user", dir).WithHint("name another socket")
	case info.Mode().Perm()&0o077 != 0:
		return fault.New(fault.Config, "socket directory %q is open to other users (mode %04o)", dir, info.Mode().Perm()).
			WithHint("chmod 700 it if it serves nothing else, or name another socket")
	}
	parent, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return fault.New(fault.Config, "socket directory: %w", err)
	}
	if parent.Mode().Perm()&0o002 != 0 && parent.Mode()&fs.ModeSticky == 0 {
		return fault.New(fault.Config, "anyone may replace socket directory %q: its parent is writable by all and not sticky", dir).
			WithHint("name another socket")
	}
	return nil
}
