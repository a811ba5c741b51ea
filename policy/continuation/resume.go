package continuation

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"

	"handoffd/engine/fault"
	"handoffd/policy/capture"
	"handoffd/policy/deny"
	"handoffd/policy/mutation"
	"handoffd/policy/signed"
)

// ResumeResult is what came of a resume.
type ResumeResult struct {
	Consumer  string       `json:"consumer,omitempty"`
	Denier    string       `json:"deny_session,omitempty"`
	Record    *deny.Marker `json:"record,omitempty"`
	Auth      *signed.Auth `json:"resumeAuth,omitempty"`
	Planned   *signed.Auth `json:"plannedResumeAuth,omitempty"`
	Persisted bool         `json:"consumePersisted,omitzero"`
	Evidence  *Attested    `json:"evidence,omitempty"`
}

// open returns the marker of a denied session whose work can go on.
func (o Operator) open(denier string) (deny.Marker, []byte, error) {
	m, raw, outcome := o.Store.ReadBytes(denier)
	switch {
	case outcome == deny.Missing:
		return m, raw, fault.New(fault.Operational, "session %q is not denied", denier)
	case outcome != deny.OK:
		return m, raw, fault.New(fault.Operational, "the marker of session %q cannot be relied on: %s", denier, outcome).WithHint("mend it with: handoffctl context repair")
	case m.Status == mutation.Consumed:
		return m, raw, fault.New(fault.Operational, "the work of session %q has gone on in session %q", denier, m.ConsumedBy)
	}
	return m, raw, nil
}

// resumable is open with the authorization that its final gives a consumer.
func (o Operator) resumable(consumer, denier string) (m deny.Marker, raw []byte, a signed.Auth, err error) {
	if m, raw, err = o.open(denier); err != nil {
		return m, raw, a, err
	}
	text, err := current(o.Store.Final(denier))
	if err != nil {
		return m, raw, a, err
	}
	var f Final
	if text == nil || json.Unmarshal(text, &f) != nil || f.Session != denier || strings.TrimSpace(f.Hash) == "" {
		return m, raw, a, fault.New(fault.Operational, "session %q has handed off nothing", denier).WithHint("handoffctl context write --session ID --ticket T, or continue")
	}
	ticket := f.Ticket
	if deny.Bind(deny.Text(ticket)) == nil {
		ticket = m.Ticket
	}
	ticket = deny.Bind(deny.Text(ticket))
	switch {
	case ticket == nil || !m.Record().Bound():
		err = fault.New(fault.Operational, "the deny of session %q is bound to no ticket", denier).WithHint("bind it with: handoffctl context repair")
	case deny.Text(m.Hash) != f.Hash || deny.Text(m.Ticket) != *ticket:
		err = fault.New(fault.Operational, "the deny of session %q is bound to something else than it handed off", denier).WithHint("bind it with: handoffctl context repair")
	case m.Kind == mutation.KindCapture:
		if _, reason := capture.Verify(o.Store.Capture(denier), f.Hash); reason != "" {
			err = fault.New(fault.Operational, "the capture of session %q cannot be relied on: %s", denier, reason).WithHint("let go of it with: handoffctl context repair")
		}
	}
	a = signed.Auth{Schema: 1, Ticket: ticket, Hash: &f.Hash, Denier: denier, Consumer: consumer, Written: deny.Stamp(o.Store.Now())}
	return m, raw, a, err
}

// Resume lets a session go on with the work of a denied one, which is consumed
// by it.
func (o Operator) Resume(ctx context.Context, consumer, denier string) (ResumeResult, error) {
	var r ResumeResult
	if err := named("session", consumer); err != nil {
		return r, err
	}
	if err := named("deny-session", denier); err != nil {
		return r, err
	}
	if consumer == denier {
		return r, fault.New(fault.Refused, "a denied session cannot go on with its own work")
	}
	m, _, a, err := o.resumable(consumer, denier)
	if err != nil {
		return r, err
	}
	if o.DryRun {
		return ResumeResult{Consumer: consumer, Denier: denier, Record: &m, Planned: &a}, nil
	}
	if err := o.keyed(); err != nil {
		return r, err
	}
	err = o.locked(ctx, denier, func() error {
		m, raw, a, err := o.resumable(consumer, denier)
		if err != nil {
			return err
		}
		var t transaction
		a.Sign(o.Key)
		if a, err = o.authorize(&t, a); err != nil {
			return t.undo(err)
		}
		ticket := deny.Text(a.Ticket)
		r.Evidence, err = o.attest(ctx, gateResume, ticket, struct {
			Consumer string `json:"consumer_session_id"`
			Denier   string `json:"deny_session_id"`
			Hash     string `json:"content_hash"`
			Outcome  string `json:"outcome"`
		}{consumer, denier, *a.Hash, "authorized"})
		if err != nil {
			return t.undo(err)
		}
		if m, err = o.consume(&t, m, raw, consumer); err != nil {
			return t.undo(err)
		}
		r.Record, r.Auth, r.Persisted = &m, &a, true
		return nil
	})
	return r, err
}

// authorize writes an authorization. One that says the same stands; one whose
// work has gone on already, in this session, gives way; any other is
// somebody's, and refused.
func (o Operator) authorize(t *transaction, a signed.Auth) (signed.Auth, error) {
	path := o.Store.Auth(a.Consumer)
	before, err := current(path)
	if err != nil {
		return a, err
	}
	if before != nil {
		old, ok := signed.ParseAuth(before, a.Consumer)
		switch {
		case ok && old.Same(a) && old.Verified(o.Key):
			return old, nil
		case ok && old.Denier != a.Denier:
			if m, outcome := o.Store.Read(old.Denier); outcome == deny.OK && m.Status == mutation.Consumed && m.ConsumedBy == a.Consumer {
				break
			}
			fallthrough
		default:
			return a, fault.New(fault.Refused, "session %q already goes on with other work", a.Consumer).WithHint("choose another --session")
		}
	}
	if err := t.put(path, before, a); err != nil {
		return a, err
	}
	if got, ok, _ := signed.ReadAuth(o.Store, a.Consumer); !ok || !got.Same(a) || !got.Verified(o.Key) {
		return a, fault.New(fault.Refused, "the authorization of session %q was changed by another", a.Consumer)
	}
	return a, nil
}

// consume closes a marker that still reads raw.
func (o Operator) consume(t *transaction, m deny.Marker, raw []byte, by string) (deny.Marker, error) {
	m.Status, m.ConsumedBy, m.ConsumedAt = mutation.Consumed, by, deny.Stamp(o.Store.Now())
	return m, t.put(o.Store.Marker(m.Session), raw, m)
}
