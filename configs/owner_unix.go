//go:build unix

package configs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const (
	hasModes     = true
	openNonblock = syscall.O_NONBLOCK
)

// foreignOwner returns the owner of info and whether that is neither us nor root.
func foreignOwner(info fs.FileInfo) (uid int, foreign bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	uid = int(st.Uid)
	return uid, uid != 0 && uid != os.Geteuid()
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
