//go:build unix

package safefile_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
)

// TestOpenSourceFIFO must end at once: opening a FIFO for reading waits for a
// writer unless it is told not to.
func TestOpenSourceFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo.jsonl")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no FIFOs here: %v", err)
	}
	if _, _, err := safefile.OpenSource(path); !fault.Is(err, fault.SourceMissing) {
		t.Fatalf("%v", err)
	}
}
