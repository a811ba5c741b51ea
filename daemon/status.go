package daemon

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"handoffd/daemon/capture"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/watch"
)

// Status implements server.Daemon.
func (d *Daemon) Status(context.Context) (control.StatusAnswer, error) {
	g := d.current()
	s := g.capturer.Stats()
	a := control.StatusAnswer{
		OK: true, Version: control.ThisRelease().Version, PID: os.Getpid(),
		Started: d.started.UTC().Format(time.RFC3339), UptimeMS: time.Since(d.started).Milliseconds(),
		Store: d.store.Root, Socket: d.socket, Config: g.settings.File,
		Sources: []control.Source{}, Errors: []control.Failed{},
		Queue:    control.Queue{Queued: s.Queue.Queued, Background: s.Queue.Background, Running: s.Queue.Running, Failing: s.Queue.Failing},
		Scan:     control.Scan{Initial: s.Initial, Done: s.Done, Todo: s.Todo, Files: s.Sweep.Files, TookMS: s.Sweep.Took.Milliseconds()},
		Captures: s.Captures, LagMS: s.Queue.Lag.Milliseconds(),
	}
	if !s.Sweep.At.IsZero() {
		a.Scan.Last = s.Sweep.At.UTC().Format(time.RFC3339)
	}
	modes := map[string]watch.RootStatus{}
	for _, w := range s.Watch {
		modes[w.Root] = w
	}
	for _, src := range g.sources {
		w, ok := modes[src.Root.Path]
		if !ok {
			w.Mode = watch.ModeNone
		}
		a.Sources = append(a.Sources, control.Source{
			Harness: src.Harness, Root: src.Root.Path, Mode: w.Mode, Dirs: w.Dirs, Truncated: w.Truncated, Err: w.Err,
		})
	}
	for _, f := range s.Failures {
		e := control.Failed{Key: capture.KeyText(f.Key), Err: f.Err.Error(), Attempts: f.Attempts}
		if !f.Next.IsZero() {
			e.Next = f.Next.UTC().Format(time.RFC3339)
		}
		a.Errors = append(a.Errors, e)
	}
	a.Sessions = control.Counts{Live: s.Live, Behind: s.Behind, Quarantined: s.Quarantined, Unknown: s.Unknown}
	entries, err := g.builder.Index.Entries()
	for _, e := range entries {
		a.Sessions.Total++
		if e.Damaged != "" {
			a.Sessions.Damaged++
		}
	}
	a.Degraded = []string{}
	for _, r := range d.reasons(s) {
		a.Degraded = append(a.Degraded, r.text)
	}
	if err != nil {
		a.Degraded = append(a.Degraded, "the index cannot be read: "+err.Error())
	}
	if a.Sessions.Damaged > 0 {
		a.Degraded = append(a.Degraded, fmt.Sprintf("%d session(s) have a damaged manifest; a build of the source repairs it", a.Sessions.Damaged))
	}
	a.Healthy = len(a.Degraded) == 0
	return a, nil
}

// reason is something that is not right. Its kind stays the same while it
// lasts; its text, which counts and quotes, need not.
type reason struct{ kind, text string }

// reasons says why the daemon is not healthy, as far as that costs nothing to
// know.
func (d *Daemon) reasons(s capture.Stats) (out []reason) {
	add := func(kind, format string, args ...any) {
		out = append(out, reason{kind, fmt.Sprintf(format, args...)})
	}
	for _, w := range s.Watch {
		switch {
		case w.Truncated:
			add("truncated "+w.Root, "%s is seen in part: a limit hides the rest", w.Root)
		case w.Mode == watch.ModePolling && w.Err != "", w.Mode == watch.ModeEvents && w.Err != "":
			add(w.Mode+" "+w.Root, "%s is %s: %s", w.Root, modeText(w.Mode), w.Err)
		}
	}
	for _, root := range sortedKeys(s.Sweep.Errs) {
		add("root "+root, "%s cannot be read: %v", root, s.Sweep.Errs[root])
	}
	if s.Sweep.Unreadable > 0 {
		add("unreadable", "%d file(s) or directories below the sources cannot be read", s.Sweep.Unreadable)
	}
	stuck := 0
	for _, f := range s.Failures {
		// Another process may hold a session for a moment.
		if f.Attempts > 2 || !fault.Is(f.Err, fault.Locked) {
			stuck++
		}
	}
	if stuck > 0 {
		add("stuck", "%d source(s) cannot be captured", stuck)
	}
	if s.FoldErr != nil {
		add("index", "the index cannot be written: %v", s.FoldErr)
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.broken != nil {
		add("configuration", "the configuration was not applied: %s", strings.Join(strings.Fields(d.broken.Error()), " "))
	}
	return out
}

func modeText(mode string) string {
	if mode == watch.ModePolling {
		return "polled instead of watched"
	}
	return "watched in part"
}

func sortedKeys(m map[string]error) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// compare tells of reasons that came and went since the last call. It is
// called from the loop alone.
func (d *Daemon) compare() {
	now := map[string]string{}
	for _, r := range d.reasons(d.current().capturer.Stats()) {
		now[r.kind] = r.text
		if _, known := d.known[r.kind]; !known {
			d.log.Warn("degraded", "reason", r.text)
			d.emit(control.Event{Type: control.EventDegraded, Detail: r.text})
		}
	}
	for kind, text := range d.known {
		if _, still := now[kind]; !still {
			d.log.Info("recovered", "reason", text)
			d.emit(control.Event{Type: control.EventRecovered, Detail: text})
		}
	}
	if len(now) > 0 != (len(d.known) > 0) {
		state := "healthy"
		if len(now) > 0 {
			state = "degraded"
		}
		d.conf.Notify("STATUS=" + state)
	}
	d.known = now
}
