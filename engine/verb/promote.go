package verb

import (
	"context"
	"strings"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/session"
	"handoffd/engine/verify"
)

// promoter is what promoted_by says.
const promoter = "handoffd promote"

// Promoted is a session with its stamp.
type Promoted struct {
	Verdict  verify.Verdict
	At, By   string
	Revision int
}

// Promote stamps a session with what the evidence gate says of it, under one
// lock, so that what was judged is what is stamped. The manifest before is
// kept in manifest.json.bak. With strict a rejected session gets no stamp and
// the error is fault.Rejected; the verdict is valid all the same, also with
// every other error that comes after it.
func Promote(ctx context.Context, b *pipeline.Builder, e index.Entry, strict bool, now time.Time) (Promoted, error) {
	var p Promoted
	lock, err := b.Lock(ctx, e.UUID)
	if err != nil {
		return p, err
	}
	defer lock.Release()
	loc := e.Location()
	if err := b.Recover(loc); err != nil {
		return p, err
	}
	if p.Verdict, err = verify.Gate(b.Store, loc); err != nil {
		return p, err
	}
	if strict && !p.Verdict.OK {
		return p, fault.New(fault.Rejected, "promote refused: evidence gate REJECTED: %s", strings.Join(p.Verdict.Failed(), ", ")).
			WithHint("see: handoffctl contract set %s --help", e.ID)
	}
	if err := b.Index.Mark(ctx, loc); err != nil {
		return p, err
	}
	at := pipeline.StampTime(now)
	m, err := b.ReviseWith(ctx, loc, pipeline.Revision{
		To:     loc,
		Backup: true,
		Change: func(m *session.Manifest) {
			m.PromotedAt, m.PromotedBy, m.PromotedGate, m.PromotedStale = at, promoter, p.Verdict.Word(), false
		},
	})
	if err != nil {
		return p, err
	}
	p.At, p.By, p.Revision = at, promoter, m.Revisions
	_, err = b.FoldIndex(ctx, false)
	return p, err
}
