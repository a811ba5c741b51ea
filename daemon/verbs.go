package daemon

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"os"
	"time"

	"handoffd/daemon/control"
	"handoffd/daemon/schedule"
	"handoffd/engine/fault"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
)

// About implements server.Daemon.
func (d *Daemon) About(a *control.VersionAnswer) {
	a.Socket, a.Started, a.PID = d.socket, d.started.UTC().Format(time.RFC3339), os.Getpid()
}

// Events implements server.Daemon.
func (d *Daemon) Events(ctx context.Context, follow bool) (iter.Seq[control.Event], error) {
	return d.events.All(ctx, follow), nil
}

// Poke implements server.Daemon. A reload may end the schedule that was asked;
// then the next one is.
func (d *Daemon) Poke(ctx context.Context, paths []string, wait bool) error {
	for {
		g := d.current()
		err := g.capturer.Poke(ctx, paths, wait)
		if !errors.Is(err, schedule.ErrStopped) {
			return err
		}
		if d.current() == g {
			return fault.New(fault.NoDaemon, "the daemon is ending")
		}
	}
}

// Reload implements server.Daemon.
func (d *Daemon) Reload(ctx context.Context) (string, error) {
	r := reload{make(chan error, 1)}
	select {
	case d.reloads <- r:
	case <-ctx.Done():
		return "", fault.New(fault.NoDaemon, "the daemon is ending")
	}
	select {
	case err := <-r.done:
		file := d.current().settings.File
		if file == "" {
			file = "(no configuration file)"
		}
		return file, err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Stop implements server.Daemon.
func (d *Daemon) Stop(context.Context) error {
	d.stopped.Do(func() { close(d.stop) })
	return nil
}

// Metrics implements server.Daemon.
func (d *Daemon) Metrics(w http.ResponseWriter, r *http.Request) error {
	d.metrics.ServeHTTP(w, r)
	return nil
}

// Built implements server.Daemon.
func (d *Daemon) Built(source string, r *pipeline.Result) { d.current().capturer.Built(source, r) }

// Moved implements server.Daemon.
func (d *Daemon) Moved(from store.Location) { d.current().capturer.Moved(from) }
