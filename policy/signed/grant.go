package signed

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/policy/deny"
	"handoffd/policy/mutation"
)

// GrantTTL is how long after it was written a grant can be used.
const GrantTTL = 10 * time.Minute

// Grant lifts the deny of a session for one call, as
// <session>.bypass-grant.json of the published tool (npm
// @adlc/context-handoff 1.11.1). Its signature covers the members before it;
// the nonce is ours, with a signature of its own over all of them, which that
// tool passes over.
type Grant struct {
	Schema   int     `json:"schema"`
	Session  string  `json:"session_id"`
	Reason   *string `json:"unbound_reason"`
	Written  string  `json:"written_at"`
	Sig      string  `json:"sig"`
	Nonce    string  `json:"nonce,omitempty"`
	NonceSig string  `json:"nonce_sig,omitempty"`
}

const grantSchema = 2

func (g Grant) members() map[string]any {
	return map[string]any{"schema": g.Schema, "session_id": g.Session, "unbound_reason": g.Reason, "written_at": g.Written}
}

func (g Grant) withNonce() []byte {
	m := g.members()
	m["nonce"] = g.Nonce
	return canonical(m)
}

// NewGrant returns a signed grant. The error is fault.Operational when it
// would be too long to be read.
func NewGrant(key []byte, session string, reason *string, now time.Time) (Grant, []byte, error) {
	g := Grant{Schema: grantSchema, Session: session, Reason: reason, Written: deny.Stamp(now), Nonce: deny.Nonce()}
	g.Sig = seal.Sign(key, canonical(g.members()))
	g.NonceSig = seal.Sign(key, g.withNonce())
	raw, err := deny.Encode(g)
	if err == nil && len(raw) > maxDocument {
		err = fault.New(fault.Operational, "the grant would have %d bytes, more than %d", len(raw), maxDocument).WithHint("give a shorter reason")
	}
	return g, raw, err
}

var hexSum = regexp.MustCompile(`\A[0-9a-f]{64}\z`)

// ParseGrant reads a grant for a session and verifies it: schema, signature,
// age. A time in the future is one of another clock.
func ParseGrant(raw, key []byte, session string, now time.Time) (g Grant, ok bool) {
	if len(raw) > maxDocument || json.Unmarshal(raw, &g, jsontext.AllowInvalidUTF8(true)) != nil {
		return Grant{}, false
	}
	written, err := time.Parse(time.RFC3339, g.Written)
	switch {
	case g.Schema != grantSchema, g.Session != session, g.Reason != nil && strings.TrimSpace(*g.Reason) == "",
		err != nil, now.Sub(written) > GrantTTL,
		!hexSum.MatchString(g.Sig), !seal.Signed(key, canonical(g.members()), g.Sig),
		g.Nonce != "" && !seal.Signed(key, g.withNonce(), g.NonceSig):
		return Grant{}, false
	}
	return g, true
}

// Gate returns what the gate decides by.
func (g Grant) Gate() *mutation.Grant {
	return &mutation.Grant{Session: g.Session, Unbound: g.Reason != nil}
}

// ReadGrant reads and verifies the grant of a session, with its bytes.
func ReadGrant(s deny.Store, key []byte, session string) (g Grant, raw []byte, ok bool) {
	raw, err := safefile.ReadOwn(s.Grant(session), maxDocument)
	if err != nil {
		return Grant{}, nil, false
	}
	if g, ok = ParseGrant(raw, key, session, s.Now()); !ok {
		return Grant{}, nil, false
	}
	if _, err := os.Lstat(spent(s, g)); !errors.Is(err, fs.ErrNotExist) {
		return Grant{}, nil, false
	}
	return g, raw, true
}

// spent is the file that remembers that a grant was used. It is named by the
// signature, which no two grants share and no copy can change.
func spent(s deny.Store, g Grant) string { return filepath.Join(s.Spent(), g.Sig+".json") }

// Claim uses a grant up. Of all who try only one succeeds, and nobody ever
// again: bytes that were kept and put back are known.
func Claim(s deny.Store, g Grant, raw []byte) bool {
	if err := safefile.MakeDir(s.Spent()); err != nil {
		return false
	}
	prune(s)
	note, err := deny.Encode(struct {
		Session string `json:"session_id"`
		Written string `json:"written_at"`
		Nonce   string `json:"nonce,omitempty"`
		Spent   string `json:"spent_at"`
	}{g.Session, g.Written, g.Nonce, deny.Stamp(s.Now())})
	if err != nil || safefile.Create(spent(s, g), note) != nil {
		return false
	}
	// The published tool knows a used grant by its missing file.
	if now, err := safefile.ReadOwn(s.Grant(g.Session), maxDocument); err == nil && string(now) == string(raw) {
		_ = safefile.Remove(s.Grant(g.Session))
	}
	return true
}

// prune forgets used grants that are too old to be used anyway. The margin is
// for clocks that differ.
func prune(s deny.Store) {
	entries, err := os.ReadDir(s.Spent())
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(s.Spent(), e.Name())
		raw, err := safefile.ReadOwn(path, maxDocument)
		var note struct {
			Written string `json:"written_at"`
		}
		if err != nil || json.Unmarshal(raw, &note) != nil {
			continue
		}
		if written, err := time.Parse(time.RFC3339, note.Written); err == nil && s.Now().Sub(written) > 6*GrantTTL {
			_ = safefile.Remove(path)
		}
	}
}
