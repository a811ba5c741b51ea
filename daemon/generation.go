package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"

	"handoffd/configs"
	"handoffd/daemon/capture"
	"handoffd/daemon/control"
	"handoffd/daemon/logging"
	"handoffd/engine/fault"
	"handoffd/engine/pipeline"
	"handoffd/watch"
)

// generation is the workers under one configuration. A reload makes another
// one, which takes over before this one is drained.
type generation struct {
	settings configs.Daemon
	sources  []capture.Source
	builder  *pipeline.Builder
	capturer *capture.Capturer
	cancel   context.CancelFunc
	ctx      context.Context
	running  sync.WaitGroup
}

func (d *Daemon) newGeneration(settings configs.Daemon, before *generation) *generation {
	g := &generation{settings: settings, sources: d.sources(settings)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.builder = pipeline.New(d.store, pipeline.Options{
		MaxBriefTokens: configs.DefaultMaxBriefTokens, Linking: true, MinOverlap: configs.DefaultMinOverlap,
		LineBytes: int(settings.Limits.LineBytes), LazyIndex: true,
		Origin: func(id string) (string, bool) { return g.capturer.Origin(id) },
	})
	conf := capture.Config{
		Sources: g.sources, Builder: g.builder, Watch: d.watcher(),
		Quiet: settings.Quiet, MinFresh: settings.MinFresh, Workers: settings.Workers, Sweep: settings.Sweep,
		Log: d.log, Emit: d.emit,
	}
	var old *capture.Capturer
	if before != nil {
		old = before.capturer
	}
	g.capturer = capture.New(conf, old)
	return g
}

func (d *Daemon) watcher() watch.Source {
	report := func(s watch.RootStatus) {
		level := slog.LevelInfo
		if s.Mode == watch.ModeMissing {
			level = slog.LevelDebug // most harnesses are not installed
		}
		d.log.Log(context.Background(), level, "watching", logging.Root, s.Root, logging.Mode, s.Mode, logging.Count, s.Dirs, logging.Err, s.Err)
	}
	if d.conf.Watch != nil {
		return d.conf.Watch(report)
	}
	return watch.NewNotify(watch.NotifyConfig{Report: report})
}

// sources are the configured directories, or those of every known harness.
func (d *Daemon) sources(settings configs.Daemon) []capture.Source {
	var list []capture.Source
	if settings.Sources == nil {
		for _, s := range capture.Known(d.conf.Formats, d.conf.Input.HomeDir, d.conf.Input.Getenv) {
			if err := settings.RefuseRoot(s.Root.Path); err != nil {
				d.log.Warn("not watching", logging.Root, s.Root.Path, logging.Err, err)
				continue
			}
			list = append(list, s)
		}
	}
	for _, s := range settings.Sources {
		list = append(list, capture.Configured(d.conf.Formats, s)...)
	}
	for i := range list {
		r := &list[i].Root
		r.Exclude = []string{d.store.Root, filepath.Dir(d.socket)}
		r.Depth, r.Entries = settings.Limits.Depth, settings.Limits.Files
	}
	return list
}

func (g *generation) start() {
	g.running.Go(func() { g.capturer.Run(g.ctx) })
}

// end stops watching, captures what changed until ctx ends, and waits for
// everything the generation started.
func (g *generation) end(ctx context.Context) error {
	g.cancel()
	err := g.capturer.Drain(ctx)
	g.running.Wait()
	return err
}

// abandon ends a generation at once.
func (g *generation) abandon() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = g.end(ctx)
}

// supported refuses what the configuration can say and this version does not
// do: a key is honoured or refused, never ignored.
func supported(c configs.Daemon) error {
	var key string
	switch {
	case c.Redact.Enabled:
		key = "redact.enabled"
	case c.Retention.QuarantineDays > 0:
		key = "retention.quarantine_days"
	case c.Limits.FileBytesPerPass != configs.DefaultFileBytesPerPass:
		key = "limits.file_bytes_per_pass"
	case c.Gate.Mode == configs.GateEnforce:
		key = "gate.mode"
	default:
		return nil
	}
	return fault.New(fault.Config, "%s: %s is not supported by this version", c.File, key).WithHint("leave the key out")
}

// apply reads the configuration again and puts it to work. Whatever is wrong
// with it, the daemon goes on with the old one and says so.
func (d *Daemon) apply() error {
	d.conf.Notify("RELOADING=1")
	defer d.conf.Notify("READY=1")
	err := d.replace()
	d.mu.Lock()
	d.broken = err
	d.mu.Unlock()
	if err != nil {
		d.log.Error("the configuration is not applied", logging.Err, err, logging.Hint, fault.HintOf(err))
		return err
	}
	d.log.Info("the configuration is applied", logging.Path, d.current().settings.File)
	return nil
}

func (d *Daemon) replace() error {
	settings, err := d.conf.Load()
	if err != nil {
		return err
	}
	if err := supported(settings); err != nil {
		return err
	}
	old := d.current()
	switch {
	case settings.Store != d.store.Root:
		return fault.New(fault.Config, "the store cannot change while the daemon runs").WithHint("restart the daemon")
	case settings.Socket != old.settings.Socket:
		return fault.New(fault.Config, "the socket cannot change while the daemon runs").WithHint("restart the daemon")
	case settings.Log.File != old.settings.Log.File, settings.Log.Format != old.settings.Log.Format, settings.Retention.LogBytes != old.settings.Retention.LogBytes:
		return fault.New(fault.Config, "where and how the log is written cannot change while the daemon runs").WithHint("restart the daemon")
	}
	level, err := logging.ParseLevel(settings.Log.Level)
	if err != nil {
		return fault.New(fault.Config, "%w", err)
	}
	d.level.Set(level)
	if d.logFile != nil {
		if err := d.logFile.Reopen(); err != nil {
			return fault.New(fault.Config, "open the log again: %w", err)
		}
	}
	// The new one takes over first, so that no poke and no event is lost in
	// between; then the old one captures what it still holds.
	next := d.newGeneration(settings, old)
	d.mu.Lock()
	d.present = next
	d.mu.Unlock()
	next.start()
	d.retired.Go(func() {
		ctx, cancel := context.WithTimeout(d.patience, drainBudget)
		defer cancel()
		if err := old.end(ctx); err != nil {
			d.log.Warn("left to the next sweep", logging.Err, err)
		}
	})
	return nil
}

// emit remembers an event.
func (d *Daemon) emit(e control.Event) {
	d.events.Add(e)
	if d.conf.Emit != nil {
		d.conf.Emit(e)
	}
}
