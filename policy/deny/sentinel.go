package deny

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/go-json-experiment/json"

	"handoffd/engine/safefile"
	"handoffd/policy/mutation"
)

// Sentinel says that there are markers, so that they are missed when they are
// deleted.
type Sentinel struct {
	// There says that the store was initialised, whatever the file says.
	There bool
	// Legacy says that only the file at the old place is there.
	Legacy   bool
	Sessions []string // sorted
}

type sentinelFile struct {
	Schema   int      `json:"schema"`
	Sessions []string `json:"sessions"`
}

// ParseSentinel reads the sessions of a sentinel. One that is empty, corrupt
// or of the oldest form has none.
func ParseSentinel(raw []byte) []string {
	var f sentinelFile
	if json.Unmarshal(raw, &f, lenient) != nil {
		return nil
	}
	out := slices.DeleteFunc(f.Sessions, func(id string) bool { return !mutation.SafeID(id) })
	slices.Sort(out)
	return slices.Compact(out)
}

// ReadSentinel looks at both places.
func (s Store) ReadSentinel() Sentinel {
	for _, place := range []struct {
		path   string
		legacy bool
	}{{s.sentinel(), false}, {s.legacySentinel(), true}} {
		if _, err := os.Lstat(place.path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		raw, err := safefile.ReadSmall(place.path, 16*maxFile)
		if err != nil {
			raw = nil
		}
		return Sentinel{There: true, Legacy: place.legacy, Sessions: ParseSentinel(raw)}
	}
	return Sentinel{}
}

// writeSentinel replaces the sentinel.
func (s Store) writeSentinel(sessions []string) error {
	sessions = slices.Clone(sessions)
	slices.Sort(sessions)
	raw, err := json.Marshal(sentinelFile{schema, append([]string{}, slices.Compact(sessions)...)}, lenient)
	if err != nil {
		return err
	}
	return safefile.Swap(s.sentinel(), append(raw, '\n'))
}

// Register adds a session to the sentinel.
func (s Store) Register(session string) error {
	if has := s.ReadSentinel(); has.There && !has.Legacy && slices.Contains(has.Sessions, session) {
		return nil
	}
	return s.exclusively(func() error {
		return s.writeSentinel(append(s.ReadSentinel().Sessions, session))
	})
}

// Stale returns the registered sessions that have no marker, and whether the
// sentinel says that there are markers where there are none.
func (s Store) Stale() (missing []string, empty bool) {
	sentinel := s.ReadSentinel()
	entries, _ := os.ReadDir(s.Denies())
	have := ids(entries)
	for _, id := range sentinel.Sessions {
		if !slices.Contains(have, id) {
			missing = append(missing, id)
		}
	}
	return missing, sentinel.There && len(have) == 0
}

// Unregister takes sessions that have no marker out of the sentinel, and
// returns which those were; the sentinel goes when nothing is left that it
// could stand for. It never touches a marker.
func (s Store) Unregister(sessions []string) (gone []string, err error) {
	err = s.exclusively(func() error {
		missing, _ := s.Stale()
		sentinel := s.ReadSentinel()
		var keep []string
		for _, id := range sentinel.Sessions {
			if slices.Contains(missing, id) && slices.Contains(sessions, id) {
				gone = append(gone, id)
			} else {
				keep = append(keep, id)
			}
		}
		entries, _ := os.ReadDir(s.Denies())
		if len(keep) > 0 || len(ids(entries)) > 0 {
			return s.writeSentinel(keep)
		}
		return errors.Join(safefile.Remove(s.legacySentinel()), safefile.Remove(s.sentinel()))
	})
	return gone, err
}
