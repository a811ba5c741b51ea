package watch

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	errNotDir   = errors.New("not a directory")
	errExcluded = errors.New("inside an excluded path")
	// errNoEvents means that this system's events would cost an open file
	// for each file.
	errNoEvents = errors.New("no usable directory events on this system")
)

// truncatedText says what a limit hides.
func truncatedText(r Root) string {
	return fmt.Sprintf("more than %d entries or deeper than %d directories: the rest is not seen", r.Entries, r.Depth)
}

// explained says what the system's words for used-up limits mean here.
func explained(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("out of directory watches (sysctl fs.inotify.max_user_watches): %w", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("out of watchers or open files (sysctl fs.inotify.max_user_instances, ulimit -n): %w", err)
	}
	return err
}
