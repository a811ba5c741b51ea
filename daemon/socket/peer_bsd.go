//go:build unix && !linux && !darwin

package socket

// maxPath is the longest path that fits into a sockaddr_un on all of these.
const maxPath = 103
