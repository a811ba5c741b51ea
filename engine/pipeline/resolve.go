package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/all"
	"handoffd/engine/index"
	"handoffd/engine/ingest"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// target is the session that a source belongs to.
type target struct {
	id     string
	format harness.Format
	meta   session.Meta // what path and head say
	// project is the one to create the session in; fixed says that the user
	// or the configuration named it.
	project string
	fixed   bool
	// origin is the session that this one may begin with the turns of.
	origin string
	// unknown is why the content tells no format; format is nil then.
	unknown error
}

// firstLook is how much of a source is read to find its format; the whole of
// all.HeadBytes only when that does not decide.
const firstLook = 64 << 10

// wholeLook bounds what is read of a document for what it says of itself.
const wholeLook = 256 << 20

// identify finds the format and session of a source from its place and head.
func (b *Builder) identify(f *ingest.File, req Request) (target, error) {
	if f.Format() != nil {
		return b.identifyMember(f, req)
	}
	var t target
	head, complete, err := f.Head(firstLook)
	if err != nil {
		return t, err
	}
	t.format, err = all.Detect(f.Name(), head, complete, req.Harness)
	if err != nil && !complete {
		if head, complete, err = f.Head(all.HeadBytes); err != nil {
			return t, err
		}
		t.format, err = all.Detect(f.Name(), head, complete, req.Harness)
	}
	if err != nil {
		// The content tells nothing, but it may be that of a session that is
		// captured already: a source can be emptied or overwritten.
		t.unknown = err
		for _, f2 := range all.Formats() {
			if f2.Place(f.Name()) {
				f2.About(f.Name(), &t.meta)
				break
			}
		}
		t.id = firstOf(req.Session, t.meta.ID, f.Base())
		t.project, t.fixed = b.namedProject(req)
		t.project = firstOf(t.project, "unsorted")
		return t, nil
	}
	t.format.About(f.Name(), &t.meta)
	if t.format.Traits().Container == harness.Document && !complete {
		// The head of a document is a torn one, which says nothing.
		if head, _, err = f.Head(wholeLook); err != nil {
			return t, err
		}
	}
	peeked := peek(t.format, head, t.meta, harness.Env{Path: f.Name(), Beside: beside(f.Name())})
	if t.format.Traits().Replays {
		t.origin = firstOf(peeked.ForkedFrom, peeked.Parent)
	}
	t.id = firstOf(req.Session, peeked.ID, f.Base())
	t.project, t.fixed = b.namedProject(req)
	if t.project == "" {
		t.project = projectOf(peeked, filepath.Base(filepath.Dir(f.Path)), label(t.format, req.Harness))
	}
	return t, nil
}

// identifyMember is identify for a session of a bundle, whose format is known
// and which is asked for its content only when it is new.
func (b *Builder) identifyMember(f *ingest.File, req Request) (target, error) {
	t := target{format: f.Format()}
	t.format.About(f.Name(), &t.meta)
	t.id = firstOf(req.Session, t.meta.ID, f.Base())
	t.project, t.fixed = b.namedProject(req)
	same, err := b.Index.ByID(t.id)
	if err != nil {
		return t, err
	}
	for _, e := range same {
		if t.project == "" && b.readFrom(e, f.Path) {
			t.project = e.Project
		}
	}
	if t.project != "" {
		return t, nil
	}
	head, _, err := f.Head(firstLook)
	if err != nil {
		return t, err
	}
	peeked := peek(t.format, head, t.meta, b.env(f))
	t.project = projectOf(peeked, "", label(t.format, req.Harness))
	return t, nil
}

// namedProject is the project that the user or the configuration names.
func (b *Builder) namedProject(req Request) (slug string, named bool) {
	name := firstOf(req.Project, b.opt.Project)
	return store.Slug(name), name != ""
}

func firstOf(names ...string) string {
	for _, n := range names {
		if n != "" {
			return n
		}
	}
	return ""
}

// label is the harness that a session is said to come from.
func label(f harness.Format, given string) string {
	if given != "" {
		return given
	}
	if t := f.Traits(); !t.Unlabelled {
		return t.Harness
	}
	return "unknown"
}

// tag finds a `--tag--` in a thread or directory name.
var tag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`--([A-Za-z0-9._-]+?)--`) })

// projectOf derives a project: the tag of the thread or, as the reference
// does, of the source's directory; else the base name of the work tree that
// the records name; else the harness.
func projectOf(m session.Meta, parent, harness string) string {
	for _, s := range []string{m.Thread, parent} {
		if found := tag().FindStringSubmatch(s); found != nil && (s == m.Thread || m.CWD == "") {
			if slug := store.Slug(found[1]); slug != "" {
				return slug
			}
		}
	}
	if m.CWD != "" {
		if slug := store.Slug(baseName(workTree(m.CWD))); slug != "" {
			return slug
		}
	}
	if slug := store.Slug(harness); slug != "" {
		return slug
	}
	return "unsorted"
}

// baseName is the last element of a path of any system: transcripts travel.
func baseName(path string) string {
	path = strings.TrimRight(path, `/\`)
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		path = path[i+1:]
	}
	return strings.TrimSuffix(path, ":")
}

// workTree returns the top of the git work tree that dir is in, or dir. It
// only looks; the path comes from a transcript.
func workTree(dir string) string {
	if !filepath.IsAbs(dir) || len(dir) > 4096 || strings.ContainsRune(dir, 0) {
		return dir
	}
	for d, n := filepath.Clean(dir), 0; n < 40; n++ {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		up := filepath.Dir(d)
		if up == d {
			break
		}
		d = up
	}
	return dir
}

// discard is a handler that wants only what the records say of the session.
type discard struct{}

func (discard) Unit(*harness.Out, harness.Position) error  { return nil }
func (discard) Reject(harness.Fragment) error              { return nil }
func (discard) Settled(harness.Cursor, *harness.Out) error { return nil }

// peek decodes the head of a source for what it says about its session.
func peek(f harness.Format, head []byte, meta session.Meta, env harness.Env) session.Meta {
	if f.Traits().Container == harness.JSONL && len(head) > firstLook {
		head = head[:firstLook]
	}
	_ = (&harness.Follower{Format: f, Env: env}).Pass(strings.NewReader(string(head)), harness.Cursor{}, &meta, discard{})
	return meta
}

var uuid = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
})

// locate finds where the session of t is, or where it is to be created. It
// must be called under the session's lock. A session is reused where it now
// lives: by the source it was read from, by id and project, or by an id that
// is unique in the world when its sources are gone from where they were.
func (b *Builder) locate(t target, path string) (loc store.Location, exists bool, err error) {
	same, err := b.Index.ByID(t.id)
	if err != nil {
		return loc, false, err
	}
	best, score := -1, 0
	for i, e := range same {
		s := 0
		switch {
		case t.fixed && e.Project != t.project:
			continue
		case t.meta.Parent != "" && e.Parent != "" && t.meta.Parent != e.Parent:
			continue // subagents of two sessions can have one name
		case len(same) > 1 && b.readFrom(e, path):
			s = 4
		case e.Project == t.project:
			s = 3
		case b.readFrom(e, path):
			s = 4
		case uuid().MatchString(t.id) && b.moved(e):
			s = 1
		}
		if s > score {
			best, score = i, s
		}
	}
	if best >= 0 {
		return same[best].Location(), true, nil
	}
	loc = store.Location{Project: t.project, Dir: store.DirName(t.id)}
	if loc.Project == "" {
		return loc, false, fault.New(fault.Usage, "session and project need a name")
	}
	owner, err := b.owner(loc)
	if err != nil {
		return loc, false, err
	}
	if owner != "" && (owner != t.id || len(same) > 0) {
		loc.Dir = store.HashedDirName(t.id + "\x00" + t.meta.Parent)
	}
	_, err = os.Lstat(b.Store.SessionDir(loc.Project, loc.Dir))
	return loc, err == nil, nil
}

// Place returns where a session that is not here yet can be made: under the
// given name where that is free and safe, else under one that its id gives.
func (b *Builder) Place(project, name, id string) (store.Location, error) {
	for _, dir := range []string{store.DirName(name), store.DirName(id), store.HashedDirName(id)} {
		loc := store.Location{Project: project, Dir: dir}
		owner, err := b.owner(loc)
		if err != nil || owner == "" || owner == id {
			return loc, err
		}
	}
	return store.Location{}, fault.New(fault.Exists, "no free name for session %s in project %s", id, project)
}

// owner returns the id of the session whose directory has this name, or would
// on a file system that ignores case; "" when none has.
func (b *Builder) owner(loc store.Location) (id string, err error) {
	names, err := b.Store.Dirs(loc.Project)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if !strings.EqualFold(name, loc.Dir) {
			continue
		}
		m, _, err := store.ReadManifest(b.Store.SessionDir(loc.Project, name))
		if err != nil {
			return loc.Dir, nil // damaged; its name is all that is known
		}
		return m.Session, nil
	}
	return "", nil
}

// moved reports whether none of the session's sources is where it was.
func (b *Builder) moved(e index.Entry) bool {
	m, _, err := store.ReadManifest(b.Store.SessionDir(e.Project, e.ID))
	if err != nil {
		return false
	}
	for _, s := range m.Sources {
		if err := ingest.Exists(s.Path); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// readFrom reports whether the session was read from the source at path.
func (b *Builder) readFrom(e index.Entry, path string) bool {
	m, _, err := store.ReadManifest(b.Store.SessionDir(e.Project, e.ID))
	if err != nil {
		return false
	}
	_, ok := m.Source(path)
	return ok
}

// Find returns the id of the session that a source belongs to, where it is
// stored and whether it is captured already. It takes no lock: the answer may
// be outdated.
func (b *Builder) Find(req Request) (id string, loc store.Location, captured bool, err error) {
	f, err := ingest.OpenKeyed(req.Source, req.Key)
	if err != nil {
		return "", loc, false, err
	}
	defer f.Close()
	if f.Bundled() {
		return "", loc, false, bundled(req.Source)
	}
	t, err := b.identify(f, req)
	if err != nil {
		return "", loc, false, err
	}
	loc, captured, err = b.locate(t, f.Path)
	return t.id, loc, captured, err
}
