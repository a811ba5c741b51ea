package socket

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"handoffd/engine/fault"
)

func TestPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Unix places")
	}
	long := "/" + strings.Repeat("d", 120)
	tests := []struct {
		name                 string
		explicit, configured string
		env                  map[string]string
		closed, ours         string // lists of directories, space-separated
		want                 string // "" for fault.Config
	}{
		{name: "explicit wins", explicit: "/e/s", configured: "/c/s", env: map[string]string{EnvSocket: "/v/s"}, want: "/e/s"},
		{name: "then the environment", configured: "/c/s", env: map[string]string{EnvSocket: "/v/s"}, want: "/v/s"},
		{name: "then the config", configured: "/c/../d/s", want: "/d/s"},
		{name: "relative", explicit: "s"},
		{name: "relative environment does not fall through", configured: "/c/s", env: map[string]string{EnvSocket: "s"}},
		{name: "too long", explicit: long},
		{name: "NUL", configured: "/a\x00b"},
		{name: "run-time directory", env: map[string]string{"XDG_RUNTIME_DIR": "/x"}, closed: "/x /run/user/7", want: "/x/handoff/handoffd.sock"},
		{name: "relative run-time directory", env: map[string]string{"XDG_RUNTIME_DIR": "x"}, closed: "x /run/user/7", want: "/run/user/7/handoff/handoffd.sock"},
		{name: "open run-time directory", env: map[string]string{"XDG_RUNTIME_DIR": "/x"}, ours: "/x", closed: "/run/user/7", want: "/run/user/7/handoff/handoffd.sock"},
		{name: "another user's run-time directory", env: map[string]string{"XDG_RUNTIME_DIR": "/run/user/8", "HOME": "/h"}, ours: "/h", want: "/h/.local/state/handoff/run/handoffd.sock"},
		{name: "another user's home", env: map[string]string{"HOME": "/h", "TMPDIR": "/t"}, want: "/t/handoff-7/handoffd.sock"},
		{name: "relative home", env: map[string]string{"HOME": "h"}, ours: "h", want: "/tmp/handoff-7/handoffd.sock"},
		{name: "nothing set", want: "/tmp/handoff-7/handoffd.sock"},
		{name: "relative TMPDIR", env: map[string]string{"TMPDIR": "t"}, want: "/tmp/handoff-7/handoffd.sock"},
		{name: "long run-time directory", env: map[string]string{"XDG_RUNTIME_DIR": long}, closed: long, want: "/tmp/handoff-7-*/handoffd.sock"},
		{name: "long TMPDIR", env: map[string]string{"TMPDIR": long}, want: "/tmp/handoff-7-*/handoffd.sock"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := system{
				env: func(k string) string { return tt.env[k] }, uid: 7, runUser: "/run/user", tmp: "/tmp",
				private: func(path string) (bool, bool) {
					in := func(list string) bool { return strings.Contains(" "+list+" ", " "+path+" ") }
					return in(tt.closed) || in(tt.ours), in(tt.closed)
				},
			}
			got, err := s.path(tt.explicit, tt.configured)
			if tt.want == "" {
				if !fault.Is(err, fault.Config) || got != "" {
					t.Errorf("path %q, error %v; want fault.Config", got, err)
				}
				return
			}
			if ok, _ := filepath.Match(tt.want, got); err != nil || !ok {
				t.Errorf("path %q, error %v; want %q", got, err, tt.want)
			}
			if len(got) > maxPath {
				t.Errorf("%d bytes", len(got))
			}
			if again, _ := s.path(tt.explicit, tt.configured); again != got {
				t.Errorf("second answer %q differs from %q", again, got)
			}
		})
	}
}

func TestPathNamesTheLimit(t *testing.T) {
	_, err := Path("/"+strings.Repeat("d", 200), os.Getenv, "")
	if err == nil || !strings.Contains(err.Error(), "201 bytes") || !strings.Contains(err.Error(), "allows 10") {
		t.Errorf("error %v", err)
	}
}

func TestPathOfThisSystem(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Unix places")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	env := func(k string) string {
		if k == "XDG_RUNTIME_DIR" {
			return dir
		}
		return ""
	}
	got, err := Path("", env, "")
	if err != nil || len(dir) < 60 && got != filepath.Join(dir, "handoff", Name) {
		t.Errorf("Path = %q, %v", got, err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := Path("", env, ""); err != nil || strings.HasPrefix(got, dir) {
		t.Errorf("open directory: Path = %q, %v", got, err)
	}
}

func TestTrusted(t *testing.T) {
	for _, tt := range []struct {
		uid, own uint32
		want     bool
	}{{7, 7, true}, {0, 7, true}, {8, 7, false}, {7, 0, false}, {65534, 7, false}} {
		if got := trusted(tt.uid, tt.own); got != tt.want {
			t.Errorf("trusted(%d, %d) = %v", tt.uid, tt.own, got)
		}
	}
}

func TestUnsupported(t *testing.T) {
	if supported {
		t.Skip("peer identity is supported")
	}
	if _, err := Listen("/x"); !fault.Is(err, fault.Unsupported) {
		t.Errorf("Listen: %v", err)
	}
	if _, err := Dial(t.Context(), "/x"); !fault.Is(err, fault.NoDaemon) || !errors.Is(err, ErrNobody) {
		t.Errorf("Dial: %v", err)
	}
}
