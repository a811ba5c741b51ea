// Package mutation decides whether a session may change anything: deny
// records, an authorization and a grant in, reasons out. It also reads shell
// commands as a shell would, to tell what they change. It is pure: it looks at
// no file, verifies no signature and knows no harness.
package mutation

import (
	"path"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The states of a deny record. A record is made open and becomes consumed when
// its session's work went on in another one; it never goes back.
const (
	Open     = "open"
	Consumed = "consumed"
)

// KindCapture marks records whose hash is that of a capture on disk.
const KindCapture = "capture"

// Record is a deny record: the session must not change anything any more.
type Record struct {
	Session string
	Ticket  string // "" when it is bound to none
	Hash    string // of what was handed off, "" when it is bound to nothing
	Status  string
	Kind    string
}

// Bound reports whether the record says what was handed off.
func (r Record) Bound() bool { return blank(r.Ticket) != "" && blank(r.Hash) != "" }

// blank is s, or "" when it is only white space.
func blank(s string) string { return strings.TrimSpace(s) }

// Auth says that a session goes on with the work of a denied one.
type Auth struct {
	Ticket, Hash, Denier, Consumer string
	// Verified says that the signature was checked and is right.
	Verified bool
}

// Grant lifts the deny for one call.
type Grant struct {
	Session string
	// Unbound grants also lift records that are bound to nothing and faults
	// of the store.
	Unbound bool
}

// ParseGrant reads a grant as a host hands it in: true is a bound one, an
// object names a session or has a reason for an unbound one. Everything else,
// and one for another session, is none.
func ParseGrant(raw jsontext.Value, session string) *Grant {
	switch raw.Kind() {
	case 't':
		return &Grant{Session: session}
	case '{':
	default:
		return nil
	}
	var members map[string]jsontext.Value
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	var named, reason string
	id, hasID := members["sessionId"]
	if hasID && (json.Unmarshal(id, &named) != nil || named != session) {
		return nil
	}
	why, hasReason := members["unboundReason"]
	if hasReason && why.Kind() != 'n' && (json.Unmarshal(why, &reason) != nil || blank(reason) == "") {
		return nil
	}
	if !hasID && reason == "" {
		return nil
	}
	return &Grant{Session: session, Unbound: reason != ""}
}

// SafeID reports whether an id of a session may name files: the rule of the
// published tool, which allows spaces and newlines inside.
func SafeID(id string) bool {
	return id != "" && id == strings.TrimSpace(id) && !strings.ContainsAny(id, "/\\\x00") &&
		!strings.Contains(id, "..") && path.Base(id) == id && id != "."
}

var promptSafe = regexp.MustCompile(`\A[A-Za-z0-9._-]+\z`)

// PromptSafe reports whether an id may stand in text for models and in
// commands to copy.
func PromptSafe(id string) bool { return promptSafe.MatchString(id) }
