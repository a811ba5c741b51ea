//go:build unix

package permission

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What is no regular file is neither opened nor waited for.
func TestOpenReadsOnlyFiles(t *testing.T) {
	y := newYard(t)
	if err := unix.Mkfifo(y.path("home/ws/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	y.link("fifo", "home/ws/toFifo")
	s := y.scope()
	s.Policy.ApprovedWorkspaces = append(s.Policy.ApprovedWorkspaces, "/dev")
	for _, target := range []string{"fifo", "toFifo", "/dev/zero", "/dev/tty", "/dev"} {
		if target == "/dev/tty" {
			if _, err := os.Lstat(target); err != nil {
				continue
			}
		}
		f, d, err := s.OpenRead(R0, target)
		if f != nil || err == nil || !d.Allowed() {
			t.Errorf("%s: %v, %+v, %v", target, f, d, err)
		} else if !strings.Contains(err.Error(), "is not a regular file") && !strings.Contains(err.Error(), "is a directory") {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	y := newYard(t)
	y.write("home/ws/closed/file", "x")
	if err := os.Chmod(y.path("home/ws/closed"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(y.path("home/ws/closed"), 0o700)
	if got := y.scope().Classify("closed/file"); got != ExternalPath {
		t.Errorf("nobody can say where it leads, and yet it is %s", got)
	}
}
