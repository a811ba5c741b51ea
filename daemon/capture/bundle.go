package capture

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"

	"handoffd/daemon/logging"
	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/all"
	"handoffd/engine/pipeline"
	"handoffd/engine/safefile"
	"handoffd/engine/sqlite"
)

// A bundle is a file that holds many sessions. It is a row of the table like
// any file, but what is captured are its sessions, each under a key of its own:
// the path of the bundle and the session's id. Whether a session changed, its
// change key tells, which takes the place of a file's looks.

// bundles remembers what was listed of each bundle, so that the next look costs
// what changed.
type bundles struct {
	mu   sync.Mutex // guards what follows
	seen map[string]*harness.Listing
}

func (b *bundles) before(path string) *harness.Listing {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[path]
}

func (b *bundles) listed(path string, l *harness.Listing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]*harness.Listing{}
	}
	b.seen[path] = l
}

// many returns the format of a bundle of many sessions, by the path alone.
func many(path string) (harness.Bundle, bool) {
	b, ok := all.Named(path)
	return b, ok && !b.Single()
}

// owner is the source that a change of the file at path is a change of.
func owner(path string) string {
	if o, ok := all.Owner(path); ok {
		return o
	}
	return path
}

// stampAt is the stamp of the file at path; that of a bundle covers the files
// beside it that hold a part of its content.
func stampAt(path string, info fs.FileInfo) stamp {
	b, ok := all.Named(path)
	if !ok {
		return stampOf(info)
	}
	s := stamp{mtime: info.ModTime().UnixNano(), ctime: b.Glance(path)}
	if log, err := os.Stat(path + sqlite.WAL); err == nil {
		s.mtime = max(s.mtime, log.ModTime().UnixNano())
	}
	return s
}

// keyed is the stamp of a session of a bundle.
func keyed(key string) stamp { return stamp{ctime: key} }

// unfold lists the sessions of a bundle that changed, and those that are gone
// from it. When it cannot be read now, an error says so and nothing is noted.
func (c *Capturer) unfold(path string, b harness.Bundle, first bool) ([]found, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fault.New(fault.SourceMissing, "look at the source: %w", err)
	}
	// Both are older than what the listing tells, so that what comes in
	// between is news to the next look.
	now, before := stampAt(path, info), c.bundles.before(path)
	if !safefile.OwnedByUs(info) {
		c.pass(path, now, fault.New(fault.SourceMissing, "belongs to another user: %s", path))
		return nil, nil
	}
	l, err := b.List(path, before)
	if fault.Is(err, fault.Unsupported) {
		c.pass(path, now, err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.bundles.listed(path, l)
	var changed []found
	for id, m := range l.Members {
		key := harness.Join(path, id)
		if c.table.news(key, keyed(m.Key), first) {
			changed = append(changed, found{key, m.Updated * 1e6, first})
		}
	}
	for _, key := range c.table.inside(path) {
		if _, id, _ := harness.Split(key); l.Members[id].ID == "" {
			changed = append(changed, found{path: key})
		}
	}
	c.table.settle(path, now, nil)
	return changed, nil
}

// captureBundle hands the sessions of a bundle that changed to the schedule.
func (c *Capturer) captureBundle(path string, b harness.Bundle) error {
	changed, err := c.unfold(path, b, false)
	if err != nil {
		c.table.tried(path)
		return err
	}
	for _, f := range changed {
		c.sched.Changed(f.path)
	}
	return nil
}

// pokeBundles replaces bundles by their sessions that changed, all of which are
// due now.
func (c *Capturer) pokeBundles(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		b, ok := many(p)
		if _, err := os.Lstat(p); !ok || err != nil {
			out = append(out, p)
			continue
		}
		changed, err := c.unfold(p, b, false)
		if err != nil {
			return nil, err
		}
		if why := c.table.verdict(p); why != nil {
			return nil, why
		}
		for _, f := range changed {
			out = append(out, f.path)
		}
		// What an earlier look found can be on its way.
		for _, key := range c.table.inside(p) {
			if !c.table.done(key) {
				out = append(out, key)
			}
		}
	}
	return out, nil
}

// captureMember builds a session of a bundle.
func (c *Capturer) captureMember(ctx context.Context, path, base, id string) error {
	b, ok := many(base)
	info, err := os.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist) || !ok:
		c.table.drop(path)
		return c.gone(ctx, path)
	case err != nil:
		return fault.New(fault.Internal, "look at the source: %w", err)
	case !safefile.OwnedByUs(info):
		return nil
	}
	// A key that was listed and not captured yet will do; whoever pokes what is
	// captured wants to know what is new.
	key := c.table.key(path)
	if l := c.bundles.before(base); key == "" || c.table.done(path) || l == nil || l.Members[id].ID == "" {
		if key, ok, err = b.Key(base, id); err != nil {
			c.table.tried(path)
			return err
		}
		if !ok {
			c.table.drop(path)
			return c.gone(ctx, path)
		}
	}
	r, err := c.conf.Builder.Build(ctx, pipeline.Request{Source: path, Key: key, Harness: c.label(path), LazyPayload: true})
	switch kind := fault.KindOf(err); {
	case err == nil:
	case kind == fault.NoTurns, kind == fault.Unsupported:
		c.pass(path, keyed(key), err)
		return nil
	case kind == fault.SourceMissing:
		c.conf.Log.Debug("a session is gone from its bundle", logging.Path, path, logging.Err, err)
		c.table.drop(path)
		return c.gone(ctx, path)
	default:
		c.table.tried(path)
		return err
	}
	c.table.settle(path, keyed(key), nil)
	c.note(path, r)
	return nil
}
