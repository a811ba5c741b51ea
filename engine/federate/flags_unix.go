//go:build unix

package federate

import "syscall"

// openFlags keep an open from waiting for the writer of a FIFO that took a
// file's place.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
