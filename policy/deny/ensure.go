package deny

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"handoffd/engine/safefile"
	"handoffd/policy/mutation"
)

// Ensured is the outcome of Ensure. A reason that is neither ReasonMade nor
// ReasonPresent says why there is no marker to rely on.
type Ensured struct {
	OK     bool
	Reason string
	Marker Marker
}

// How a marker came to be there.
const (
	ReasonMade    = "ok"
	ReasonPresent = "already_present"
)

// Ensure makes sure that a session has a marker. One that is valid is never
// written again; one that is damaged is moved to quarantine first; one that
// is somebody else's, or unreadable, stays and is refused.
func (s Store) Ensure(session string, ticket, hash *string, kind, host string) Ensured {
	if !mutation.SafeID(session) {
		return Ensured{Reason: "invalid_session_id"}
	}
	m, outcome := s.Read(session)
	switch outcome {
	case OK:
		return s.registered(Ensured{OK: true, Reason: ReasonPresent, Marker: m})
	case Corrupt, InvalidShape:
		if err := s.quarantine(session+".json", string(outcome)); err != nil {
			return Ensured{Reason: "quarantine_failed:" + why(err)}
		}
	case Missing:
	default:
		return Ensured{Reason: string(outcome)}
	}
	m = Marker{
		Session: session, Ticket: Bind(Text(ticket)), Hash: Bind(Text(hash)), Status: mutation.Open,
		Since: Stamp(s.Now()), Host: host, Schema: schema, Kind: kind,
	}
	raw, err := Encode(m)
	if err == nil {
		err = s.makeDirs("denies")
	}
	if err == nil {
		err = safefile.Create(s.Marker(session), raw)
	}
	reason := ReasonMade
	if errors.Is(err, fs.ErrExist) { // another was faster
		reason, err = ReasonPresent, nil
	}
	if err != nil {
		return Ensured{Reason: "write_failed:" + why(err)}
	}
	if m, outcome = s.Read(session); outcome != OK {
		return Ensured{Reason: string(outcome)}
	}
	return s.registered(Ensured{OK: true, Reason: reason, Marker: m})
}

func (s Store) registered(e Ensured) Ensured {
	if err := s.Register(e.Marker.Session); err != nil {
		return Ensured{Reason: "sentinel_write_failed:" + why(err), Marker: e.Marker}
	}
	return e
}

// Quarantine moves the marker of a session aside, whatever it is.
func (s Store) Quarantine(session string, outcome Outcome) error {
	if err := s.quarantine(session+".json", string(outcome)); err != nil {
		return fmt.Errorf("move the marker aside: %w", err)
	}
	return nil
}

// quarantine moves a file of the markers' directory aside, with its bytes.
func (s Store) quarantine(name, reason string) error {
	dir := s.path("denies", "quarantine")
	if err := safefile.MakeDir(dir); err != nil {
		return err
	}
	base := fmt.Sprintf("%s.%s.%d", name, reason, s.Now().UnixMilli())
	for n := 0; ; n++ {
		to := filepath.Join(dir, base)
		if n > 0 {
			to += "." + strconv.Itoa(n)
		}
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		return safefile.Rename(s.path("denies", name), to)
	}
}

// oldStray is the age from which on a temporary is nobody's.
const oldStray = time.Hour

// Sweep moves what is no marker out of the markers' directory. A file with a
// marker's name stays, however broken: it denies. One that cannot be moved
// does not keep the others from it.
func (s Store) Sweep() (moved, failed []string) {
	entries, err := os.ReadDir(s.Denies())
	if err != nil {
		return nil, nil
	}
	for _, e := range entries {
		name := e.Name()
		id, isJSON := strings.CutSuffix(name, ".json")
		if isJSON && mutation.SafeID(id) || e.IsDir() && name == "quarantine" {
			continue
		}
		if safefile.IsStray(name) {
			if info, err := e.Info(); err == nil && s.Now().Sub(info.ModTime()) < oldStray {
				continue
			}
		}
		if err := s.quarantine(name, "junk"); err != nil {
			failed = append(failed, name)
		} else {
			moved = append(moved, name)
		}
	}
	return moved, failed
}
