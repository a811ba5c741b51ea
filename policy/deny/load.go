package deny

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"handoffd/policy/mutation"
)

// Why the store is not available.
const (
	MissingStore = "missing_deny_store"
	EmptiedStore = "emptied_deny_store"
	readFailed   = "readdir_failed:"
)

// missingRegistered is the outcome of a session that is registered and has no
// marker.
const missingRegistered = "missing_registered_marker"

// Broken is a marker that cannot be read.
type Broken struct {
	Session string
	Reason  string // invalid:<outcome>
}

// Loaded is the store at one time.
type Loaded struct {
	Markers    []Marker
	Broken     []Broken
	Registered []string
	// Unavailable says why there is nothing to decide by, "" when there is.
	Unavailable string
}

// Hot reports whether anything in the store can deny a session that has no
// name: open or broken markers, missing ones, a store that is gone. A consumed
// marker denies only its own session.
func (l Loaded) Hot() bool {
	return l.Unavailable != "" || len(l.Broken) > 0 ||
		slices.ContainsFunc(l.Markers, func(m Marker) bool { return m.Status != mutation.Consumed })
}

// Load reads every marker. What is not clean is healed on the way: a sentinel
// at the old place is copied to the new one, and one that is missing is made
// anew from the markers. That it cannot be is no error.
func (s Store) Load() Loaded {
	var l Loaded
	sentinel := s.ReadSentinel()
	l.Registered = sentinel.Sessions
	entries, err := os.ReadDir(s.Denies())
	switch {
	case errors.Is(err, fs.ErrNotExist) && sentinel.There:
		l.Unavailable = MissingStore
	case errors.Is(err, fs.ErrNotExist):
		return l
	case err != nil:
		l.Unavailable = readFailed + why(err)
	}
	have := ids(entries)
	if l.Unavailable == "" && sentinel.There && len(have) == 0 {
		l.Unavailable = EmptiedStore
	}
	for _, id := range have {
		m, outcome := s.Read(id)
		if outcome == OK {
			l.Markers = append(l.Markers, m)
		} else {
			l.Broken = append(l.Broken, Broken{id, "invalid:" + string(outcome)})
		}
	}
	if l.Unavailable == "" {
		for _, id := range sentinel.Sessions {
			if !slices.Contains(have, id) {
				l.Broken = append(l.Broken, Broken{id, "invalid:" + missingRegistered})
			}
		}
	}
	s.heal(sentinel, l)
	return l
}

func (s Store) heal(sentinel Sentinel, l Loaded) {
	if sentinel.There && !sentinel.Legacy || !sentinel.There && len(l.Markers) == 0 {
		return
	}
	_ = s.exclusively(func() error {
		now := s.ReadSentinel()
		if now.There && !now.Legacy {
			return nil
		}
		sessions := now.Sessions
		if !now.There {
			for _, m := range l.Markers {
				sessions = append(sessions, m.Session)
			}
		}
		return s.writeSentinel(sessions)
	})
}

// Input fills in what the gate is told of the store.
func (l Loaded) Input(session string) mutation.Input {
	in := mutation.Input{Session: session, Unavailable: l.Unavailable != ""}
	own := false
	for _, m := range l.Markers {
		in.Records = append(in.Records, m.Record())
		own = own || m.Session == session
	}
	for _, b := range l.Broken {
		in.Invalid = append(in.Invalid, mutation.Invalid{Session: b.Session})
		own = own || b.Session == session && b.Reason != "invalid:"+missingRegistered
	}
	in.Sticky = !own && slices.Contains(l.Registered, session)
	return in
}
