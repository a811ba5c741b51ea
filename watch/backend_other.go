//go:build !(darwin || dragonfly || freebsd || netbsd || openbsd)

package watch

// usable says that events do not cost an open file for each file.
const usable = true
