//go:build unix

package permission

import (
	"io/fs"
	"strconv"
	"syscall"
)

func identity(path string, info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return path
	}
	return strconv.FormatUint(uint64(st.Dev), 16) + ":" + strconv.FormatUint(uint64(st.Ino), 16)
}
