package configs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"handoffd/configs/document"
	"handoffd/engine/fault"
)

// RefuseRoot returns nil for a directory that may be watched. It refuses, with
// a fault.Config, the root of the file system; the home directory and anything
// that holds it; a directory that holds or lies in the store or holds the log,
// since the daemon would read what it writes, for ever; and one that holds the
// configuration, or belongs to a git work tree that does, since whoever writes
// there would configure the daemon. Links are followed, so a second name for
// such a directory is refused too. The directory need not exist.
//
// LoadDaemon asks this for the roots of the file; the daemon asks it for the
// directories that it finds by itself.
func (d Daemon) RefuseRoot(root string) error {
	real, err := physical(root)
	if err != nil {
		return fault.New(fault.Config, "%s cannot be followed: %w", root, err)
	}
	if filepath.Dir(real) == real {
		return fault.New(fault.Config, "%s is the root of the file system", root)
	}
	if home, ok := d.physicalHome(); ok && within(home, real) {
		if within(real, home) {
			return fault.New(fault.Config, "%s is the home directory itself", root)
		}
		return fault.New(fault.Config, "%s holds the home directory", root)
	}
	store, err := physical(d.Store)
	if err != nil {
		return fault.New(fault.Config, "the store %s cannot be followed: %w", d.Store, err)
	}
	switch {
	case within(store, real):
		return fault.New(fault.Config, "%s holds the store %s", root, d.Store)
	case within(real, store):
		return fault.New(fault.Config, "%s lies in the store %s", root, d.Store)
	}
	if d.Log.File != "" {
		if log, err := physical(d.Log.File); err == nil && within(log, real) {
			return fault.New(fault.Config, "%s holds the log file %s", root, d.Log.File)
		}
	}
	return d.refuseHeld(root, real)
}

// refuseHeld refuses a root whose writers could write the configuration.
func (d Daemon) refuseHeld(root, real string) error {
	if d.File == "" {
		return nil
	}
	names := []string{d.File}
	if file, err := physical(d.File); err == nil && file != d.File {
		names = append(names, file)
	}
	tree := d.workTree(real)
	for _, name := range names {
		var err *fault.Error
		switch {
		case within(name, real):
			err = fault.New(fault.Config, "%s holds the configuration %s", root, d.File)
		case tree != "" && within(name, tree):
			err = fault.New(fault.Config, "%s belongs to the git work tree %s, which holds the configuration %s", root, tree, d.File)
		default:
			continue
		}
		return err.WithHint("move the configuration to ~/.config/%s/%s", appDir, DaemonFile)
	}
	return nil
}

// checkRoots asks RefuseRoot for every source, and refuses two sources of one
// harness that overlap: their sessions would be stored twice.
func (d Daemon) checkRoots() error {
	var faults []document.Fault
	var hint string
	reals := make([]string, len(d.Sources))
	for i, s := range d.Sources {
		at := fmt.Sprintf("sources[%d].root", i)
		if err := d.RefuseRoot(s.Root); err != nil {
			faults = append(faults, document.Fault{Path: at, Msg: err.Error()})
			hint = cmp.Or(hint, fault.HintOf(err))
			continue
		}
		reals[i], _ = physical(s.Root)
		for j, other := range d.Sources[:i] {
			if reals[j] == "" || other.Harness != s.Harness {
				continue
			}
			if within(reals[i], reals[j]) || within(reals[j], reals[i]) {
				faults = append(faults, document.Fault{Path: at, Msg: fmt.Sprintf("overlaps sources[%d].root %s", j, other.Root)})
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	err := daemonFormat.invalid(d.File, faults)
	if hint == "" {
		return err
	}
	return err.WithHint("%s", hint)
}

func (d Daemon) physicalHome() (string, bool) {
	if d.home == "" {
		return "", false
	}
	home, err := physical(d.home)
	return home, err == nil
}

// workTree returns the top of the git work tree around dir, or "". A work tree
// that is or holds the home directory does not count: people keep their
// dotfiles that way, and it says nothing about who writes there.
func (d Daemon) workTree(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			break
		} else if up := filepath.Dir(dir); up == dir {
			return ""
		} else {
			dir = up
		}
	}
	if home, ok := d.physicalHome(); ok && within(home, dir) {
		return ""
	}
	return dir
}
