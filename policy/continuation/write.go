package continuation

import (
	"context"

	"handoffd/engine/fault"
	"handoffd/policy/deny"
	"handoffd/policy/mutation"
)

// WriteInput is what a session hands off. An empty ticket is none.
type WriteInput struct{ Session, Ticket, Host, Hash string }

// WriteResult is what came of it.
type WriteResult struct {
	Final    Final     `json:"final"`
	Deny     any       `json:"deny"`
	Evidence *Attested `json:"evidence,omitempty"`
}

// Bound is how a record is bound.
type Bound struct {
	Session string  `json:"session_id"`
	Ticket  *string `json:"ticket_id"`
	Hash    *string `json:"content_hash"`
	Status  string  `json:"status"`
}

// Rebound is what happened to a session's record.
type Rebound struct {
	OK      bool   `json:"ok"`
	Reason  string `json:"reason"`
	Rebound bool   `json:"rebound"`
}

// writable returns the marker of a session that may hand something off, and
// its bytes; there may be none yet.
func (o Operator) writable(in WriteInput) (deny.Marker, []byte, error) {
	m, raw, outcome := o.Store.ReadBytes(in.Session)
	switch {
	case outcome == deny.OK && m.Status == mutation.Consumed:
		return m, raw, fault.New(fault.Operational, "the work of session %q has gone on in another one", in.Session)
	case outcome == deny.OK && m.Record().Bound() && in.Ticket == "":
		return m, raw, fault.New(fault.Operational, "session %q is bound to ticket %q, and is not unbound", in.Session, deny.Text(m.Ticket)).WithHint("name it with --ticket")
	case outcome == deny.OK, outcome == deny.Missing, outcome == deny.Corrupt, outcome == deny.InvalidShape:
		return m, raw, nil
	}
	return m, raw, fault.New(fault.Operational, "the marker of session %q cannot be relied on: %s", in.Session, outcome).WithHint("mend it with: handoffctl context repair")
}

// Write notes what a session hands off, and binds its deny record to it. A
// session without a record is denied from then on.
func (o Operator) Write(ctx context.Context, in WriteInput) (WriteResult, error) {
	if err := named("session", in.Session); err != nil {
		return WriteResult{}, err
	}
	in.Host, in.Ticket = orLocal(in.Host), deny.Text(deny.Bind(in.Ticket))
	ticket, hash := deny.Bind(in.Ticket), deny.Bind(in.Hash)
	if hash == nil {
		hash = deny.Bind(DefaultHash(in.Session, ticket, in.Host))
	}
	r := WriteResult{Final: o.final(in.Session, ticket, in.Host, *hash, "")}
	if _, _, err := o.writable(in); err != nil {
		return r, err
	}
	if o.DryRun {
		r.Deny = Bound{in.Session, ticket, hash, mutation.Open}
		return r, nil
	}
	if err := o.keyed(); err != nil {
		return r, err
	}
	return r, o.locked(ctx, in.Session, func() error {
		if _, _, err := o.writable(in); err != nil {
			return err
		}
		var t transaction
		before, err := current(o.Store.Final(in.Session))
		if err != nil {
			return err
		}
		if err := t.put(o.Store.Final(in.Session), before, r.Final); err != nil {
			return t.undo(err)
		}
		e := o.Store.Ensure(in.Session, ticket, hash, "", in.Host)
		if !e.OK {
			return t.undo(fault.New(fault.Operational, "the session cannot be denied: %s", e.Reason))
		}
		d := Rebound{OK: true, Reason: e.Reason}
		m, raw, outcome := o.Store.ReadBytes(in.Session)
		if outcome != deny.OK || m.Status == mutation.Consumed {
			return t.undo(fault.New(fault.Refused, "the marker of session %q was changed by another", in.Session))
		}
		if deny.Text(m.Ticket) != in.Ticket || deny.Text(m.Hash) != *hash || m.Kind != "" {
			d.Rebound = true
			m.Ticket, m.Hash, m.Kind = ticket, hash, ""
			if err := t.put(o.Store.Marker(in.Session), raw, m); err != nil {
				return t.undo(err)
			}
		}
		r.Deny = d
		r.Evidence, err = o.attest(ctx, gateWrite, in.Ticket, struct {
			Session string `json:"session_id"`
			Hash    string `json:"content_hash"`
			Reason  string `json:"deny_reason"`
			Rebound bool   `json:"rebound"`
		}{in.Session, *hash, d.Reason, d.Rebound})
		if err != nil {
			return t.undo(err)
		}
		return nil
	})
}
