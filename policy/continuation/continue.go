package continuation

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	"handoffd/engine/fault"
	"handoffd/policy/capture"
	"handoffd/policy/deny"
	"handoffd/policy/mutation"
	"handoffd/policy/signed"
)

// ContinueInput says whose work goes on, and where. An empty successor is
// drawn by lot; From is a transcript, "" for none.
type ContinueInput struct{ Denier, Successor, From, Ticket, Host string }

// ContinueResult is what came of a continuation.
type ContinueResult struct {
	Successor string    `json:"successor_session_id"`
	Ticket    string    `json:"ticket_id"`
	Path      string    `json:"content_path"`
	Hash      string    `json:"content_hash"`
	Prompt    string    `json:"bootstrap_prompt"`
	Withheld  string    `json:"narrative_withheld,omitempty"`
	Evidence  *Attested `json:"evidence,omitempty"`
}

// NewID returns a version 4 UUID (RFC 9562 5.4).
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// continuable checks everything that keeps a continuation from happening and
// returns the marker with its bytes. The errors are fault.Refused.
func (o Operator) continuable(in ContinueInput) (m deny.Marker, raw []byte, err error) {
	m, raw, outcome := o.Store.ReadBytes(in.Denier)
	refuse := func(format string, args ...any) error { return fault.New(fault.Refused, format, args...) }
	switch {
	case !mutation.PromptSafe(in.Denier) || !mutation.PromptSafe(in.Successor):
		return m, raw, refuse("the ids %q and %q cannot both stand in a prompt", in.Denier, in.Successor)
	case in.Successor == in.Denier:
		return m, raw, refuse("a denied session cannot go on with its own work")
	case outcome == deny.Missing:
		return m, raw, refuse("session %q is not denied", in.Denier)
	case outcome != deny.OK:
		return m, raw, fault.New(fault.Refused, "the marker of session %q cannot be relied on: %s", in.Denier, outcome).WithHint("mend it with: handoffctl context repair")
	case m.Status == mutation.Consumed:
		return m, raw, refuse("the work of session %q has gone on in session %q", in.Denier, m.ConsumedBy)
	case !m.Record().Bound():
		return m, raw, fault.New(fault.Refused, "the deny of session %q is bound to no ticket", in.Denier).
			WithHint("bind it first: handoffctl context repair --session %s --ticket TICKET --content-hash HASH --write", in.Denier)
	}
	ticket := in.Ticket
	if ticket == "" {
		if ticket, err = o.Ledger.ActiveTicket(o.Ticket); err != nil {
			return m, raw, fault.New(fault.Refused, "%w", err).WithHint("%s", fault.HintOf(err))
		}
	}
	if ticket != "" && ticket != deny.Text(m.Ticket) {
		return m, raw, refuse("the active ticket is %q, session %q was on %q", ticket, in.Denier, deny.Text(m.Ticket))
	}
	return m, raw, nil
}

// compose makes the text of the capture.
func (o Operator) compose(ctx context.Context, in ContinueInput, m deny.Marker) (body, withheld string, err error) {
	s := capture.Source{Ticket: deny.Text(m.Ticket)}
	s.Title = o.Ledger.TicketTitle(s.Ticket)
	if o.Tree != nil {
		s.Branch, s.Status = o.Tree(ctx, o.Store.Root)
	}
	for _, e := range o.Ledger.Recent() {
		s.Evidence = append(s.Evidence, capture.Entry{Seq: e.Seq, Gate: e.Gate, TS: e.TS, Ticket: e.Ticket})
	}
	if in.From != "" {
		info, err := os.Stat(in.From)
		if err != nil || !info.Mode().IsRegular() && !info.IsDir() || o.Narrative == nil {
			return "", "", fault.New(fault.Refused, "the capture source %s is no transcript", in.From)
		}
		n, err := o.Narrative(in.From)
		if err != nil {
			return "", "", err
		}
		newest := n.Newest
		if newest.IsZero() {
			newest = info.ModTime()
		}
		s.Narrative, s.Flail = n.Text, n.Flail
		if s.Withheld = capture.Stale(o.Store.Now().Sub(newest)); s.Withheld != "" {
			s.Narrative = ""
		}
	}
	return capture.Brief(s), s.Withheld, nil
}

// used refuses a successor that already goes on with somebody's work. One that
// holds exactly the authorization that is about to be written was left by a
// run that died.
func (o Operator) used(a signed.Auth) error {
	old, ok, found := signed.ReadAuth(o.Store, a.Consumer)
	if !found || ok && old.Same(a) && (len(o.Key) == 0 || old.Verified(o.Key)) {
		return nil
	}
	return fault.New(fault.Refused, "session %q already goes on with other work", a.Consumer).WithHint("choose another --session")
}

// Continue captures what a denied session leaves and hands it to one
// successor, whose deny it never lifts.
func (o Operator) Continue(ctx context.Context, in ContinueInput) (ContinueResult, error) {
	var r ContinueResult
	if err := named("deny-session", in.Denier); err != nil {
		return r, err
	}
	if in.Successor == "" {
		in.Successor = NewID()
	} else if err := named("session", in.Successor); err != nil {
		return r, err
	}
	in.Host, in.Ticket = orLocal(in.Host), deny.Text(deny.Bind(in.Ticket))
	m, raw, err := o.continuable(in)
	if err != nil {
		return r, err
	}
	body, withheld, err := o.compose(ctx, in, m)
	if err != nil {
		return r, err
	}
	ticket, hash := deny.Text(m.Ticket), capture.Hash(body)
	a := signed.Auth{Schema: 1, Ticket: &ticket, Hash: &hash, Denier: in.Denier, Consumer: in.Successor, Written: deny.Stamp(o.Store.Now())}
	if err := o.used(a); err != nil {
		return r, err
	}
	path := o.Store.Capture(in.Denier)
	r = ContinueResult{
		Successor: in.Successor, Ticket: ticket, Path: path, Hash: hash,
		Prompt: capture.Prompt(in.Denier, ticket, body, true), Withheld: withheld,
	}
	if o.DryRun {
		return r, nil
	}
	if err := o.keyed(); err != nil {
		return ContinueResult{}, err
	}
	a.Sign(o.Key)
	err = o.locked(ctx, in.Denier, func() error {
		if _, now, err := o.continuable(in); err != nil || !same(now, raw) {
			if err == nil {
				err = fault.New(fault.Refused, "the marker of session %q was changed by another", in.Denier).WithHint("try again")
			}
			return err
		}
		var t transaction
		if err := o.hand(ctx, &t, in, m, raw, a, body, &r); err != nil {
			return t.undo(err)
		}
		return nil
	})
	if err != nil {
		return ContinueResult{}, err
	}
	return r, nil
}

// hand does the writing of a continuation, under the denier's lock.
func (o Operator) hand(ctx context.Context, t *transaction, in ContinueInput, m deny.Marker, raw []byte, a signed.Auth, body string, r *ContinueResult) error {
	before, err := current(r.Path)
	if err != nil {
		return err
	}
	if err := t.put(r.Path, before, []byte(body)); err != nil {
		return err
	}
	if _, reason := capture.Verify(r.Path, r.Hash); reason != "" {
		return fault.New(fault.Refused, "the capture was changed by another: %s", reason)
	}
	if before, err = current(o.Store.Final(in.Denier)); err != nil {
		return err
	}
	if err := t.put(o.Store.Final(in.Denier), before, o.final(in.Denier, a.Ticket, in.Host, r.Hash, mutation.KindCapture)); err != nil {
		return err
	}
	m.Hash, m.Kind = &r.Hash, mutation.KindCapture
	if err := t.put(o.Store.Marker(in.Denier), raw, m); err != nil {
		return err
	}
	if raw, err = current(o.Store.Marker(in.Denier)); err != nil {
		return err
	}
	if err := o.used(a); err != nil {
		return err
	}
	if a, err = o.authorize(t, a); err != nil {
		return err
	}
	r.Evidence, err = o.attest(ctx, gateContinue, r.Ticket, struct {
		Denier    string `json:"deny_session_id"`
		Successor string `json:"successor_session_id"`
		Hash      string `json:"content_hash"`
		Outcome   string `json:"outcome"`
	}{in.Denier, in.Successor, r.Hash, "continued"})
	if err != nil {
		return err
	}
	_, err = o.consume(t, m, raw, in.Successor)
	return err
}
