package permission

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// Disk is what deciding needs to know of a file system: where a path really
// is. It changes nothing.
type Disk interface {
	// Look tells what is at an absolute path whose parents are no links. Its
	// error is fs.ErrNotExist where there is nothing.
	Look(path string) (Entry, error)
	// Folds reports whether names in an existing directory that differ in
	// case only are the same name.
	Folds(dir string) bool
}

// Entry is a file or a directory.
type Entry struct {
	// ID is the same for the same file, by whatever name it is reached.
	ID string
	// Link is the text of a symbolic link, "" for anything else.
	Link string
}

// maxLinks bounds the links on one path, as the kernel's 40 do.
const maxLinks = 40

var (
	errLinks = errors.New("too many symbolic links")
	errNUL   = errors.New("a path holds a NUL")
)

// place is where a path really is: the names from the root down, links and
// ".." resolved as the kernel does, and the identity of each as far as it
// exists. names[0] is the root.
type place struct {
	names, ids []string
}

// path is the place as a path.
func (p place) path() string {
	if len(p.names) == 1 {
		return p.names[0]
	}
	return p.names[0] + strings.Join(p.names[1:], string(filepath.Separator))
}

// exists counts the leading names that exist.
func (p place) exists() int {
	n := 0
	for n < len(p.ids) && p.ids[n] != "" {
		n++
	}
	return n
}

// locate finds where an absolute path really is. What does not exist yet is
// where it would be made.
func locate(d Disk, path string) (place, error) {
	root, rest, err := split(path)
	if err != nil {
		return place{}, err
	}
	p, err := rootPlace(d, root)
	if err != nil {
		return place{}, err
	}
	todo := names(rest)
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if len(p.names) > 1 {
				p.names, p.ids = p.names[:len(p.names)-1], p.ids[:len(p.ids)-1]
			}
			continue
		}
		next := place{append(p.names, name), p.ids}
		e, err := d.Look(next.path())
		if missing(err) {
			e = Entry{}
		} else if err != nil {
			return place{}, err
		}
		if e.Link == "" {
			p = place{next.names, append(p.ids, e.ID)}
			continue
		}
		if links++; links > maxLinks {
			return place{}, errLinks
		}
		target := e.Link
		if strings.ContainsRune(target, 0) {
			return place{}, errNUL
		}
		if filepath.IsAbs(target) {
			if root, target, err = split(target); err != nil {
				return place{}, err
			}
			if p, err = rootPlace(d, root); err != nil {
				return place{}, err
			}
		}
		todo = append(names(target), todo...)
	}
	return p, nil
}

func rootPlace(d Disk, root string) (place, error) {
	e, err := d.Look(root)
	if err != nil {
		return place{}, err
	}
	return place{[]string{root}, []string{e.ID}}, nil
}

// split cuts an absolute path behind its root. A root that is no volume of
// this machine's own kind, like a device, is refused.
func split(path string) (root, rest string, err error) {
	volume := filepath.VolumeName(path)
	if strings.ContainsRune(path, 0) {
		return "", "", errNUL
	}
	if !filepath.IsAbs(path) || strings.HasPrefix(volume, `\\.`) || strings.HasPrefix(volume, `\\?`) {
		return "", "", errors.New("not an absolute path of a volume: " + path)
	}
	rest = path[len(volume):]
	if volume != "" && strings.Contains(rest, ":") {
		return "", "", errors.New("names a stream of a file: " + path)
	}
	return volume + string(filepath.Separator), rest, nil
}

func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && isSeparator(uint8(r)) })
}

func isSeparator(c uint8) bool { return c == '/' || c == filepath.Separator }

// missing reports that there is nothing at a path, a file in the place of one
// of its directories included.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// inside reports whether p is root or below it. Identity decides as far as the
// root exists, so that no other spelling, link or mount leads around it; the
// names decide about the rest.
func inside(d Disk, p, root place) bool {
	deep := root.exists() - 1
	if deep < 0 {
		return false
	}
	tail := root.names[deep+1:]
	for i := len(p.ids) - 1; i >= 0; i-- {
		if p.ids[i] != root.ids[deep] {
			continue
		}
		rest := p.names[i+1:]
		if len(rest) < len(tail) {
			return false
		}
		folds := len(tail) > 0 && d.Folds(place{names: root.names[:deep+1]}.path())
		for k, name := range tail {
			if rest[k] != name && !(folds && strings.EqualFold(rest[k], name)) {
				return false
			}
		}
		return true
	}
	return false
}
