package verb

import (
	"context"
	"errors"

	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/render"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// maxContract bounds an evidence contract, in bytes: it is shown whole in
// every brief.
const maxContract = 64 << 10

// SetContract gives fields of a session's evidence contract their values, by
// the names of render.FieldNames. Other text that people wrote into the
// contract's section of the brief stays as it is.
func SetContract(ctx context.Context, b *pipeline.Builder, e index.Entry, fields map[string]string) (render.Contract, *session.Manifest, error) {
	var set render.Contract
	lock, err := b.Lock(ctx, e.UUID)
	if err != nil {
		return set, nil, err
	}
	defer lock.Release()
	if err := b.Index.Mark(ctx, e.Location()); err != nil {
		return set, nil, err
	}
	m, err := b.ReviseWith(ctx, e.Location(), pipeline.Revision{
		To:     e.Location(),
		Change: func(*session.Manifest) {},
		Contract: func(now render.Contract) (render.Contract, error) {
			set = render.NewContract(render.SetFields(now.Block, fields))
			if set.Block == now.Block && now.Block != "" && !adopting(b, e, now) {
				return set, errUnchanged
			}
			if len(set.Block) > maxContract {
				return set, fault.New(fault.Usage, "a contract of %d bytes is more than %d", len(set.Block), maxContract)
			}
			return set, nil
		},
	})
	if errors.Is(err, errUnchanged) {
		m, _, err = store.ReadManifest(b.Store.SessionDir(e.Project, e.ID))
		return set, m, err
	}
	if err != nil {
		return set, nil, err
	}
	_, err = b.FoldIndex(ctx, false)
	return set, m, err
}

// errUnchanged abandons a revision that would say nothing new.
var errUnchanged = errors.New("unchanged")

// adopting reports whether the contract was edited by hand and is not taken
// over yet.
func adopting(b *pipeline.Builder, e index.Entry, now render.Contract) bool {
	m, _, err := store.ReadManifest(b.Store.SessionDir(e.Project, e.ID))
	return err != nil || m.EvidenceContractSHA256 != now.SHA256
}
