package safefile

import (
	"io/fs"
	"os"
)

const (
	openFlags = 0
	lockFlags = 0
)

func datasync(f *os.File) error { return f.Sync() }

// notSupported: a directory cannot be synced on Windows.
func notSupported(error) bool { return true }

// Identity returns nothing on Windows; size and content decide.
func Identity(fs.FileInfo) (inode, ctime string) { return "", "" }

// OwnedByUs is not told by the file's mode on Windows.
func OwnedByUs(fs.FileInfo) bool { return true }
