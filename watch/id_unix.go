//go:build unix

package watch

import (
	"io/fs"
	"os"
	"syscall"
)

// fileID tells directories apart. It is good only while the directory exists:
// inodes are used again.
type fileID struct{ dev, ino uint64 }

func idOf(_ string, info fs.FileInfo) fileID {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fileID{uint64(st.Dev), uint64(st.Ino)}
	}
	return fileID{}
}

// inode returns the file's inode number, to notice a replaced file.
func inode(info fs.FileInfo) uint64 { return idOf("", info).ino }

// openDir opens a directory and nothing else, so that a FIFO or a symbolic
// link put in its place neither blocks nor leads away.
func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}
