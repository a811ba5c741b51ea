package watch

import (
	"fmt"

	"github.com/fsnotify/fsnotify"
)

// backend is the part of fsnotify that Notify uses, so that tests can put
// faults in between.
type backend interface {
	// Add watches one directory, not what is below it.
	Add(dir string) error
	// Remove ends that. It is not an error if the watch is already gone.
	Remove(dir string)
	WatchList() []string
	// Events and Errors must both be read, or the backend stands still.
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	Close() error
}

// eventBuffer is how many events wait in memory while a directory is read.
const eventBuffer = 4096

type fsBackend struct{ w *fsnotify.Watcher }

// openBackend starts the system's watcher.
func openBackend() (backend, error) {
	if !usable {
		return nil, errNoEvents
	}
	w, err := fsnotify.NewBufferedWatcher(eventBuffer)
	if err != nil {
		return nil, err
	}
	return fsBackend{w}, nil
}

func (b fsBackend) Add(dir string) (err error) {
	defer recovered(&err)
	return b.w.Add(dir)
}

func (b fsBackend) Remove(dir string) {
	var err error
	defer recovered(&err)
	// What fails here is a watch that the kernel has already dropped.
	_ = b.w.Remove(dir)
}

func (b fsBackend) WatchList() []string           { return b.w.WatchList() }
func (b fsBackend) Events() <-chan fsnotify.Event { return b.w.Events }
func (b fsBackend) Errors() <-chan error          { return b.w.Errors }
func (b fsBackend) Close() error                  { return b.w.Close() }

// recovered turns a panic into an error. fsnotify 1.10.1 dereferences nil when
// its two tables of watches disagree, which they do after two watched
// directories were renamed onto one another.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("fsnotify: %v", r)
	}
}
