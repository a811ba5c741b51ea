package evidence

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
)

const maxPointer = 64 << 10

// ActiveTicket returns the ticket that the project works on, "" for none: what
// .adlc/current-ticket.json says, and the environment. The error is
// fault.Operational: a pointer that is there and makes no sense is never none.
func (l Ledger) ActiveTicket(environment string) (string, error) {
	environment = strings.TrimSpace(environment)
	raw, err := safefile.ReadSmall(filepath.Join(l.Dir, "current-ticket.json"), maxPointer)
	if errors.Is(err, fs.ErrNotExist) {
		return environment, nil
	}
	if err != nil {
		return "", fault.New(fault.Operational, "the pointer to the active ticket cannot be read: %w", err)
	}
	id, ok := pointer(raw)
	switch {
	case !ok:
		return "", fault.New(fault.Operational, "the pointer to the active ticket is malformed").WithHint("mend or remove .adlc/current-ticket.json")
	case environment != "" && environment != id:
		return "", fault.New(fault.Operational, "the active ticket is %q by its pointer and %q by ADLC_TICKET", id, environment)
	}
	return id, nil
}

func pointer(raw []byte) (string, bool) {
	v := jsontext.Value(raw)
	var id string
	switch v.Kind() {
	case '"':
		if json.Unmarshal(v, &id) != nil {
			return "", false
		}
	case '{':
		var members map[string]jsontext.Value
		if json.Unmarshal(v, &members) != nil {
			return "", false
		}
		for _, name := range []string{"id", "ticket", "ticketId"} {
			if m, ok := members[name]; ok {
				if m.Kind() != '"' || json.Unmarshal(m, &id) != nil {
					return "", false
				}
				break
			}
		}
	}
	id = strings.TrimSpace(id)
	return id, id != ""
}

// TicketTitle returns the title of a ticket as .adlc/tickets.json has it, ""
// when it is not found there.
func (l Ledger) TicketTitle(id string) string {
	raw, err := safefile.ReadSmall(filepath.Join(l.Dir, "tickets.json"), 8<<20)
	if err != nil || id == "" {
		return ""
	}
	type ticket struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	var list []ticket
	var file struct {
		Tickets []ticket `json:"tickets"`
	}
	if json.Unmarshal(raw, &list) != nil && json.Unmarshal(raw, &file) == nil {
		list = file.Tickets
	}
	for _, t := range list {
		if t.ID == id {
			return t.Title
		}
	}
	return ""
}
