// Package store is a handoff store on disk: where a session's files are, how
// they are appended and recovered, and what is committed. It never reads a
// transcript and renders nothing.
package store

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
)

// The files of a session directory.
const (
	ManifestName   = "manifest.json"
	TimelineName   = "timeline.jsonl"
	ToolsName      = "TOOLS.md"
	BriefName      = "HANDOFF.md"
	SummaryName    = "HANDOFF.summary.json"
	PayloadName    = "HANDOFF.llm.json"
	BackupName     = "manifest.json.bak"
	QuarantineDir  = "quarantine"
	QuarantineList = "quarantine/index.jsonl"
	QuarantineRaw  = "quarantine/raw.bin"
	StateDir       = ".state"
	KeysName       = ".state/keys"
)

// The entries of a store.
const (
	ProjectsDir = "projects"
	LinksDir    = "links"
	LocksDir    = ".locks"
	IndexName   = "INDEX.json"
	DirtyName   = ".locks/index.dirty"
)

// MaxRender bounds what is read of a render or a manifest as a whole, in bytes.
const MaxRender = 64 << 20

// Store is a handoff store. The zero value is not usable.
type Store struct{ Root string }

// ProjectDir returns the directory of a project.
func (s Store) ProjectDir(project string) string {
	return filepath.Join(s.Root, ProjectsDir, project)
}

// SessionDir returns the directory of a session by its directory name.
func (s Store) SessionDir(project, dir string) string {
	return filepath.Join(s.Root, ProjectsDir, project, dir)
}

// SessionLock returns the path of the lock that every mutating verb on a
// session takes. It goes by the session's id alone, so that a rename or a
// retitle does not change it.
func (s Store) SessionLock(id string) string { return s.lock("session:" + id) }

// IndexLock returns the path of the lock under which INDEX.json, PROJECT.md
// and links change.
func (s Store) IndexLock() string { return s.lock("index") }

func (s Store) lock(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.Root, LocksDir, hex.EncodeToString(sum[:])[:24]+".lock")
}

var (
	safeDir  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$`) })
	reserved = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$`) })
	unsafe   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_.+-]+`) })
)

// DirName returns the directory name for a session id: the id itself where it
// is safe on every file system, else a readable form of it with a hash.
func DirName(id string) string {
	if safeDir().MatchString(id) && !reserved().MatchString(id) && !strings.HasSuffix(id, ".") {
		return id
	}
	return HashedDirName(id)
}

// HashedDirName returns a directory name for id that no other id has.
func HashedDirName(id string) string {
	readable := strings.Trim(unsafe().ReplaceAllString(id, "_"), "._-")
	if len(readable) > 48 {
		readable = readable[:48]
	}
	if readable == "" {
		readable = "session"
	}
	return readable + "-" + shortHash(id)
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:10]
}

var notSlug = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9._-]+`) })

// Slug returns the directory name for a project: lower case, runs of anything
// else than letters, digits, dot, underscore and dash as one dash, at most 48
// bytes. A name that loses letters of another script, or its length, gets a
// hash so that two names do not meet. The result is empty for a name without
// content.
func Slug(name string) string {
	lower := strings.ToLower(name)
	slug := strings.Trim(notSlug().ReplaceAllString(lower, "-"), "-")
	slug = strings.TrimLeft(slug, ".")
	lost := false
	for _, r := range lower {
		if r > 0x7f {
			lost = true
		}
	}
	if len(slug) > 48 {
		slug, lost = strings.TrimRight(slug[:48], "-."), true
	}
	slug = strings.TrimRight(slug, ".")
	if reserved().MatchString(slug) {
		lost = true
	}
	if lost {
		slug = strings.Trim(slug[:min(len(slug), 37)]+"-"+shortHash(name), "-.")
	}
	return slug
}

// Sessions lists the session directories on disk as project and directory
// name, in order. A store that does not exist is empty.
func (s Store) Sessions() ([]Location, error) {
	projects, err := readDirs(filepath.Join(s.Root, ProjectsDir))
	if err != nil {
		return nil, err
	}
	var out []Location
	for _, p := range projects {
		dirs, err := readDirs(s.ProjectDir(p))
		if err != nil {
			return nil, err
		}
		for _, d := range dirs {
			out = append(out, Location{p, d})
		}
	}
	return out, nil
}

// Dirs lists the session directories of a project.
func (s Store) Dirs(project string) ([]string, error) { return readDirs(s.ProjectDir(project)) }

// Location is where a session stands in a store.
type Location struct{ Project, Dir string }

func readDirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "list store: %w", err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// maxManifest bounds what is read as a manifest.
const maxManifest = 64 << 20

// ReadManifest reads and decodes the manifest in a session directory, without
// checking its seal. A missing one is an error for which os.IsNotExist holds;
// a damaged one is fault.Integrity.
func ReadManifest(dir string) (*session.Manifest, []byte, error) {
	raw, err := safefile.ReadSmall(filepath.Join(dir, ManifestName), maxManifest)
	if err != nil {
		return nil, nil, err
	}
	m, err := session.Decode(raw)
	if err != nil {
		return nil, raw, err
	}
	return m, raw, nil
}
