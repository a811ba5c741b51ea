//go:build unix

package watch

import (
	"syscall"
	"testing"
)

func makeFIFO(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }
