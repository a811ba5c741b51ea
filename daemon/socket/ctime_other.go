//go:build unix && !linux && !darwin

package socket

import "syscall"

func ctime(*syscall.Stat_t) syscall.Timespec { return syscall.Timespec{} }
