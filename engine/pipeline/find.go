package pipeline

import (
	"handoffd/engine/ingest"
	"handoffd/engine/store"
)

// Find returns the id of the session that a source belongs to, where it is
// stored and whether it is captured already. It takes no lock: the answer may
// be outdated.
func (b *Builder) Find(req Request) (id string, loc store.Location, captured bool, err error) {
	f, err := ingest.Open(req.Source)
	if err != nil {
		return "", loc, false, err
	}
	defer f.Close()
	t, err := b.identify(f, req)
	if err != nil {
		return "", loc, false, err
	}
	loc, captured, err = b.locate(t, f.Path)
	return t.id, loc, captured, err
}
