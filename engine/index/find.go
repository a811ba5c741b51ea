package index

import (
	"strings"

	"handoffd/engine/fault"
)

// Find returns the session that id names: by exact id first, then by unique
// prefix, then as project/prefix. Both the directory name and the session's
// own id count. The error is fault.NotFound or fault.Ambiguous; the latter
// says which match.
func (x *Index) Find(id string) (Entry, error) {
	list, err := x.Entries()
	if err != nil {
		return Entry{}, err
	}
	return Find(list, id)
}

// Find is Index.Find over a given list.
func Find(list []Entry, id string) (Entry, error) {
	if id == "" {
		return Entry{}, fault.New(fault.Usage, "missing session id")
	}
	if len(list) == 0 {
		return Entry{}, fault.New(fault.NotFound, "no handoffs yet")
	}
	exact := func(e Entry) bool { return e.ID == id || e.UUID == id }
	prefix := func(e Entry) bool { return strings.HasPrefix(e.ID, id) || strings.HasPrefix(e.UUID, id) }
	project, rest, qualified := strings.Cut(id, "/")
	within := func(match func(Entry) bool) func(Entry) bool {
		return func(e Entry) bool { return qualified && e.Project == project && match(e) }
	}
	exactIn := within(func(e Entry) bool { return e.ID == rest || e.UUID == rest })
	prefixIn := within(func(e Entry) bool { return strings.HasPrefix(e.ID, rest) || strings.HasPrefix(e.UUID, rest) })
	for _, match := range []func(Entry) bool{exact, prefix, exactIn, prefixIn} {
		var hits []Entry
		for _, e := range list {
			if match(e) {
				hits = append(hits, e)
			}
		}
		switch len(hits) {
		case 0:
			continue
		case 1:
			return hits[0], nil
		}
		return Entry{}, ambiguous(id, hits)
	}
	return Entry{}, fault.New(fault.NotFound, "no handoff matches prefix: %s", id)
}

// maxNamed bounds how many matches an error names.
const maxNamed = 8

func ambiguous(id string, hits []Entry) error {
	var names []string
	for i, e := range hits {
		if i == maxNamed {
			names = append(names, "...")
			break
		}
		names = append(names, e.Project+"/"+e.ID)
	}
	return fault.New(fault.Ambiguous, "ambiguous prefix (%d hits): %s: %s", len(hits), id, strings.Join(names, ", ")).
		WithHint("give more of the id, or project/id")
}
