package capture

import (
	"path/filepath"
	"strings"

	"handoffd/configs"
	"handoffd/engine/harness"
	"handoffd/watch"
)

// Source is a directory to watch.
type Source struct {
	Harness string
	// Label is given to every build of its files; "" leaves that to the
	// format.
	Label string
	Root  watch.Root
}

// defaultDirs are the directories that a configured root stands for, below the
// home directory, where a harness keeps its sessions deeper than that: the
// root of Codex is ~/.codex, its sessions are in ~/.codex/sessions and
// ~/.codex/archived_sessions.
var defaultDirs = map[string]string{
	"codex":       ".codex",
	"gemini-cli":  ".gemini",
	"qwen-code":   ".qwen",
	"pi":          ".pi/agent/sessions",
	"copilot-cli": ".copilot/session-state",
	"claude-code": ".claude/projects",
}

// Known lists the directories of every known harness below the home
// directory, whether they exist or not.
func Known(formats []harness.Format, home string, getenv func(string) string) []Source {
	var out []Source
	for _, f := range formats {
		for _, s := range f.Stores(home, getenv) {
			out = merge(out, Source{Harness: f.Traits().Harness, Root: watch.Root{Path: filepath.Clean(s.Root), Keep: s.Keep}})
		}
	}
	return out
}

// merge adds a source, or joins it with one of the same directory: two formats
// of a harness can share one.
func merge(list []Source, s Source) []Source {
	for i := range list {
		if list[i].Root.Path == s.Root.Path && list[i].Label == s.Label {
			list[i].Root.Keep = either(list[i].Root.Keep, s.Root.Keep)
			return list
		}
	}
	return append(list, s)
}

type keeper = func(rel string, dir bool) bool

func either(a, b keeper) keeper {
	if a == nil || b == nil {
		return nil
	}
	return func(rel string, dir bool) bool { return a(rel, dir) || b(rel, dir) }
}

// Configured lists the directories of a configured source.
func Configured(formats []harness.Format, c configs.Source) []Source {
	const home = "/" // any will do: only what is below it matters
	var out []Source
	for _, f := range formats {
		if f.Traits().Harness != c.Harness {
			continue
		}
		for _, s := range f.Stores(home, func(string) string { return "" }) {
			root := filepath.Clean(s.Root)
			if base, ok := defaultDirs[c.Harness]; ok {
				rel, err := filepath.Rel(filepath.Join(home, base), root)
				if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
					continue // another place of the same harness
				}
				root = filepath.Join(c.Root, rel)
			} else {
				root = c.Root
			}
			out = merge(out, Source{Harness: c.Harness, Label: c.Harness, Root: watch.Root{Path: root, Keep: s.Keep}})
		}
	}
	if len(out) == 0 {
		out = []Source{{Harness: c.Harness, Label: c.Harness, Root: watch.Root{Path: c.Root, Keep: transcripts}}}
	}
	for i := range out {
		prefix, err := filepath.Rel(c.Root, out[i].Root.Path)
		if err != nil || prefix == "." {
			prefix = ""
		}
		out[i].Root.Keep = filtered(out[i].Root.Keep, filepath.ToSlash(prefix), c.Include, c.Exclude)
	}
	return out
}

// transcripts keeps what could be one, where no format says which files are.
func transcripts(rel string, dir bool) bool {
	if dir {
		return !strings.HasPrefix(filepath.Base(rel), ".")
	}
	for _, ext := range []string{".jsonl", ".jsonl.zst", ".json", ".txt", ".md"} {
		if strings.HasSuffix(strings.ToLower(rel), ext) {
			return true
		}
	}
	return false
}

// filtered applies the patterns of the configuration, which are held against
// the path below the configured root.
func filtered(keep keeper, prefix string, include, exclude configs.Patterns) keeper {
	if len(include) == 0 && len(exclude) == 0 {
		return keep
	}
	return func(rel string, dir bool) bool {
		if keep != nil && !keep(rel, dir) {
			return false
		}
		if prefix != "" {
			rel = prefix + "/" + rel
		}
		if dir {
			// A pattern for directories matches what is in them.
			return !onlyDirs(exclude).Match(rel + "/x")
		}
		return !exclude.Match(rel) && (len(include) == 0 || include.Match(rel))
	}
}

// onlyDirs are the patterns that stand for whole directories: the others say
// nothing about a directory, whatever a name in it would be.
func onlyDirs(p configs.Patterns) configs.Patterns {
	var out configs.Patterns
	for _, pattern := range p {
		if strings.HasSuffix(pattern, "/") {
			out = append(out, pattern)
		}
	}
	return out
}

// label is what a build of the file at path is told of its harness.
func (c *Capturer) label(path string) string {
	best, label := -1, ""
	for _, s := range c.conf.Sources {
		root := s.Root.Path
		if !within(path, root) {
			if real, err := filepath.EvalSymlinks(root); err != nil || !within(path, real) {
				continue
			}
		}
		if len(root) > best {
			best, label = len(root), s.Label
		}
	}
	return label
}

func within(path, dir string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// canonical is the one name of a file: watchers report it, and so do pokes.
func canonical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return filepath.Clean(path)
}
