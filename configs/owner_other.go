//go:build !unix

package configs

import "io/fs"

// Elsewhere than on Unix a mode says nothing about who may write, and the
// user's own profile is closed to others by default.
const (
	hasModes     = false
	openNonblock = 0
)

func foreignOwner(fs.FileInfo) (uid int, foreign bool) { return 0, false }

func isNotDir(error) bool { return false }
