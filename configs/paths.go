package configs

import (
	"os"
	"path/filepath"
	"strings"

	"handoffd/engine/fault"
)

// appDir is our directory below the XDG base directories.
const appDir = "handoff"

// expand replaces a leading "~" or "~/" by home. "~name" is an ordinary name.
func expand(path, home string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path, nil
	}
	if !filepath.IsAbs(home) {
		return "", fault.New(fault.Config, "%s: the home directory is not known", path).
			WithHint("set HOME, or give an absolute path")
	}
	return filepath.Join(home, strings.TrimPrefix(path, "~")), nil
}

// absolute expands path and sets it behind base, which may be "" when unknown.
func absolute(path, base, home string) (string, error) {
	path, err := expand(path, home)
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	if !filepath.IsAbs(base) {
		return "", fault.New(fault.Config, "%s is relative and the current directory is not known", path).
			WithHint("give an absolute path")
	}
	return filepath.Join(base, path), nil
}

// baseDir returns the XDG base directory that variable names; the
// specification says to ignore a relative one. below is its default, relative
// to the home directory.
func baseDir(getenv func(string) string, variable, home string, below ...string) (string, error) {
	if dir := getenv(variable); filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	if !filepath.IsAbs(home) {
		return "", fault.New(fault.Config, "the home directory is not known").
			WithHint("set HOME, or set HANDOFFS_ROOT to the store")
	}
	// sudo without -H keeps HOME: what we wrote there would be root's, and the
	// user's own processes could no longer write to it.
	if sudo := getenv("SUDO_UID"); sudo != "" && sudo != "0" && os.Geteuid() == 0 {
		if info, err := os.Stat(home); err == nil {
			if _, foreign := foreignOwner(info); foreign {
				return "", fault.New(fault.Config, "running as root with the home directory %s of another user", home).
					WithHint("run without sudo, or with sudo -H")
			}
		}
	}
	return filepath.Join(append([]string{home}, below...)...), nil
}

// dataDir returns the user's store, used when nothing names another.
func dataDir(getenv func(string) string, home string) (string, error) {
	base, err := baseDir(getenv, "XDG_DATA_HOME", home, ".local", "share")
	if err != nil {
		return "", err
	}
	return filepath.Join(base, appDir), nil
}

// physical returns path with the symbolic links of its existing part resolved.
func physical(path string) (string, error) {
	rest := ""
	for at := filepath.Clean(path); ; {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if _, lerr := os.Lstat(at); lerr == nil {
			return "", cause(err) // a loop, or a link that leads nowhere
		}
		up := filepath.Dir(at)
		if up == at {
			return filepath.Clean(path), nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
		at = up
	}
}

// within reports whether path is dir or below it. Both are physical. Names are
// compared first and then files, because a file system may fold case.
func within(path, dir string) bool {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return true
	}
	want, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for at := path; ; {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, want) {
			return true
		}
		up := filepath.Dir(at)
		if up == at {
			return false
		}
		at = up
	}
}
