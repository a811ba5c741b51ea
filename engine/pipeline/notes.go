package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"handoffd/engine/index"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
)

const (
	// smallIndex is up to which size of INDEX.json every build of an
	// in-process client writes it: a reader of the file then finds it current,
	// and the cost is that of a few hundred sessions at most.
	smallIndex = 256 << 10
	// longList is the size at which the list of what changed since is worked
	// off in a large store too: every lookup goes through it.
	longList = 32 << 10
)

// foldIfSmall writes the index after a build when the store is small, or when
// much has changed.
func (b *Builder) foldIfSmall(ctx context.Context) (links int, err error) {
	info, err := os.Stat(filepath.Join(b.Store.Root, store.IndexName))
	if err == nil && info.Size() > smallIndex {
		dirty, err := os.Stat(filepath.Join(b.Store.Root, store.DirtyName))
		if err != nil || dirty.Size() <= longList {
			return 0, nil
		}
	}
	n := &notes{b: b}
	_, err = b.Index.Fold(ctx, false, n.write)
	return n.links, err
}

// FoldIndex writes INDEX.json, the project pages and the links of what
// changed; with whole it reads every manifest.
func (b *Builder) FoldIndex(ctx context.Context, whole bool) (index.Report, error) {
	n := &notes{b: b}
	return b.Index.Fold(ctx, whole, n.write)
}

// notes writes PROJECT.md and links/ under the index lock.
type notes struct {
	b     *Builder
	links int
}

func (n *notes) write(changed []index.Entry, gone []store.Location) error {
	for _, l := range gone {
		path := filepath.Join(n.b.Store.ProjectDir(l.Project), "PROJECT.md")
		page, err := readOptional(path)
		if err != nil {
			return err
		}
		if kept := setLine(page, l.Dir, ""); !bytes.Equal(kept, page) {
			if err := safefile.Replace(path, kept); err != nil {
				return err
			}
		}
	}
	byProject := map[string][]index.Entry{}
	for _, e := range changed {
		if e.Damaged == "" {
			byProject[e.Project] = append(byProject[e.Project], e)
		}
	}
	objectives := map[string]string{}
	for project, entries := range byProject {
		path := filepath.Join(n.b.Store.ProjectDir(project), "PROJECT.md")
		page, err := readOptional(path)
		if err != nil {
			return err
		}
		updated := page
		for _, e := range entries {
			objective := n.objective(e)
			objectives[e.Project+"/"+e.ID] = objective
			if len(updated) == 0 {
				updated = render.ProjectPage(project, render.SuggestName(e.UUID, e.Updated, objective))
			}
			updated = setLine(updated, e.ID, render.ProjectLine(e.ID, e.Turns, e.Revisions, objective))
		}
		if !bytes.Equal(page, updated) {
			if err := safefile.Replace(path, updated); err != nil {
				return err
			}
		} else if err := safefile.Remove(safefile.TempName(path)); err != nil {
			return err
		}
	}
	if !n.b.opt.Linking {
		return nil
	}
	return n.link(changed, objectives)
}

// objective reads a session's objective from its summary.
func (n *notes) objective(e index.Entry) string {
	raw, err := safefile.ReadSmall(filepath.Join(n.b.Store.SessionDir(e.Project, e.ID), store.SummaryName), store.MaxRender)
	if err != nil {
		return ""
	}
	var s struct {
		Objective string `json:"objective"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s.Objective
}

// link writes a note into links/<other>.md for each other project that a
// changed session's objective overlaps with. A note is written once.
func (n *notes) link(changed []index.Entry, objectives map[string]string) error {
	projects, err := os.ReadDir(filepath.Join(n.b.Store.Root, store.ProjectsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, p := range projects {
		if !p.IsDir() || strings.HasPrefix(p.Name(), ".") {
			continue
		}
		page, err := readOptional(filepath.Join(n.b.Store.ProjectDir(p.Name()), "PROJECT.md"))
		if err != nil {
			return err
		}
		path := filepath.Join(n.b.Store.Root, store.LinksDir, p.Name()+".md")
		var links []byte
		loaded, dirty := false, false
		for _, e := range changed {
			objective := objectives[e.Project+"/"+e.ID]
			if e.Project == p.Name() || objective == "" {
				continue
			}
			overlap := render.KeywordsOverlap(objective, string(page))
			if overlap < n.b.opt.MinOverlap {
				continue
			}
			if !loaded {
				if links, err = readOptional(path); err != nil {
					return err
				}
				loaded = true
			}
			if bytes.Contains(links, []byte(render.LinkMarker(e.Project, e.ID))) {
				continue
			}
			if len(links) == 0 {
				links = render.LinkPage(p.Name())
			}
			at, _ := time.Parse(time.RFC3339, e.Updated)
			links = append(links, render.LinkNote(at, e.Project, e.ID, overlap, objective)...)
			dirty = true
			n.links++
		}
		if dirty {
			if err := safefile.MakeDir(filepath.Dir(path)); err != nil {
				return err
			}
			if err := safefile.Replace(path, links); err != nil {
				return err
			}
		}
	}
	return nil
}

// setLine puts a session's line into a project page, in the place of the line
// that the session has, if it has one; an empty line takes it out.
func setLine(page []byte, dir, line string) []byte {
	name, _, _ := strings.Cut(render.ProjectLine(dir, 0, 0, ""), " (turns=")
	prefix := []byte(name + " (turns=")
	lines := bytes.SplitAfter(page, []byte("\n"))
	for i, l := range lines {
		if bytes.HasPrefix(l, prefix) {
			lines[i] = []byte(line)
			return bytes.Join(lines, nil)
		}
	}
	if line == "" {
		return page
	}
	if len(page) > 0 && page[len(page)-1] != '\n' {
		page = append(page, '\n')
	}
	return append(bytes.Clone(page), line...)
}

func readOptional(path string) ([]byte, error) {
	raw, err := safefile.ReadSmall(path, store.MaxRender)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// NoteMerge writes into links/<project>.md that a session of the project was
// merged into the one at loc, once. It takes the index lock.
func (b *Builder) NoteMerge(ctx context.Context, project string, loc store.Location, turns int) error {
	path := filepath.Join(b.Store.Root, store.LinksDir, project+".md")
	lock, err := safefile.Acquire(ctx, b.Store.IndexLock(), b.opt.LockWait)
	if err != nil {
		return fmt.Errorf("note the merge: %w", err)
	}
	defer lock.Release()
	page, err := readOptional(path)
	if err != nil {
		return err
	}
	if bytes.Contains(page, []byte(render.MergeMarker(loc.Dir))) {
		return nil
	}
	if len(page) == 0 {
		page = render.LinkPage(project)
	}
	if err := safefile.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return safefile.Replace(path, append(page, render.MergeNote(b.opt.Now(), loc.Project, loc.Dir, turns)...))
}
