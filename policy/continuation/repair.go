package continuation

import (
	"context"
	"slices"

	"handoffd/engine/fault"
	"handoffd/policy/capture"
	"handoffd/policy/deny"
	"handoffd/policy/mutation"
)

// RepairInput is what a deny record is to be bound to; all but the host is
// needed.
type RepairInput struct{ Session, Ticket, Hash, Host string }

// RepairResult is what came of a repair.
type RepairResult struct {
	Final *Final `json:"final,omitempty"`
	Deny  any    `json:"deny,omitempty"`
	// Binds says what the record was bound to, in a dry run.
	Binds *Bound `json:"denyBinds,omitempty"`
	// Restored says that the marker was registered and gone, or damaged, and
	// was made again.
	Restored bool `json:"restored,omitzero"`
	// Swept are files that were no markers and were moved aside.
	Swept []string `json:"swept,omitempty"`
	// Cleared are sessions that are no longer registered.
	Cleared []string `json:"cleared,omitempty"`
	// Torn is where the unfinished end of the ledger was kept.
	Torn     string    `json:"torn,omitempty"`
	Evidence *Attested `json:"evidence,omitempty"`
}

// ailing returns the marker of a session that can be repaired, and whether it
// has to be made again. A record whose work has gone on stays as it is, unless
// its capture is lost, which would deny everybody for ever.
func (o Operator) ailing(session string) (m deny.Marker, raw []byte, restore bool, outcome deny.Outcome, err error) {
	m, raw, outcome = o.Store.ReadBytes(session)
	switch {
	case outcome == deny.OK && m.Status == mutation.Consumed:
		lost := m.Kind == mutation.KindCapture
		if lost {
			_, reason := capture.Verify(o.Store.Capture(session), deny.Text(m.Hash))
			lost = reason != ""
		}
		if !lost {
			err = fault.New(fault.Operational, "the work of session %q has gone on in another one", session)
		}
	case outcome == deny.OK:
	case outcome == deny.Missing && !slices.Contains(o.Store.ReadSentinel().Sessions, session):
		err = fault.New(fault.Operational, "session %q is not denied, and repair denies nobody", session)
	default:
		restore = true
	}
	return m, raw, restore, outcome, err
}

// Repair binds the deny record of a session to a ticket and a hash. One that
// is registered and lost, or damaged, is made again, open.
func (o Operator) Repair(ctx context.Context, in RepairInput) (RepairResult, error) {
	var r RepairResult
	if err := named("session", in.Session); err != nil {
		return r, err
	}
	ticket, hash := deny.Bind(in.Ticket), deny.Bind(in.Hash)
	if ticket == nil || hash == nil {
		return r, fault.New(fault.Operational, "repair needs --ticket and --content-hash")
	}
	in.Host = orLocal(in.Host)
	f := o.final(in.Session, ticket, in.Host, *hash, "")
	r.Final = &f
	m, _, restore, _, err := o.ailing(in.Session)
	if err != nil {
		return RepairResult{}, err
	}
	if o.DryRun {
		status := m.Status
		if restore {
			status = mutation.Open
		}
		r.Deny, r.Binds, r.Restored = Bound{in.Session, ticket, hash, status}, &Bound{in.Session, m.Ticket, m.Hash, m.Status}, restore
		return r, nil
	}
	if err := o.keyed(); err != nil {
		return RepairResult{}, err
	}
	err = o.locked(ctx, in.Session, func() error {
		m, raw, restore, outcome, err := o.ailing(in.Session)
		if err != nil {
			return err
		}
		var t transaction
		before, err := current(o.Store.Final(in.Session))
		if err != nil {
			return err
		}
		if err := t.put(o.Store.Final(in.Session), before, f); err != nil {
			return t.undo(err)
		}
		if restore {
			// A marker that was made again stays, whatever happens next: it
			// only denies what was denied before.
			if m, raw, err = o.restore(in, outcome); err != nil {
				return t.undo(err)
			}
		}
		m.Ticket, m.Hash, m.Kind = ticket, hash, ""
		if err := t.put(o.Store.Marker(in.Session), raw, m); err != nil {
			return t.undo(err)
		}
		r.Evidence, err = o.attest(ctx, gateRepair, *ticket, struct {
			Session string `json:"session_id"`
			Hash    string `json:"content_hash"`
		}{in.Session, *hash})
		if err != nil {
			return t.undo(err)
		}
		r.Deny, r.Restored = m, restore
		r.Swept, _ = o.Store.Sweep()
		return nil
	})
	return r, err
}

func (o Operator) restore(in RepairInput, outcome deny.Outcome) (deny.Marker, []byte, error) {
	if outcome != deny.Missing {
		if err := o.Store.Quarantine(in.Session, outcome); err != nil {
			return deny.Marker{}, nil, err
		}
	}
	if e := o.Store.Ensure(in.Session, nil, nil, "", in.Host); !e.OK {
		return deny.Marker{}, nil, fault.New(fault.Operational, "the marker of session %q cannot be made again: %s", in.Session, e.Reason)
	}
	m, raw, outcome := o.Store.ReadBytes(in.Session)
	if outcome != deny.OK {
		return m, raw, fault.New(fault.Operational, "the marker of session %q cannot be made again: %s", in.Session, outcome)
	}
	return m, raw, nil
}

// Forget takes a session whose marker is gone out of the sentinel, or with ""
// all of them, and the sentinel when nothing is left of the store.
func (o Operator) Forget(ctx context.Context, session string) (RepairResult, error) {
	var r RepairResult
	missing, empty := o.Store.Stale()
	if session != "" {
		if err := named("session", session); err != nil {
			return r, err
		}
		if !slices.Contains(missing, session) {
			return r, fault.New(fault.Operational, "session %q has a marker, or is not registered: there is nothing to forget", session)
		}
		missing = []string{session}
	} else if len(missing) == 0 && !empty {
		return r, fault.New(fault.Operational, "every registered session has its marker: there is nothing to forget")
	}
	r.Cleared = append([]string{}, missing...)
	if o.DryRun {
		return r, nil
	}
	if err := o.keyed(); err != nil {
		return RepairResult{}, err
	}
	// Attested first: what is forgotten must not be forgotten silently, and a
	// second entry is no harm.
	evidence, err := o.attest(ctx, gateRepair, "", struct {
		Cleared []string `json:"cleared"`
	}{r.Cleared})
	if err != nil {
		return RepairResult{}, err
	}
	r.Evidence = evidence
	if r.Cleared, err = o.Store.Unregister(missing); err != nil {
		return r, fault.New(fault.Operational, "change the sentinel: %w", err)
	}
	return r, nil
}

// MendLedger takes the unfinished last line off the ledger, and attests that.
func (o Operator) MendLedger(ctx context.Context) (RepairResult, error) {
	var r RepairResult
	if o.DryRun {
		return r, o.Ledger.Verify(o.Key)
	}
	if err := o.keyed(); err != nil {
		return r, err
	}
	var err error
	if r.Torn, err = o.Ledger.Mend(ctx); err != nil {
		return r, err
	}
	if r.Torn == "" {
		return r, o.Ledger.Verify(o.Key)
	}
	r.Evidence, err = o.attest(ctx, gateRepair, "", struct {
		Torn bool `json:"ledger_torn"`
	}{true})
	return r, err
}
