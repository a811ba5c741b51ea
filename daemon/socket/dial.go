package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"handoffd/engine/fault"
)

// Dial connects to the daemon at path and makes sure that it is run by us or
// by root, before a byte is sent. The error wraps ErrNobody (fault.NoDaemon)
// if no daemon listens there, ErrForeignPeer (fault.Integrity) if another
// user does, and is fault.Unreachable if the daemon does not answer before ctx
// ends or cannot be reached for another reason. A slow daemon is not a dead
// one: only ErrNobody says that there is none.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	return dial(ctx, path, checkPeer)
}

func dial(ctx context.Context, path string, check func(net.Conn) error) (net.Conn, error) {
	if !supported {
		return nil, nobody(path, ErrUnsupported)
	}
	if err := checkLength(path); err != nil {
		return nil, fault.New(fault.Config, "%w", err)
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return nil, nobody(path, cause(err))
	default:
		return nil, fault.New(fault.Unreachable, "the daemon on %q cannot be reached: %w", path, cause(err))
	}
	if err := check(c); err != nil {
		c.Close()
		return nil, fault.New(fault.Integrity, "refusing the daemon on %q: %w", path, err).
			WithHint("someone else's program listens on this path: name another with --socket or %s", EnvSocket)
	}
	return c, nil
}

func nobody(path string, why error) error {
	// One wrapped error is all that fault.New takes.
	return fault.New(fault.NoDaemon, "%w", fmt.Errorf("%w on %q (%w)", ErrNobody, path, why)).
		WithHint("start it with: handoffctl service start, or: handoffd run")
}

// cause returns what the system said, without the address again.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}
