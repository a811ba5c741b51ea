package signed

import (
	"errors"
	"io/fs"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/policy/deny"
	"handoffd/policy/mutation"
)

// maxDocument bounds a signed document, in bytes.
const maxDocument = 4096

// Auth says that a session goes on with the work of a denied one, as
// <consumer>.resume-auth.json of the published tool (npm
// @adlc/context-handoff 1.11.1). The time is not signed and there is no end:
// what ends it is that the record it is about is consumed.
type Auth struct {
	Schema   int     `json:"schema"`
	Ticket   *string `json:"ticket_id"`
	Hash     *string `json:"content_hash"`
	Denier   string  `json:"deny_session_id"`
	Consumer string  `json:"consumer_session_id"`
	Written  string  `json:"written_at"`
	Sig      string  `json:"sig"`
}

func (a Auth) message() []byte {
	return canonical(map[string]any{
		"schema": a.Schema, "ticket_id": a.Ticket, "content_hash": a.Hash,
		"deny_session_id": a.Denier, "consumer_session_id": a.Consumer,
	})
}

// Sign fills in the signature.
func (a *Auth) Sign(key []byte) { a.Sig = seal.Sign(key, a.message()) }

// Verified reports whether the signature is that of the key.
func (a Auth) Verified(key []byte) bool { return seal.Signed(key, a.message(), a.Sig) }

// Same reports whether two say the same, whenever they were written.
func (a Auth) Same(b Auth) bool { return string(a.message()) == string(b.message()) }

// Gate returns what the gate decides by.
func (a Auth) Gate(verified bool) *mutation.Auth {
	return &mutation.Auth{Ticket: deny.Text(a.Ticket), Hash: deny.Text(a.Hash), Denier: a.Denier, Consumer: a.Consumer, Verified: verified}
}

// ParseAuth reads an authorization for a session; ok is false when it is none
// or another's.
func ParseAuth(raw []byte, consumer string) (a Auth, ok bool) {
	if len(raw) > maxDocument || json.Unmarshal(raw, &a, jsontext.AllowInvalidUTF8(true)) != nil || a.Schema != 1 || a.Consumer != consumer || a.Denier == "" || a.Sig == "" {
		return Auth{}, false
	}
	return a, true
}

// ReadAuth reads the authorization of a session. found says that a file of
// that name is there, whatever it is.
func ReadAuth(s deny.Store, consumer string) (a Auth, ok, found bool) {
	raw, err := safefile.ReadOwn(s.Auth(consumer), maxDocument)
	if err != nil {
		return Auth{}, false, !errors.Is(err, fs.ErrNotExist)
	}
	a, ok = ParseAuth(raw, consumer)
	return a, ok, true
}

// canonical encodes members; texts, null and small numbers cannot fail.
func canonical(members map[string]any) []byte {
	raw, err := json.Marshal(members, jsontext.AllowInvalidUTF8(true))
	if err == nil {
		raw, err = seal.Canonical(raw)
	}
	if err != nil {
		panic("signed: " + err.Error())
	}
	return raw
}
