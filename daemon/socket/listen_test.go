//go:build linux || darwin

package socket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"handoffd/engine/fault"
)

// envRole makes the test binary play a part as another user.
const envRole, envPath = "SOCKET_TEST_ROLE", "SOCKET_TEST_PATH"

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "dial": // connect and say what comes back
		c, err := net.Dial("unix", os.Getenv(envPath))
		if err != nil {
			fmt.Println("dial:", err)
			os.Exit(0)
		}
		n, err := c.Read(make([]byte, 1))
		fmt.Println("read:", n, err)
		os.Exit(0)
	case "listen":
		l, err := net.Listen("unix", os.Getenv(envPath))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Chmod(os.Getenv(envPath), 0o777)
		fmt.Println("listening")
		go func() {
			c, err := l.Accept()
			if err == nil {
				c.Write([]byte("fake"))
			}
		}()
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// shortDir returns a private directory with a short name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func listen(t *testing.T, path string) *Listener {
	t.Helper()
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestListenIsPrivate(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o177} {
		t.Run(fmt.Sprintf("umask %03o", umask), func(t *testing.T) {
			dir := filepath.Join(shortDir(t), "run")
			old := syscall.Umask(umask)
			defer syscall.Umask(old)
			path := filepath.Join(dir, Name)
			listen(t, path)
			for p, want := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, path: fs.ModeSocket | 0o600} {
				if info, err := os.Lstat(p); err != nil || info.Mode() != want {
					t.Errorf("%s: %v, %v; want %v", p, info.Mode(), err, want)
				}
			}
		})
	}
}

func TestListenAndDial(t *testing.T) {
	path := filepath.Join(shortDir(t), Name)
	l := listen(t, path)
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if uid, err := PeerUID(c); err != nil || uid != ownUID() {
		t.Errorf("PeerUID = %d, %v", uid, err)
	}
	fmt.Fprintln(c, "hello")
	if line, err := bufio.NewReader(c).ReadString('\n'); line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}

func TestDialErrors(t *testing.T) {
	dir := shortDir(t)
	dead := filepath.Join(dir, "dead")
	l := listen(t, dead)
	l.path = "" // as after a kill
	l.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		kind       fault.Kind
		nobody     bool
	}{
		{"missing", filepath.Join(dir, "none"), fault.NoDaemon, true},
		{"missing directory", filepath.Join(dir, "no", "ne"), fault.NoDaemon, true},
		{"dead", dead, fault.NoDaemon, true},
		{"regular file", file, fault.NoDaemon, true},
		{"below a file", filepath.Join(file, "s"), fault.NoDaemon, true},
		{"too long", "/" + strings.Repeat("x", 200), fault.Config, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Dial(t.Context(), tt.path)
			if !fault.Is(err, tt.kind) || errors.Is(err, ErrNobody) != tt.nobody {
				t.Errorf("error %v of kind %v", err, fault.KindOf(err))
			}
			if tt.nobody && fault.HintOf(err) == "" {
				t.Error("no hint")
			}
		})
	}
	listen(t, filepath.Join(dir, "live"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, filepath.Join(dir, "live")); !fault.Is(err, fault.Unreachable) || errors.Is(err, ErrNobody) {
		t.Errorf("ended context: %v", err)
	}
}

func TestListenTakesOverADeadSocketOnly(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, Name)
	l := listen(t, path)
	l.path = ""
	l.Close()
	listen(t, path) // the dead one is replaced

	plant := map[string]func(p string) error{
		"file":      func(p string) error { return os.WriteFile(p, []byte("keep"), 0o600) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"fifo":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"link":      func(p string) error { return os.Symlink(path, p) },
		"dangling":  func(p string) error { return os.Symlink("nowhere", p) },
	}
	if os.Geteuid() == 0 {
		plant["foreign socket"] = func(p string) error {
			l, err := net.Listen("unix", p)
			if err != nil {
				return err
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
			return os.Lchown(p, 65534, 65534)
		}
	}
	for name, make := range plant {
		t.Run(name, func(t *testing.T) {
			p := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := make(p); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(p)
			if _, err := Listen(p); !fault.Is(err, fault.Config) || fault.HintOf(err) == "" {
				t.Errorf("error %v, hint %q", err, fault.HintOf(err))
			}
			if after, err := os.Lstat(p); err != nil || !os.SameFile(before, after) {
				t.Errorf("what was in the way is gone: %v", err)
			}
		})
	}
}

func TestListenRefusesDirectories(t *testing.T) {
	top := shortDir(t)
	mk := func(name string, mode fs.FileMode) string {
		dir := filepath.Join(top, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	tests := map[string]string{
		"group":  mk("group", 0o710),
		"others": mk("others", 0o701),
		"open":   mk("open", 0o777),
		"sticky": mk("sticky", 0o777|fs.ModeSticky),
		"link":   filepath.Join(top, "link"),
		"file":   filepath.Join(top, "file"),
		"loose":  filepath.Join(mk("parent", 0o777), "inner"),
	}
	if err := os.Symlink(mk("target", 0o700), tests["link"]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tests["file"], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		tests["foreign"] = mk("foreign", 0o700)
		if err := os.Chown(tests["foreign"], 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	for name, dir := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Listen(filepath.Join(dir, Name)); !fault.Is(err, fault.Config) {
				t.Errorf("error %v", err)
			}
			if _, err := os.Lstat(filepath.Join(dir, Name)); err == nil {
				t.Error("a socket was made")
			}
		})
	}
	for _, path := range []string{"relative", "/" + strings.Repeat("x", 200)} {
		if _, err := Listen(path); !fault.Is(err, fault.Config) {
			t.Errorf("Listen(%.20q): %v", path, err)
		}
	}
}

// An old daemon that ends late must not remove the new one's socket
// (cocoindex-io/cocoindex-code#288).
func TestCloseLeavesANewSocketAlone(t *testing.T) {
	path := filepath.Join(shortDir(t), Name)
	for range 20 { // inodes are used again
		old := listen(t, path)
		fresh := listen(t, path)
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Fatal("the old listener removed the new socket")
		}
		if err := fresh.Close(); err != nil {
			t.Fatal(err)
		}
	}
	gone := listen(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Errorf("Close after the file is gone: %v", err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	path := filepath.Join(shortDir(t), Name)
	l := listen(t, path)
	accepted := make(chan net.Conn)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	var clients []net.Conn
	for range MaxConns + 10 {
		c, err := Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	var served []net.Conn
	for range MaxConns {
		served = append(served, <-accepted)
	}
	if n := l.Conns(); n != MaxConns {
		t.Errorf("%d connections", n)
	}
	select {
	case <-accepted:
		t.Error("one connection too many")
	case <-time.After(20 * time.Millisecond):
	}
	served[0].Close()
	served[0].Close() // gives back one slot only
	served = append(served, <-accepted)
	select {
	case <-accepted:
		t.Error("a double Close gives back two slots")
	case <-time.After(20 * time.Millisecond):
	}
	l.Close() // wakes an Accept that waits for a slot
	<-ended
	for _, c := range append(clients, served...) {
		c.Close()
	}
}

func TestForeignPeersAreRefused(t *testing.T) {
	path := filepath.Join(shortDir(t), Name)
	l := listen(t, path)
	n := 0
	l.check = func(net.Conn) error {
		if n++; n <= 3 {
			return ErrForeignPeer
		}
		return nil
	}
	for range 3 {
		c, err := Dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	good, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if l.Refused() != 3 || l.Conns() != 1 {
		t.Errorf("%d refused, %d open", l.Refused(), l.Conns())
	}

	_, err = dial(t.Context(), path, func(net.Conn) error { return fmt.Errorf("%w (uid 8)", ErrForeignPeer) })
	if !fault.Is(err, fault.Integrity) || !errors.Is(err, ErrForeignPeer) || fault.HintOf(err) == "" {
		t.Errorf("foreign server: %v", err)
	}
}

// asNobody runs this test binary in a role as another user.
func asNobody(t *testing.T, dir, role, path string) (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "test-"+role)
	if err := os.WriteFile(exe, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = []string{envRole + "=" + role, envPath + "=" + path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, bufio.NewReader(out)
}

func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become someone else")
	}
	open := shortDir(t)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Run("does not reach the private socket", func(t *testing.T) {
		path := filepath.Join(open, "run", Name)
		if err := os.Chmod(open, 0o755); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(open, 0o777)
		listen(t, path)
		cmd, _, out := asNobody(t, open, "dial", path)
		line, _ := out.ReadString('\n')
		cmd.Wait()
		if !strings.Contains(line, "permission denied") {
			t.Errorf("another user got: %q", line)
		}
	})
	t.Run("is not served on an open socket", func(t *testing.T) {
		path := filepath.Join(open, "open")
		nl, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
		l := Wrap(nl.(*net.UnixListener))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if c, err := l.Accept(); err == nil {
				t.Error("another user was accepted")
				c.Close()
			}
		}()
		cmd, _, out := asNobody(t, open, "dial", path)
		line, _ := out.ReadString('\n')
		cmd.Wait()
		if line != "read: 0 EOF\n" || l.Refused() != 1 {
			t.Errorf("another user got: %q, %d refused", line, l.Refused())
		}
		l.Close()
		<-ended
	})
	t.Run("does not fool the client", func(t *testing.T) {
		path := filepath.Join(open, "fake")
		cmd, in, out := asNobody(t, open, "listen", path)
		if line, _ := out.ReadString('\n'); line != "listening\n" {
			t.Fatalf("fake server: %q", line)
		}
		_, err := Dial(t.Context(), path)
		if !errors.Is(err, ErrForeignPeer) || !fault.Is(err, fault.Integrity) {
			t.Errorf("Dial: %v", err)
		}
		in.Close()
		cmd.Wait()
	})
}
