package harness

import (
	"io"
	"net/url"
	"strings"
)

// Bundle is implemented by formats whose sessions are not a file each: rows of
// a database, or the files of a tree. Such a format has the container Rows. A
// session of a bundle is named by the path of the bundle and its id, see Join;
// that of a tree by the path of its main file alone.
//
// A bundle belongs to a running program: nothing here writes to it, takes a
// lock on it or leaves a file beside it.
type Bundle interface {
	Format
	// Holds judges a path alone: can this be a bundle of the format, by its
	// name? It says nothing of the content.
	Holds(path string) bool
	// Single says that a bundle is one session, which has the bundle's path.
	Single() bool
	// List names the sessions of the bundle at path. before is what an
	// earlier call returned, or nil; with it the cost is that of what
	// changed, as far as the store lets that be seen. The error is
	// fault.SourceMissing, fault.Unsupported (no such store, or a form of it
	// that this version does not know) or fault.Locked (its owner is busy:
	// try again later).
	List(path string, before *Listing) (*Listing, error)
	// Key returns the change key of one session; ok is false when the bundle
	// has no such session. The errors are those of List.
	Key(path, id string) (key string, ok bool, err error)
	// Export writes one session as the lines that Decoder reads. The same
	// state of the bundle gives the same bytes. The errors are those of List,
	// fault.SourceMissing when the session is gone, and those of w.
	Export(path, id string, w Spool) error
	// Glance is what one cheap look tells of a bundle, without reading it:
	// another text says that it may have changed.
	Glance(path string) string
	// Owner is the bundle that a change of a file beside it is a change of; ok
	// is false for a file that is none of the format's.
	Owner(path string) (bundle string, ok bool)
}

// Spool takes an export. A bundle whose owner writes meanwhile is exported
// anew.
type Spool interface {
	io.Writer
	// Reset drops what was written.
	Reset() error
}

// Listing is the sessions of a bundle at one time. It is not changed after it
// was returned.
type Listing struct {
	Members map[string]Member
	// Mark is the format's own note of how far it looked.
	Mark any
}

// Member is one session of a bundle.
type Member struct {
	ID string
	// Key changes whenever the session may have. It was taken before anything
	// it stands for is read.
	Key string
	// Updated is the newest time in it, in milliseconds since 1970; 0 when
	// nothing says.
	Updated int64
}

// memberMark stands between the path of a bundle and the id of a session.
const memberMark = "#"

// Join names a session of a bundle.
func Join(path, id string) string { return path + memberMark + url.PathEscape(id) }

// Split takes the name of a session apart; ok is false when there is no id.
func Split(path string) (bundle, id string, ok bool) {
	at := strings.LastIndex(path, memberMark)
	if at <= 0 || strings.ContainsAny(path[at:], `/\`) {
		return path, "", false
	}
	id, err := url.PathUnescape(path[at+1:])
	if err != nil || id == "" {
		return path, "", false
	}
	return path[:at], id, true
}
