package deny

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"handoffd/policy/mutation"
)

// The reasons for places, followed by the place.
const (
	ReasonPath    = "path_protected:"
	ReasonSymlink = "path_protected_symlink:"
)

// Protects returns why no session may change a place, or "": by its name, or
// by where it really is. target is from dir, which is absolute, or absolute.
func (s Store) Protects(target, dir string) string {
	if rel, ok := mutation.Relative(s.Root, dir, target); ok && mutation.Place(rel) != mutation.Apart {
		return ReasonPath + target
	}
	place := target
	if !filepath.IsAbs(place) {
		place = filepath.Join(dir, place)
	}
	if s.Leads(place) != mutation.Apart {
		return ReasonSymlink + target
	}
	return ""
}

// Leads returns how the place that an absolute path leads to stands to the
// protected ones.
func (s Store) Leads(target string) mutation.Cover {
	root := real(s.Root)
	rel, ok := mutation.Relative(root, root, real(target))
	if !ok {
		return mutation.Apart
	}
	return mutation.Place(rel)
}

// maxLinks bounds a chain of links that lead nowhere.
const maxLinks = 16

// real follows links as far as the path exists, and links that lead nowhere
// to where that would be: writing through one makes the file.
func real(path string) string {
	rest, links := "", 0
	for dir := filepath.Clean(path); ; {
		resolved, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(resolved, rest)
		}
		up := filepath.Dir(dir)
		if up == dir || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return path
		}
		if to, err := os.Readlink(dir); err == nil && links < maxLinks {
			links++
			if !filepath.IsAbs(to) {
				to = filepath.Join(up, to)
			}
			dir = filepath.Clean(to)
			continue
		}
		dir, rest = up, filepath.Join(filepath.Base(dir), rest)
	}
}
