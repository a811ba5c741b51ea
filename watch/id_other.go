//go:build !unix

package watch

import (
	"io/fs"
	"os"
	"strings"
)

// fileID tells directories apart; here by canonical path.
type fileID struct{ path string }

func idOf(real string, _ fs.FileInfo) fileID { return fileID{strings.ToLower(real)} }

// inode is not to be had here.
func inode(fs.FileInfo) uint64 { return 0 }

func openDir(path string) (*os.File, error) { return os.Open(path) }
