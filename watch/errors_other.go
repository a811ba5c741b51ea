//go:build !unix

package watch

func isNotDir(error) bool { return false }
