package watch

import (
	"context"
	"sync/atomic"
)

// None is a Source that reports nothing, not even the first Rescan. It proves
// that events are only hints, and serves where the caller's own sweep is
// enough.
type None struct{ status atomic.Pointer[[]RootStatus] }

// Run implements Source. It waits for the end of ctx.
func (n *None) Run(ctx context.Context, roots []Root, _ func(Event)) error {
	list := make([]RootStatus, 0, len(roots))
	for _, r := range roots {
		list = append(list, RootStatus{Root: r.Path, Mode: ModeNone})
	}
	n.status.Store(&list)
	<-ctx.Done()
	return ctx.Err()
}

// Status implements Source.
func (n *None) Status() []RootStatus { return copyStatus(n.status.Load()) }

func copyStatus(list *[]RootStatus) []RootStatus {
	if list == nil {
		return nil
	}
	return append([]RootStatus(nil), *list...)
}
