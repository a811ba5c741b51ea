package evidence

import (
	"bytes"

	"handoffd/engine/fault"
	"handoffd/engine/seal"
)

// Chain is where a ledger ends.
type Chain struct {
	Entries  int
	Seq      int64
	LastHash string // of the last line, "" before the first
	LastGate string
	Signed   bool // some entry has a signature
	// Open says that the last line has no newline.
	Open bool
}

// Check walks over a ledger, or a segment of one: every line is an entry, each
// is one more than the one before and holds its hash, and with a key, every
// signature is right and none is missing behind the first. The error is
// fault.Operational.
func Check(raw, key []byte, segment bool) (Chain, error) {
	var c Chain
	for n, rest := 1, raw; len(rest) > 0; n++ {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		c.Open = !ended
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := ParseEntry(line)
		if err != nil {
			return c, fault.New(fault.Operational, "the ledger is damaged at line %d: %w", n, err)
		}
		first := c.Entries == 0
		switch {
		case e.Seq != c.Seq+1 && !(first && segment):
			return c, fault.New(fault.Operational, "the ledger is damaged at line %d: entry %d follows %d", n, e.Seq, c.Seq)
		case first && e.Prev != nil && !segment, !first && (e.Prev == nil || *e.Prev != c.LastHash):
			return c, fault.New(fault.Operational, "the ledger is damaged at line %d: it does not follow the line before", n)
		}
		if len(key) > 0 {
			if err := checkSignature(line, e, key, c.Signed, n); err != nil {
				return c, err
			}
		}
		c = Chain{Entries: c.Entries + 1, Seq: e.Seq, LastHash: seal.Sum(line), LastGate: e.Gate, Signed: c.Signed || e.Sig != "", Open: !ended}
	}
	return c, nil
}

func checkSignature(line []byte, e Entry, key []byte, signed bool, n int) error {
	if e.Sig == "" {
		if signed {
			return fault.New(fault.Operational, "the ledger is damaged at line %d: it is not signed", n)
		}
		return nil
	}
	message, err := signable(line, e.SigVersion)
	if err != nil {
		return fault.New(fault.Operational, "the ledger is damaged at line %d: %w", n, err)
	}
	if !seal.Signed(key, message, e.Sig) {
		return fault.New(fault.Operational, "the ledger does not verify at line %d: the signature is of another key or text", n)
	}
	return nil
}
