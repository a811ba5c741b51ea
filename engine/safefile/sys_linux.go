package safefile

import (
	"os"
	"strconv"
	"syscall"
)

// datasync flushes the data and what is needed to read it back.
func datasync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	if err := conn.Control(func(fd uintptr) {
		for {
			if syncErr = syscall.Fdatasync(int(fd)); syncErr != syscall.EINTR {
				return
			}
		}
	}); err != nil {
		return err
	}
	return syncErr
}

func changeTime(st *syscall.Stat_t) string {
	return strconv.FormatInt(st.Ctim.Nano(), 10)
}
