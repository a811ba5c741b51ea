package logging

import (
	"os"

	"golang.org/x/sys/windows"
)

const openFlags = 0

func isTerminal(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}
