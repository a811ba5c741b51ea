//go:build !linux

package permission

import (
	"os"
)

// openStraight opens path, of which locateOpen finds out whether it was
// reached through a link.
func openStraight(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|openFlags, 0)
}

// locateOpen finds that the open file still is the one at its place.
func locateOpen(f *os.File, d Disk, at place) (place, bool) { return locateSame(f, d, at) }
