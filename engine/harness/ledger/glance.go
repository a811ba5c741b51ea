package ledger

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"handoffd/engine/safefile"
	"handoffd/engine/sqlite"
)

// Glance is what the files of a database tell without being opened; see
// harness.Bundle.
func Glance(path string) string { return look(path) + "+" + look(path+sqlite.WAL) }

func look(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return Looks(info)
}

// Looks tells versions of a file apart, without reading it.
func Looks(info fs.FileInfo) string {
	inode, ctime := safefile.Identity(info)
	return fmt.Sprintf("%s-%d-%d-%s", inode, info.Size(), info.ModTime().UnixNano(), ctime)
}

// Read reads a file of a harness of at most limit bytes: a regular one, without
// waiting for whoever is at the other end of a pipe.
func Read(path string, limit int64) ([]byte, error) { return safefile.ReadSmall(path, limit) }

// Owner is the database that a file of SQLite belongs to; see harness.Bundle.
// The shared memory (-shm) says nothing: readers change it too.
func Owner(path string) string { return strings.TrimSuffix(path, sqlite.WAL) }

// Keep is a watch.Root's filter for the databases in one directory.
func Keep(holds func(name string) bool) func(rel string, dir bool) bool {
	return func(rel string, dir bool) bool {
		return !dir && !strings.Contains(rel, "/") && holds(Owner(rel))
	}
}
