package gate

import (
	"io/fs"
	"os"
)

// link reports whether a path is a link itself.
func (c Call) link(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
