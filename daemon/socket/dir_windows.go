package socket

import "io/fs"

// maxPath is the longest path that fits into a sockaddr_un.
const maxPath = 107

// The rest compiles only: without peer identity Listen and Dial refuse.

func owned(fs.FileInfo) bool { return true }

type identity struct{}

func identify(fs.FileInfo) identity { return identity{} }

func checkDir(string) error { return nil }

func ownUID() uint32 { return 0 }
