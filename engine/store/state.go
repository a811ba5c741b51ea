package store

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/engine/session"
)

// stateVersion changes when an older state cannot be continued from; the
// session is then read again from its sources.
const stateVersion = 1

// State is what the next build continues from. It can be deleted: the next
// build then reads the timeline and the sources again.
type State struct {
	Version int   `json:"version"`
	Marks   Marks `json:"marks"`
	// Ingest and Fold are the states of the packages of those names.
	Ingest jsontext.Value `json:"ingest"`
	Fold   jsontext.Value `json:"fold"`
	// Contract is the hand-authored block of HANDOFF.md, so that a lost
	// brief does not lose it.
	Contract string `json:"contract,omitempty"`
}

// WriteState adds the state file of a revision to the group and names it in
// the manifest.
func WriteState(g *safefile.Group, dir string, s *State, m *session.Manifest) error {
	s.Version = stateVersion
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	m.State = StateDir + "/" + strconv.Itoa(m.Revisions) + ".json"
	m.StateSHA256 = seal.Sum(raw)
	if err := safefile.MakeDir(filepath.Join(dir, StateDir)); err != nil {
		return err
	}
	return g.Replace(filepath.Join(dir, m.State), raw)
}

// ReadState reads the state that the manifest names. A missing, damaged or
// outdated one is fault.Integrity.
func ReadState(dir string, m *session.Manifest) (*State, error) {
	name, ok := strings.CutPrefix(m.State, StateDir+"/")
	if !ok || strings.ContainsAny(name, `/\`) {
		return nil, fault.New(fault.Integrity, "manifest names no state")
	}
	raw, err := safefile.ReadSmall(filepath.Join(dir, StateDir, name), maxManifest)
	if err != nil {
		return nil, fault.New(fault.Integrity, "read state: %w", err)
	}
	if seal.Sum(raw) != m.StateSHA256 {
		return nil, fault.New(fault.Integrity, "state does not match the manifest")
	}
	s := &State{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fault.New(fault.Integrity, "parse state: %w", err)
	}
	if s.Version != stateVersion {
		return nil, fault.New(fault.Integrity, "state of version %d", s.Version)
	}
	return s, nil
}

// Sweep removes the leavings of earlier builds from a session directory:
// temporaries, and state files other than the manifest's, if m is not nil.
// Failures are left for the next time.
func Sweep(dir string, m *session.Manifest) {
	for _, sub := range []string{"", StateDir, QuarantineDir} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			continue
		}
		for _, e := range entries {
			name := e.Name()
			stale := safefile.IsTemp(name) || m != nil && sub == StateDir && strings.HasSuffix(name, ".json") && sub+"/"+name != m.State
			if stale {
				_ = safefile.Remove(filepath.Join(dir, sub, name))
			}
		}
	}
}

// ReadKeys reads the keys of the first n turns.
func ReadKeys(dir string, n int64) ([]Key, error) {
	f, err := os.Open(filepath.Join(dir, KeysName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := make([]byte, n*8)
	if _, err := f.ReadAt(raw, 0); err != nil {
		return nil, err
	}
	out := make([]Key, n, n+n/8+64)
	for i := range out {
		out[i] = Key(binary.LittleEndian.Uint64(raw[i*8:]))
	}
	return out, nil
}
