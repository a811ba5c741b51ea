// Package deny keeps on disk who must not change anything any more: a marker
// for each session, a sentinel that lists them, and the locks of sessions, in
// the files of the published continuity tool (npm @adlc/context-handoff
// 1.11.1, github.com/voodootikigod/adlc). It decides nothing, signs nothing,
// and never removes a marker.
package deny

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"handoffd/engine/safefile"
	"handoffd/policy/mutation"
)

// Store is the continuity store of one project.
type Store struct {
	Root string // absolute; the directory that holds .adlc
	Now  func() time.Time
	Host string // name of this machine
}

// maxFile bounds every small file of the store, in bytes.
const maxFile = 64 << 10

func (s Store) path(rel ...string) string {
	return filepath.Join(append([]string{s.Root, ".adlc", "handoffs"}, rel...)...)
}

// Ledger is the directory .adlc.
func (s Store) Ledger() string { return filepath.Join(s.Root, ".adlc") }

// Dir is the directory of handoffs.
func (s Store) Dir() string { return s.path() }

// Denies is the directory of markers.
func (s Store) Denies() string { return s.path("denies") }

// Marker is the file of a session's marker; the id must be safe.
func (s Store) Marker(id string) string { return s.path("denies", id+".json") }

// Final is the file of what a session handed off.
func (s Store) Final(id string) string { return s.path("finals", id+".json") }

// Capture is the file of the text of it.
func (s Store) Capture(id string) string { return s.path("content", id+".md") }

// Auth is the file that says whose work a session goes on with.
func (s Store) Auth(id string) string { return s.path(id + ".resume-auth.json") }

// Grant is the file that lifts a session's deny once.
func (s Store) Grant(id string) string { return s.path(id + ".bypass-grant.json") }

// LockPath is the lock file of a session.
func (s Store) LockPath(id string) string { return s.path(id + ".lock") }

// Spent is the directory that remembers used grants.
func (s Store) Spent() string { return s.path("spent") }

func (s Store) sentinel() string       { return filepath.Join(s.Ledger(), ".deny-store") }
func (s Store) legacySentinel() string { return s.path(".deny-store") }

// Stamp is a time as the published tool writes it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// why is a short word for an error of the file system.
func why(err error) string {
	var errno interface{ Error() string }
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "EACCES"
	case errors.Is(err, fs.ErrNotExist):
		return "ENOENT"
	case errors.Is(err, fs.ErrExist):
		return "EEXIST"
	case errors.As(err, &errno):
		text := errno.Error()
		if i := strings.LastIndex(text, ": "); i >= 0 {
			text = text[i+2:]
		}
		return strings.ReplaceAll(text, " ", "_")
	}
	return "EIO"
}

// exclusively runs f while nobody else of ours changes the sentinel.
func (s Store) exclusively(f func() error) error {
	l, err := safefile.Acquire(context.Background(), s.path(".locks", "deny-store.lock"), safefile.LockWait)
	if err != nil {
		return err
	}
	return errors.Join(f(), l.Release())
}

// Present reports whether the project has a ledger directory at all.
func (s Store) Present() bool {
	info, err := os.Stat(s.Ledger())
	return err == nil && info.IsDir()
}

// OptedIn reports whether the project asked for a gate: its ledger holds
// something of the published tool or of this one, and not just notes.
func (s Store) OptedIn() bool {
	if !s.Present() {
		return false
	}
	for _, name := range []string{"config.json", "tickets.json", "tickets/.store.json", "manifest.jsonl", "manifest.d/.store.json", ".deny-store", "handoffs", "handoffd.json"} {
		if _, err := os.Lstat(filepath.Join(s.Ledger(), filepath.FromSlash(name))); err == nil {
			return true
		}
	}
	return false
}

// ids returns what sessions a list of files is about.
func ids(entries []fs.DirEntry) []string {
	var out []string
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if ok && mutation.SafeID(id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// makeDirs makes the directories that a session's files go to.
func (s Store) makeDirs(names ...string) error {
	for _, n := range names {
		if err := safefile.MakeDir(s.path(n)); err != nil {
			return fmt.Errorf("make the store: %w", err)
		}
	}
	return nil
}
