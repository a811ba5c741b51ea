package continuation

import (
	"context"
	"strings"

	"handoffd/engine/fault"
	"handoffd/policy/deny"
	"handoffd/policy/mutation"
	"handoffd/policy/signed"
)

// BypassResult is what came of a bypass.
type BypassResult struct {
	Grant   *signed.Grant `json:"grant,omitempty"`
	Planned *signed.Grant `json:"plannedGrant,omitempty"`
	Bound   bool          `json:"bound"`
	// Foreign says that the grant also lifts unbound denies of others.
	Foreign  bool      `json:"allowsUnboundRecord"`
	Evidence *Attested `json:"evidence,omitempty"`
}

// Bypass lets one call of a session through, within ten minutes. With a reason
// it also lifts records that are bound to nothing and faults of the store; a
// reason that is there and says nothing is refused.
func (o Operator) Bypass(ctx context.Context, session string, reason *string, ticket string) (BypassResult, error) {
	var r BypassResult
	if err := named("session", session); err != nil {
		return r, err
	}
	if reason != nil && strings.TrimSpace(*reason) == "" {
		return r, fault.New(fault.Operational, "--unbound-reason says nothing")
	}
	g, raw, err := signed.NewGrant(o.Key, session, reason, o.Store.Now())
	if err != nil {
		return r, err
	}
	sample := mutation.Record{Session: session + ".other", Status: mutation.Open}
	r.Bound = reason == nil
	r.Foreign = len(mutation.Gate(mutation.Input{Session: session, Records: []mutation.Record{sample}, Grant: g.Gate()})) == 0
	if o.DryRun {
		g.Sig, g.Nonce, g.NonceSig = "", "", ""
		r.Planned = &g
		return r, nil
	}
	if err := o.keyed(); err != nil {
		return r, err
	}
	err = o.locked(ctx, session, func() error {
		var t transaction
		before, err := current(o.Store.Grant(session))
		if err == nil {
			err = t.put(o.Store.Grant(session), before, raw)
		}
		if err != nil {
			return t.undo(err)
		}
		r.Evidence, err = o.attest(ctx, gateBypass, deny.Text(deny.Bind(ticket)), struct {
			Session string  `json:"session_id"`
			Reason  *string `json:"unbound_reason"`
			Bound   bool    `json:"bound"`
			Grant   any     `json:"grant"`
		}{session, reason, r.Bound, map[string]any{"schema": g.Schema, "written_at": g.Written, "nonce": g.Nonce}})
		if err != nil {
			return t.undo(err)
		}
		r.Grant = &g
		return nil
	})
	return r, err
}
