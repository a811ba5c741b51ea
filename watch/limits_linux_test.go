package watch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// envLimited makes the test binary run as the child of TestSystemLimits.
const envLimited = "WATCH_TEST_LIMITED"

// TestSystemLimits runs in a user namespace that is out of watches or of
// watchers (promise P15).
func TestSystemLimits(t *testing.T) {
	if limit := os.Getenv(envLimited); limit != "" {
		limited(t, limit)
		return
	}
	for _, limit := range []string{"max_inotify_watches 4", "max_inotify_instances 0"} {
		t.Run(limit, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestSystemLimits$", "-test.v")
			cmd.Env = append(os.Environ(), envLimited+"="+limit)
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
			}
			out, err := cmd.CombinedOutput()
			switch {
			case err != nil && len(out) == 0:
				t.Skip("no user namespaces here: ", err)
			case err != nil:
				t.Errorf("%v\n%s", err, out)
			case strings.Contains(string(out), "SKIP"):
				t.Skip(string(out))
			}
		})
	}
}

func limited(t *testing.T, limit string) {
	name, value, _ := strings.Cut(limit, " ")
	if err := os.WriteFile("/proc/sys/user/"+name, []byte(value), 0o600); err != nil {
		t.Skip(err)
	}
	root := tempRoot(t)
	for i := range 20 {
		mkdir(t, filepath.Join(root, fmt.Sprint(i)))
	}
	c, n := newCollector(), fast()
	run(t, n, c, Root{Path: root})
	c.waitRescan(t, root, 1)
	for i := range 20 {
		c.waitFile(t, write(t, filepath.Join(root, fmt.Sprint(i), "f"), ""))
	}
	s := statusOf(n, root)
	if s.Mode != ModePolling || !strings.Contains(s.Err, "sysctl") {
		t.Errorf("status %+v", s)
	}
}

// TestUnmountAndMount: an unmounted root raises no event at all.
func TestUnmountAndMount(t *testing.T) {
	root := mkdir(t, filepath.Join(tempRoot(t), "root"))
	mount := func() error { return syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m") }
	if err := mount(); err != nil {
		t.Skip("cannot mount: ", err)
	}
	mounted := true
	t.Cleanup(func() {
		if mounted {
			syscall.Unmount(root, syscall.MNT_DETACH)
		}
	})
	mkdir(t, filepath.Join(root, "d"))
	c, n := newCollector(), fast()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx, []Root{{Path: root}}, c.emit) }()
	defer func() { cancel(); <-done }()
	c.waitRescan(t, root, 1)
	for i := range 3 {
		c.forget()
		must(t, syscall.Unmount(root, 0))
		mounted = false
		c.waitRescan(t, root, 1)
		c.waitFile(t, write(t, filepath.Join(root, fmt.Sprint("below", i)), ""))
		c.forget()
		must(t, mount())
		mounted = true
		c.waitRescan(t, root, 1)
		c.waitFile(t, write(t, filepath.Join(root, fmt.Sprint("on", i)), ""))
	}
}
