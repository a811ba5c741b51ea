package safefile

import (
	"os"
	"strconv"
	"syscall"
)

// datasync flushes to the platter: File.Sync is F_FULLFSYNC here.
func datasync(f *os.File) error { return f.Sync() }

func changeTime(st *syscall.Stat_t) string {
	return strconv.FormatInt(st.Ctimespec.Nano(), 10)
}
