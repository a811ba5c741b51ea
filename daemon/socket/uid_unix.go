//go:build unix

package socket

import "os"

func ownUID() uint32 { return uint32(os.Geteuid()) }
