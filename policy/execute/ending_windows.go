package execute

import "os"

// ending is the exit status: there are no signals.
func ending(state *os.ProcessState) outcome {
	code := state.ExitCode()
	return outcome{exit: &code}
}
