// Package evidence appends to and checks the ledger of a project, the
// hash-chained and signed record of what was done to its continuity store, in
// the format of the published tool (npm @adlc/gate-manifest,
// github.com/voodootikigod/adlc). It never changes a line that stands.
package evidence

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/seal"
)

// Entry is one line of the ledger. The members of each kind of line stand in
// the order of the fields.
type Entry struct {
	Seq    int64          `json:"seq"`
	Gate   string         `json:"gate"`
	TS     string         `json:"ts"`
	Ticket string         `json:"ticket,omitempty"`
	Data   jsontext.Value `json:"data,omitempty"`
	Files  jsontext.Value `json:"files"`
	Prev   *string        `json:"prev"`
	// SigVersion is absent for the first version of signatures.
	SigVersion int    `json:"sigVersion,omitzero"`
	Sig        string `json:"sig,omitempty"`
}

// order is that of the members that the first version signs.
var order = []string{"seq", "gate", "ts", "ticket", "data", "files", "prev"}

// signable returns what is signed of a line: version 1 the members above in
// their order, version 2 all but the signature and the segment, sorted.
func signable(line []byte, version int) ([]byte, error) {
	if version == 2 {
		return seal.Canonical(line, "sig", "segment")
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(line, &members); err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for _, name := range order {
		raw, ok := members[name]
		if !ok {
			continue
		}
		value, err := seal.CompactValue(raw)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(seal.AppendString(out, name), ':'), value...)
	}
	return append(out, '}'), nil
}

// line returns the bytes of an entry, signed.
func (e Entry) line(key []byte) ([]byte, error) {
	e.Sig = ""
	if e.Files == nil {
		e.Files = jsontext.Value("{}")
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	signed, err := signable(raw, e.SigVersion)
	if err != nil {
		return nil, err
	}
	whole, err := seal.CompactValue(raw)
	if err != nil {
		return nil, err
	}
	whole = append(whole[:len(whole)-1], `,"sig":`...)
	return append(strconv.AppendQuote(whole, seal.Sign(key, signed)), '}'), nil
}

// ParseEntry reads a line, without its newline.
func ParseEntry(line []byte) (Entry, error) {
	var head struct {
		Seq        jsontext.Value `json:"seq"`
		Gate       jsontext.Value `json:"gate"`
		TS         jsontext.Value `json:"ts"`
		Ticket     jsontext.Value `json:"ticket"`
		Data       jsontext.Value `json:"data"`
		Files      jsontext.Value `json:"files"`
		Prev       *string        `json:"prev"`
		SigVersion int            `json:"sigVersion"`
		Sig        jsontext.Value `json:"sig"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return Entry{}, fmt.Errorf("malformed entry: %w", err)
	}
	e := Entry{Data: head.Data, Files: head.Files, Prev: head.Prev, SigVersion: head.SigVersion}
	n, err := strconv.ParseInt(string(head.Seq), 10, 64)
	if err != nil || n < 1 {
		return Entry{}, fmt.Errorf("malformed entry: seq is %q", head.Seq)
	}
	e.Seq = n
	for _, m := range []struct {
		raw  jsontext.Value
		into *string
		must bool
	}{{head.Gate, &e.Gate, true}, {head.TS, &e.TS, false}, {head.Ticket, &e.Ticket, false}, {head.Sig, &e.Sig, false}} {
		if m.raw.Kind() == '"' {
			if err := json.Unmarshal(m.raw, m.into); err != nil {
				return Entry{}, fmt.Errorf("malformed entry: %w", err)
			}
		} else if m.must {
			return Entry{}, fmt.Errorf("malformed entry: it names no gate")
		}
	}
	return e, nil
}
