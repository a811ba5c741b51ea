package socket

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"handoffd/engine/fault"
)

// Path returns the absolute path of the socket. Daemon and client call it with
// the same arguments and get the same answer. The first of these that is set
// wins: explicit (a flag), EnvSocket, configured; else it is the first usable
// of
//
//	$XDG_RUNTIME_DIR/handoff, if that is absolute, ours and private
//	/run/user/UID/handoff, likewise
//	~/.local/state/handoff/run, if the home directory is ours
//	$TMPDIR/handoff-UID, or the same in /tmp
//
// env reads the environment (os.Getenv). Path creates nothing. It fails with
// fault.Config if a path that was set is relative or too long for the system;
// a default that is too long gives way to a short one in /tmp.
func Path(explicit string, env func(string) string, configured string) (string, error) {
	return thisSystem(env).path(explicit, configured)
}

// system is what Path asks the system.
type system struct {
	env     func(string) string
	uid     int
	runUser string // parent of the run-time directories
	tmp     string
	// private reports whether a path is a directory, not a link, that we own;
	// closed that no one else may enter it.
	private func(path string) (ours, closed bool)
}

func thisSystem(env func(string) string) system {
	return system{env: env, uid: os.Geteuid(), runUser: "/run/user", tmp: "/tmp", private: private}
}

func private(path string) (ours, closed bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !owned(info) {
		return false, false
	}
	return true, info.Mode().Perm()&0o077 == 0
}

func (s system) path(explicit, configured string) (string, error) {
	for _, given := range []struct{ from, path string }{
		{"--socket", explicit}, {EnvSocket, s.env(EnvSocket)}, {"socket in the configuration", configured},
	} {
		if given.path == "" {
			continue
		}
		if !filepath.IsAbs(given.path) {
			return "", fault.New(fault.Config, "%s: %q is not an absolute path", given.from, given.path)
		}
		path := filepath.Clean(given.path)
		if err := checkLength(path); err != nil {
			return "", fault.New(fault.Config, "%s: %w", given.from, err)
		}
		return path, nil
	}
	dir := s.dir()
	path := filepath.Join(dir, Name)
	if checkLength(path) == nil {
		return path, nil
	}
	sum := sha256.Sum256([]byte(dir))
	path = filepath.Join(s.tmp, s.tmpName()+"-"+hex.EncodeToString(sum[:4]), Name)
	if err := checkLength(path); err != nil {
		return "", fault.New(fault.Config, "no usable place for the socket: %w", err)
	}
	return path, nil
}

func (s system) tmpName() string { return "handoff-" + strconv.Itoa(s.uid) }

// dir returns the directory of the default socket.
func (s system) dir() string {
	if runtime.GOOS == "windows" {
		if local := s.env("LOCALAPPDATA"); filepath.IsAbs(local) {
			return filepath.Join(local, "handoff", "run")
		}
		return filepath.Join(os.TempDir(), "handoff")
	}
	for _, parent := range []string{s.env("XDG_RUNTIME_DIR"), filepath.Join(s.runUser, strconv.Itoa(s.uid))} {
		if !filepath.IsAbs(parent) {
			continue
		}
		if ours, closed := s.private(parent); ours && closed {
			return filepath.Join(parent, "handoff")
		}
	}
	// Under sudo HOME may still be another user's.
	if home := s.env("HOME"); filepath.IsAbs(home) {
		if ours, _ := s.private(canonicalDir(home)); ours {
			return filepath.Join(home, ".local", "state", "handoff", "run")
		}
	}
	tmp := s.env("TMPDIR")
	if !filepath.IsAbs(tmp) {
		tmp = s.tmp
	}
	return filepath.Join(tmp, s.tmpName())
}

// canonicalDir resolves links, which a home directory may well be.
func canonicalDir(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// checkLength returns an error that names the limit if path does not fit into
// a socket address. The system would only say "invalid argument".
func checkLength(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("the socket path has %d bytes, and %s allows %d: %q", len(path), runtime.GOOS, maxPath, path)
	}
	if strings.ContainsRune(path, 0) {
		return fmt.Errorf("the socket path %q holds a NUL", path)
	}
	return nil
}

// makeDir makes the directory of the socket if it is missing, and checks that
// it is a real directory of ours that nobody else can enter.
func makeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fault.New(fault.Config, "make the socket directory: %w", err)
	}
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		// A umask may have taken our own bits.
		err = os.Chmod(dir, 0o700)
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	if err != nil {
		return fault.New(fault.Config, "make the socket directory: %w", err)
	}
	return checkDir(dir)
}
