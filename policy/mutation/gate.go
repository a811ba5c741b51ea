package mutation

import "slices"

// The reasons of the gate. Those that end in a colon are followed by a
// session's id.
const (
	ReasonSticky      = "D1:process_sticky"
	ReasonSession     = "D0:invalid_session_id"
	ReasonRecords     = "D0:invalid_deny_records"
	ReasonUnavailable = "D0:deny_store_unavailable"
	ReasonDenier      = "D2:denier_session"
	ReasonOpen        = "D3:unauthorized_open:"
	ReasonInvalid     = "D3:invalid_record:"
)

// Invalid is a record that could not be read: of which session, or "" when
// not even that is known. No grant lifts the latter.
type Invalid struct{ Session string }

// Input is everything that the gate decides by.
type Input struct {
	Session string // who asks
	Records []Record
	Invalid []Invalid
	// BadRecords says that the records are no list at all.
	BadRecords bool
	// Sticky says that the session was denied before, whatever the store
	// says now.
	Sticky bool
	Auth   *Auth
	Grant  *Grant
	// ManifestFailed says that the ledger which authorizations are attested
	// in does not verify.
	ManifestFailed bool
	// Unavailable says that the store of records is gone or unreadable.
	Unavailable bool
}

// Gate returns why the session may not change anything; nothing means that it
// may.
func Gate(in Input) []string {
	if !SafeID(in.Session) {
		return []string{ReasonSession}
	}
	grant := in.Grant
	if grant != nil && (grant.Session != in.Session || in.ManifestFailed) {
		grant = nil
	}
	unbound := grant != nil && grant.Unbound
	var why []string
	deny := func(reason string) {
		if !slices.Contains(why, reason) {
			why = append(why, reason)
		}
	}
	if in.Sticky {
		deny(ReasonSticky)
	}
	if in.BadRecords {
		deny(ReasonRecords)
	}
	if in.Unavailable && !unbound {
		deny(ReasonUnavailable)
	}
	if grant == nil && slices.ContainsFunc(in.Records, func(r Record) bool { return r.Session == in.Session }) {
		deny(ReasonDenier)
	}
	for _, r := range in.Records {
		if r.Status != Consumed && !authorized(in, grant, r) {
			deny(ReasonOpen + r.Session)
		}
	}
	for _, r := range in.Invalid {
		switch {
		case r.Session == "":
			deny(ReasonInvalid + "?")
		case !unbound:
			deny(ReasonInvalid + r.Session)
		}
	}
	return why
}

// authorized reports whether the session may go on although r is open.
func authorized(in Input, grant *Grant, r Record) bool {
	switch {
	case in.ManifestFailed:
		return false
	case grant != nil:
		return r.Bound() || grant.Unbound || r.Session == in.Session
	case !r.Bound() || in.Auth == nil || !in.Auth.Verified:
		return false
	}
	a := in.Auth
	return a.Consumer == in.Session && a.Denier == r.Session && a.Ticket == blank(r.Ticket) && a.Hash == blank(r.Hash)
}
