// Package logging makes the daemon's loggers: log/slog, written by tint for
// people or as JSON for machines, behind a handler that makes every text safe
// to show.
//
// One record is one physical line, and nothing that a transcript, a path or an
// error holds reaches the output raw: not as message, key, group name or
// value. The package never logs by itself, keeps no global logger, and never
// reads the environment: whether to use colour is the caller's business.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/lmittmann/tint"
)

// The formats.
const (
	FormatAuto = "auto" // text on a terminal, else JSON
	FormatText = "text"
	FormatJSON = "json"
)

// Keys of attributes. Everything that logs uses these.
const (
	Session    = "session"    // id of a session
	Project    = "project"    // name of a project
	Harness    = "harness"    // name of a harness
	Path       = "path"       // of a file
	Root       = "root"       // watched directory
	Mode       = "mode"       // how a root is followed
	Key        = "key"        // of a scheduled job
	Turns      = "turns"      // count
	Bytes      = "bytes"      // count
	Count      = "count"      // of anything else
	Offset     = "offset"     // bytes from the start of a file
	Took       = "took"       // duration
	Lag        = "lag"        // duration
	Attempt    = "attempt"    // failures in a row
	Retry      = "retry"      // when or after how long
	Err        = "err"        // an error
	Hint       = "hint"       // what to do about it
	Socket     = "socket"     // path of the control socket
	Verb       = "verb"       // of a request
	Status     = "status"     // of an answer
	UID        = "uid"        // of a peer
	PID        = "pid"        // of a process
	Signal     = "signal"     // its name
	Version    = "version"    // of a program
	Suppressed = "suppressed" // count of like lines left out by RateLimit
)

// Options says how to log. The zero value logs from slog.LevelInfo on in
// FormatAuto without colour.
type Options struct {
	Level slog.Leveler // nil is slog.LevelInfo
	// Format is one of the Format constants; "" is FormatAuto.
	Format string
	// Color asks for colour in text. The caller has looked at NO_COLOR and
	// TERM and knows w.
	Color bool
}

// ParseLevel returns the level named debug, info, warn or error, in any case.
func ParseLevel(s string) (slog.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log level %q is none of debug, info, warn, error", s)
}

// New returns a logger that writes to w, one Write a record. An unknown
// format is FormatAuto: the config has been checked elsewhere.
func New(w io.Writer, o Options) *slog.Logger { return slog.New(NewHandler(w, o)) }

// NewHandler returns the handler of New, to be wrapped.
func NewHandler(w io.Writer, o Options) slog.Handler {
	if o.Level == nil {
		o.Level = slog.LevelInfo
	}
	text := o.Format == FormatText || o.Format != FormatJSON && IsTerminal(w)
	if !text {
		return &sanitizer{next: slog.NewJSONHandler(w, &slog.HandlerOptions{Level: o.Level}), safe: safeJSON}
	}
	return &sanitizer{
		next: tint.NewTextHandler(w, &tint.Options{Level: o.Level, NoColor: !o.Color}),
		safe: safeText,
	}
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}

// OpenFile opens a log file for appending and makes it, and an existing one,
// readable by its owner only. It refuses what is no regular file, a symbolic
// link included, without waiting for a FIFO. The caller closes it.
func OpenFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log file: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%q is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open log file: %w", err)
	}
	return f, nil
}
