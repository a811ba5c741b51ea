//go:build unix

package logging

import (
	"syscall"
	"testing"
)

func makeFIFO(t *testing.T, path string) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
