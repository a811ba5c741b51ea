package permission

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
)

// System is the file system of this machine.
type System struct{}

// Look implements Disk.
func (System) Look(path string) (Entry, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return Entry{}, err
	}
	if info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
		link, err := os.Readlink(path)
		if err != nil || link != "" {
			return Entry{Link: link}, err
		}
	}
	return Entry{ID: identity(path, info)}, nil
}

// Folds implements Disk. It asks the disk itself: the directory's own name, or
// that of one of its parents, in the other case.
func (System) Folds(dir string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return true
	}
	for up := filepath.Dir(dir); up != dir; dir, up = up, filepath.Dir(up) {
		other := swapCase(filepath.Base(dir))
		if other == filepath.Base(dir) {
			continue
		}
		a, err := os.Lstat(dir)
		if err != nil {
			return false
		}
		b, err := os.Lstat(filepath.Join(up, other))
		return err == nil && os.SameFile(a, b)
	}
	return false
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}
