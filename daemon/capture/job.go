package capture

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"handoffd/daemon/control"
	"handoffd/daemon/logging"
	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/pipeline"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
)

// A key of the schedule is the canonical path of a source, or stands for the
// full payload of a session, which costs what the session is long and so is
// left to rest.
const payloadPrefix = "\x00payload\x00"

// rest is how long a session must be quiet before its payload is written.
const rest = 5 * time.Second

func payloadKey(l store.Location) string { return payloadPrefix + l.Project + "/" + l.Dir }

func parsePayloadKey(key string) (store.Location, bool) {
	name, ok := strings.CutPrefix(key, payloadPrefix)
	project, dir, _ := strings.Cut(name, "/")
	return store.Location{Project: project, Dir: dir}, ok
}

// KeyText is a key of the schedule for people.
func KeyText(key string) string {
	if l, ok := parsePayloadKey(key); ok {
		return "payload of " + l.Project + "/" + l.Dir
	}
	return key
}

// run is the schedule's work.
func (c *Capturer) run(ctx context.Context, key string) error {
	if l, ok := parsePayloadKey(key); ok {
		return c.refresh(ctx, l)
	}
	began := time.Now()
	err := c.capture(ctx, key)
	switch {
	case err == nil:
		c.tally.healed(key)
	case ctx.Err() != nil:
		c.conf.Log.Debug("capture interrupted", logging.Path, key)
	case !c.tally.isNewFailure(key, err):
	case fault.Is(err, fault.Locked):
		c.conf.Log.Info("another process holds the session", logging.Path, key, logging.Err, err)
	default:
		c.conf.Log.Error("cannot capture", logging.Path, key, logging.Err, err, logging.Hint, fault.HintOf(err), logging.Took, time.Since(began))
	}
	return err
}

// capture builds the session of a source. A source that no build can use is
// passed over until it changes, which is not a failure.
func (c *Capturer) capture(ctx context.Context, path string) error {
	// The version is looked at before the build: what comes in between is
	// then news to the next sweep.
	info, err := os.Lstat(path)
	if base, id, ok := harness.Split(path); err != nil && ok {
		if _, bundle := many(base); bundle {
			return c.captureMember(ctx, path, base, id)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.table.drop(path)
		return c.gone(ctx, path)
	case err != nil:
		return fault.New(fault.Internal, "look at the source: %w", err)
	}
	now := stampAt(path, info)
	switch {
	case !info.Mode().IsRegular():
		c.pass(path, now, fault.New(fault.SourceMissing, "not a regular file: %s", path))
		return nil
	case !safefile.OwnedByUs(info):
		c.pass(path, now, fault.New(fault.SourceMissing, "belongs to another user: %s", path))
		c.conf.Log.Warn("passed over a file of another user", logging.Path, path)
		return nil
	}
	if b, ok := many(path); ok {
		return c.captureBundle(path, b)
	}
	r, err := c.conf.Builder.Build(ctx, pipeline.Request{Source: path, Harness: c.label(path), LazyPayload: true})
	switch kind := fault.KindOf(err); {
	case err == nil:
	case kind == fault.NoTurns, kind == fault.Unsupported:
		c.pass(path, now, err)
		return nil
	default:
		c.table.tried(path)
		return err
	}
	c.table.settle(path, now, nil)
	c.note(path, r)
	return nil
}

// gone tells the session of a source that is gone. It looks twice, the second
// time behind all that changed: a harness that moves or compresses a file is
// then seen under the new name first.
func (c *Capturer) gone(ctx context.Context, path string) error {
	at, first, captured := c.table.miss(path)
	switch {
	case !captured:
		return nil
	case first:
		c.sched.Add(path, time.Now().Add(c.conf.Quiet))
		return nil
	}
	if err := c.conf.Builder.SourceGone(ctx, at, path); err != nil {
		return err
	}
	c.table.bury(path)
	c.folder.kick()
	c.conf.Log.Info("the source is gone", logging.Path, path, logging.Project, at.Project)
	return nil
}

// pass notes that a source is of no use as it is.
func (c *Capturer) pass(path string, s stamp, why error) {
	if c.table.settle(path, s, why) {
		return
	}
	c.tally.passed.Add(1)
	c.conf.Log.Debug("passed over", logging.Path, path, logging.Err, why)
	c.conf.Emit(control.Event{Type: control.EventSkipped, Source: path, Detail: why.Error()})
}

// note tells of a build, and sees to what it left to be done.
func (c *Capturer) note(path string, r *pipeline.Result) {
	c.table.lives(path, r.Location)
	if r.PayloadStale {
		c.tally.restless(payloadKey(r.Location), time.Now())
		c.sched.Add(payloadKey(r.Location), time.Now().Add(rest))
	}
	if !r.Built {
		c.tally.skipped.Add(1)
		return
	}
	c.tally.built(r)
	c.folder.kick()
	c.conf.Log.Info("captured", logging.Session, r.Session, logging.Project, r.Project, logging.Turns, r.Turns, "new", r.New, "rev", r.Revision)
	c.conf.Emit(control.Event{
		Type: control.EventCaptured, Session: r.Session, Project: r.Project, Source: path, Dir: r.Dir,
		Turns: r.Turns, New: r.New, Revision: r.Revision,
	})
	for _, what := range r.Repaired {
		c.conf.Log.Warn("repaired", logging.Session, r.Session, "what", what)
	}
	if r.NewDamage > 0 {
		c.conf.Log.Warn("damage was kept aside", logging.Session, r.Session, logging.Path, filepath.Join(r.Dir, store.QuarantineDir), logging.Count, r.NewDamage)
		c.conf.Emit(control.Event{
			Type: control.EventQuarantined, Session: r.Session, Project: r.Project, Source: path, Dir: r.Dir, Count: r.NewDamage,
		})
	}
}

// refresh writes the full payload of a session that has come to rest.
func (c *Capturer) refresh(ctx context.Context, l store.Location) error {
	key := payloadKey(l)
	if due := c.tally.restlessUntil(key).Add(rest); time.Now().Before(due) {
		c.sched.Add(key, due)
		return nil
	}
	err := c.conf.Builder.RefreshPayload(ctx, l)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // renamed or removed meanwhile
	}
	switch {
	case err == nil:
		c.tally.healed(key)
		c.tally.resting(key)
	case c.tally.isNewFailure(key, err):
		c.conf.Log.Error("cannot refresh a payload", logging.Key, KeyText(key), logging.Err, err)
	}
	return err
}

// reread makes a source due if it grew since it was captured.
func (c *Capturer) reread(path string) {
	info, err := os.Lstat(path)
	if err == nil && !c.table.captured(path, stampAt(path, info)) {
		c.sched.Now(path)
	}
}

// restore takes what the manifests say is captured into the table, so that a
// first sweep finds only what changed while nobody watched, and makes payloads
// that were left behind due.
func (c *Capturer) restore(ctx context.Context) {
	st := c.conf.Builder.Store
	locations, err := st.Sessions()
	if err != nil {
		c.conf.Log.Error("cannot list the store", logging.Err, err)
		return
	}
	for _, l := range locations {
		if ctx.Err() != nil {
			return
		}
		dir := st.SessionDir(l.Project, l.Dir)
		m, _, err := store.ReadManifest(dir)
		if err != nil {
			continue // the index names it as damaged
		}
		c.tally.count(l, m)
		for _, s := range m.Sources {
			if s.Gone {
				continue
			}
			c.table.lives(s.Path, l)
			if _, _, member := harness.Split(s.Path); member && s.Key != "" {
				// Whether it is still there, its bundle will tell.
				c.table.restore(s.Path, keyed(s.Key))
			} else if _, err := os.Lstat(s.Path); errors.Is(err, fs.ErrNotExist) {
				c.sched.Changed(s.Path)
			} else if at, ok := stampIn(s); ok {
				c.table.restore(s.Path, at)
			}
		}
		if stalePayload(dir) {
			c.sched.Add(payloadKey(l), time.Now().Add(rest))
		}
	}
}

// stalePayload reports whether the payload is older than the manifest, which
// is committed first.
func stalePayload(dir string) bool {
	manifest, err := os.Lstat(filepath.Join(dir, store.ManifestName))
	if err != nil {
		return false
	}
	payload, err := os.Lstat(filepath.Join(dir, store.PayloadName))
	return err != nil || payload.ModTime().Before(manifest.ModTime())
}
