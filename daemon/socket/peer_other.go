//go:build !linux && !darwin

package socket

const supported = false

func peerUID(uintptr) (uint32, error) { return 0, ErrUnsupported }
