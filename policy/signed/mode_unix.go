//go:build unix

package signed

// private says that modes tell who may read a file.
const private = true
