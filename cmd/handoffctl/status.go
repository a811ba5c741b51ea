package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/sanitize"
)

// watchEvery is the pace of status --watch.
const watchEvery = 2 * time.Second

func (a *app) status() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Say how the daemon is, on one screen",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := a.printStatus(c)
			for watch && (err == nil || fault.Is(err, fault.Degraded)) {
				select {
				case <-c.Context().Done():
					return err
				case <-time.After(watchEvery):
				}
				if a.terminal() && !a.json && a.getenv("TERM") != "dumb" {
					_, _ = io.WriteString(a.out, "\x1b[H\x1b[2J")
				}
				err = a.printStatus(c)
			}
			return err
		},
	}
	c.Flags().BoolVar(&watch, "watch", false, "again every two seconds until interrupted")
	return exits(c, fault.Degraded, fault.NoDaemon)
}

func (a *app) printStatus(c *cobra.Command) error {
	var s control.StatusAnswer
	raw, err := a.client().Call(c.Context(), control.Status, control.StatusRequest{}, &s)
	if err != nil {
		return err
	}
	if a.json {
		_, err = a.out.Write(raw)
	} else {
		for _, l := range statusLines(s) {
			a.line(l)
		}
	}
	if err == nil && !s.Healthy {
		return printed{fault.New(fault.Degraded, "the daemon is degraded")}
	}
	return err
}

// statusLines is the one screen.
func statusLines(s control.StatusAnswer) []string {
	state := "healthy"
	if !s.Healthy {
		state = "degraded"
	}
	out := []string{
		fmt.Sprintf("handoffd %s  %s  pid %d  up %s", s.Version, state, s.PID, duration(s.UptimeMS)),
		"store    " + s.Store,
		"socket   " + s.Socket,
		"config   " + or(s.Config, "none: every known harness directory is watched"),
	}
	absent := 0
	for _, src := range s.Sources {
		if src.Mode == "missing" && s.Config == "" {
			absent++ // a harness that is not installed
			continue
		}
		l := fmt.Sprintf("source   %-12s %-8s %s", src.Harness, src.Mode, src.Root)
		if src.Dirs > 0 {
			l += fmt.Sprintf("  (%d directories)", src.Dirs)
		}
		if src.Truncated {
			l += "  truncated by a limit"
		}
		if src.Err != "" && src.Mode != "missing" {
			l += "  " + src.Err
		}
		out = append(out, l)
	}
	if absent > 0 {
		out = append(out, fmt.Sprintf("         %d known directories do not exist yet; --json lists them", absent))
	}
	n := s.Sessions
	out = append(out, fmt.Sprintf("sessions %d total, %d live, %d behind, %d damaged", n.Total, n.Live, n.Behind, n.Damaged))
	if n.Quarantined > 0 || n.Unknown > 0 {
		out = append(out, fmt.Sprintf("         %d damaged piece(s) in quarantine, %d record(s) of unknown type", n.Quarantined, n.Unknown))
	}
	out = append(out, fmt.Sprintf("queue    %d queued (%d background), %d running, %d failing, lag %s",
		s.Queue.Queued, s.Queue.Background, s.Queue.Running, s.Queue.Failing, duration(s.LagMS)))
	if s.Scan.Initial {
		out = append(out, fmt.Sprintf("scan     first scan: %d of %d sources captured", s.Scan.Done, s.Scan.Todo))
	} else if s.Scan.Last != "" {
		out = append(out, fmt.Sprintf("scan     %d session files at %s, in %s", s.Scan.Files, s.Scan.Last, duration(s.Scan.TookMS)))
	}
	c := s.Captures
	out = append(out, fmt.Sprintf("captures %d built, %d turns, %d unchanged, %d passed over, %d failed, last %s", c.Built, c.Turns, c.Skipped, c.Passed, c.Failed, or(c.Last, "none")))
	for _, e := range s.Errors {
		out = append(out, fmt.Sprintf("error    %s: %s (attempt %d, next %s)", e.Key, sanitize.Line(e.Err), e.Attempts, or(e.Next, "when it changes")))
	}
	for _, reason := range s.Degraded {
		out = append(out, "degraded "+reason)
	}
	return out
}

func or(s, alternative string) string {
	if s == "" {
		return alternative
	}
	return s
}

func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	return d.String()
}
