//go:build unix

package execute

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the program the leader of a process group, which ends as a
// whole when its time is up.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
