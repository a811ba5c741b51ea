package safefile

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Holder returns the process that holds the lock at path, for people: nothing
// is decided by it. It is "" when nobody does or it cannot be told.
func Holder(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return ""
	}
	inode := ":" + strconv.FormatUint(st.Ino, 10)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 1234 08:01:131 0 EOF
		f := strings.Fields(line)
		if len(f) >= 6 && f[1] == "FLOCK" && strings.HasSuffix(f[5], inode) && f[4] != "-1" && f[4] != "0" {
			return f[4]
		}
	}
	return ""
}
