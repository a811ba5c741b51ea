// Package pipeline makes a handoff from a source: ingest, render, commit and
// index, under one session lock. The rename of manifest.json is the commit
// point; whatever a crash leaves behind it, the next build ends where an
// undisturbed one would have. It never decides what a record means.
package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"handoffd/engine/index"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
)

// Options are the values of the configuration that builds go by.
type Options struct {
	// Project is the configured project of every new session, "" for none.
	Project string
	// MaxBriefTokens bounds HANDOFF.md.
	MaxBriefTokens int
	// Linking and MinOverlap govern the notes between projects.
	Linking    bool
	MinOverlap float64
	// LineBytes is the longest line read as a whole; 0 is the default.
	LineBytes int
	// LazyIndex leaves INDEX.json to Fold; without it every build of a small
	// store writes it.
	LazyIndex bool
	// Origin finds the source of the session with the given id, so that it
	// can be captured before a session that begins with its turns. It may be
	// nil.
	Origin func(id string) (path string, ok bool)
	// LockWait is how long to wait for a session; 0 is safefile.LockWait.
	LockWait time.Duration
	// Now is the clock of created_at and updated_at.
	Now func() time.Time
}

// Builder builds sessions of one store. It is safe for concurrent use; builds
// of one session take turns.
type Builder struct {
	Store store.Store
	Index *index.Index
	opt   Options

	mu    sync.Mutex // guards what follows
	hot   map[store.Location]*loaded
	order []store.Location // of hot, least recently used first
	paths map[string]store.Location
}

// maxHot bounds the sessions whose state is kept in memory between builds.
const maxHot = 32

// New returns a builder for a store.
func New(s store.Store, opt Options) *Builder {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.LockWait == 0 {
		opt.LockWait = safefile.LockWait
	}
	return &Builder{
		Store: s, Index: index.Open(s), opt: opt,
		hot: map[store.Location]*loaded{}, paths: map[string]store.Location{},
	}
}

// StampTime is the form of every time that we write: as JavaScript's
// toISOString.
func StampTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Lock takes the lock of a session by its id.
func (b *Builder) Lock(ctx context.Context, id string) (*safefile.Lock, error) {
	l, err := safefile.Acquire(ctx, b.Store.SessionLock(id), b.opt.LockWait)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	return l, nil
}

// keep remembers a session's state for its next build.
func (b *Builder) keep(l *loaded) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(l.loc)
	b.hot[l.loc] = l
	b.order = append(b.order, l.loc)
	if len(b.order) > maxHot {
		b.forget(b.order[0])
	}
	for _, s := range l.m.Sources {
		b.paths[s.Path] = l.loc
	}
}

func (b *Builder) forget(loc store.Location) {
	if _, ok := b.hot[loc]; !ok {
		return
	}
	delete(b.hot, loc)
	for i, o := range b.order {
		if o == loc {
			b.order = append(b.order[:i], b.order[i+1:]...)
			break
		}
	}
}

// Forget drops what is remembered of a session, after another verb changed it.
func (b *Builder) Forget(loc store.Location) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(loc)
	for path, l := range b.paths {
		if l == loc {
			delete(b.paths, path)
		}
	}
}

func (b *Builder) remembered(loc store.Location) *loaded {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hot[loc]
}

func (b *Builder) knownPath(path string) (store.Location, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.paths[path]
	return l, ok
}
