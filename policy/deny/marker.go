package deny

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/safefile"
	"handoffd/policy/mutation"
)

// Marker is a session's deny record as a file.
type Marker struct {
	Session    string  `json:"session_id"`
	Ticket     *string `json:"ticket_id"`
	Hash       *string `json:"content_hash"`
	Status     string  `json:"status"`
	Since      string  `json:"since"`
	Host       string  `json:"host"`
	Schema     int     `json:"schema"`
	Kind       string  `json:"content_kind,omitempty"`
	ConsumedBy string  `json:"consumed_by,omitempty"`
	ConsumedAt string  `json:"consumed_at,omitempty"`
	// Extra are members that this version does not know.
	Extra jsontext.Value `json:",embed"`
}

// schema is the version of the published tool's files.
const schema = 1

// Record returns what the gate decides by.
func (m Marker) Record() mutation.Record {
	return mutation.Record{Session: m.Session, Ticket: Text(m.Ticket), Hash: Text(m.Hash), Status: m.Status, Kind: m.Kind}
}

// Bind is a value that a record is bound to: nil when it is blank, else
// without white space around it.
func Bind(s string) *string {
	if s = strings.TrimSpace(s); s == "" {
		return nil
	}
	return &s
}

// Text is what Bind was given, "" for nil.
func Text(b *string) string {
	if b == nil {
		return ""
	}
	return *b
}

// Outcome is how the reading of a marker went.
type Outcome string

// The outcomes, by the published tool's names.
const (
	OK            Outcome = "ok"
	Missing       Outcome = "missing_marker"
	Unreadable    Outcome = "unreadable_marker"
	Corrupt       Outcome = "corrupt_json"
	InvalidShape  Outcome = "invalid_shape"
	OtherSession  Outcome = "session_id_mismatch"
	InvalidStatus Outcome = "invalid_status"
)

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// ParseMarker reads the marker of a session.
func ParseMarker(raw []byte, session string) (Marker, Outcome) {
	v := jsontext.Value(raw)
	if !v.IsValid(lenient) {
		return Marker{}, Corrupt
	}
	var file struct {
		Session jsontext.Value `json:"session_id"`
		Ticket  jsontext.Value `json:"ticket_id"`
		Hash    jsontext.Value `json:"content_hash"`
		Status  jsontext.Value `json:"status"`
		Since   jsontext.Value `json:"since"`
		Host    jsontext.Value `json:"host"`
		Schema  jsontext.Value `json:"schema"`
		Kind    jsontext.Value `json:"content_kind"`
		By      jsontext.Value `json:"consumed_by"`
		At      jsontext.Value `json:"consumed_at"`
		Extra   jsontext.Value `json:",embed"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &file, lenient) != nil {
		return Marker{}, InvalidShape
	}
	id, isText := text(file.Session)
	status, hasStatus := text(file.Status)
	switch {
	case !isText || id == "" || len(file.Schema) > 0 && string(file.Schema) != "1":
		return Marker{}, InvalidShape
	case id != session:
		return Marker{}, OtherSession
	case !hasStatus || status != mutation.Open && status != mutation.Consumed:
		return Marker{}, InvalidStatus
	}
	out := Marker{Session: id, Status: status, Schema: schema, Extra: file.Extra}
	for _, member := range []struct {
		raw  jsontext.Value
		into func(string)
	}{
		{file.Ticket, func(s string) { out.Ticket = Bind(s) }}, {file.Hash, func(s string) { out.Hash = Bind(s) }},
		{file.Since, func(s string) { out.Since = s }}, {file.Host, func(s string) { out.Host = s }}, {file.Kind, func(s string) { out.Kind = s }},
		{file.By, func(s string) { out.ConsumedBy = s }}, {file.At, func(s string) { out.ConsumedAt = s }},
	} {
		if s, ok := text(member.raw); ok {
			member.into(s)
		}
	}
	return out, OK
}

func text(v jsontext.Value) (string, bool) {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s, lenient) != nil {
		return "", false
	}
	return s, true
}

// Encode returns a document as the published tool writes them: indented by
// two spaces, with a newline at the end.
func Encode(doc any) ([]byte, error) {
	raw, err := json.Marshal(doc, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true), jsontext.EscapeForHTML(false))
	return append(raw, '\n'), err
}

// Read reads the marker of a session, whose id must be safe.
func (s Store) Read(session string) (Marker, Outcome) {
	m, _, outcome := s.ReadBytes(session)
	return m, outcome
}

// ReadBytes is Read with the bytes that were read; they are nil when there
// were none.
func (s Store) ReadBytes(session string) (Marker, []byte, Outcome) {
	raw, err := safefile.ReadSmall(s.Marker(session), maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Marker{}, nil, Missing
	case err != nil:
		return Marker{}, nil, Unreadable
	}
	m, outcome := ParseMarker(raw, session)
	return m, raw, outcome
}

// The states of a session that was denied before, by the published tool's
// names.
const (
	ReasonOpenPersists     = "D1:open_deny_persists"
	ReasonConsumedPersists = "D1:consumed_deny_persists"
	ReasonVanished         = "D1:marker_vanished"
)

// Reentry returns why a session whose context is no longer full is denied all
// the same, or "": what its marker says, and if it has none, whether there
// ever was one.
func Reentry(m Marker, outcome Outcome, everWritten bool) string {
	switch {
	case outcome == OK && m.Status == mutation.Consumed:
		return ReasonConsumedPersists
	case outcome == OK:
		return ReasonOpenPersists
	case outcome == Missing && everWritten:
		return ReasonVanished
	case outcome == Missing:
		return ""
	}
	return "D1:" + string(outcome)
}
