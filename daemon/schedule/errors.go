package schedule

import (
	"errors"
	"fmt"
)

// ErrStopped is returned to those who wait for a run that will not come.
var ErrStopped = errors.New("the scheduler has stopped")

// PanicError is the error of a run that panicked. It is permanent.
type PanicError struct {
	Value any
	Stack string // of the goroutine that panicked, many lines
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Permanent reports true: the same input would panic again.
func (e *PanicError) Permanent() bool { return true }

func isPermanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}
