package capture

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"handoffd/daemon/logging"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
)

const (
	// foldAfter is how long the index may lag behind the builds: they come in
	// bursts, and it is written as a whole.
	foldAfter = time.Second
	// foldRetry is the wait after a failure.
	foldRetry = 5 * time.Second
)

// folder keeps INDEX.json, the project pages and the links up to date.
type folder struct {
	builder *pipeline.Builder
	log     *slog.Logger
	kicks   chan struct{} // buffered by one

	mu  sync.Mutex // guards what follows
	err error      // of the last fold
}

func newFolder(b *pipeline.Builder, log *slog.Logger) *folder {
	return &folder{builder: b, log: log, kicks: make(chan struct{}, 1)}
}

// kick says that a session changed. It never blocks.
func (f *folder) kick() {
	select {
	case f.kicks <- struct{}{}:
	default:
	}
}

func (f *folder) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// fold writes the index now.
func (f *folder) fold(ctx context.Context) error {
	var err error
	// A store without sessions has no index.
	if _, missing := os.Lstat(filepath.Join(f.builder.Store.Root, store.ProjectsDir)); missing == nil {
		_, err = f.builder.FoldIndex(ctx, false)
	}
	f.mu.Lock()
	first := err != nil && f.err == nil
	f.err = err
	f.mu.Unlock()
	if first {
		f.log.Error("cannot write the index", logging.Err, err)
	}
	return err
}

func (f *folder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.kicks:
		}
		for wait := foldAfter; ; wait = foldRetry {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if f.fold(ctx) == nil {
				break
			}
		}
	}
}
