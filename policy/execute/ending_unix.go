//go:build unix

package execute

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ending tells an exit status from a signal.
func ending(state *os.ProcessState) outcome {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return outcome{signal: unix.SignalName(ws.Signal())}
	}
	code := state.ExitCode()
	return outcome{exit: &code}
}
