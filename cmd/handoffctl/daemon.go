package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
)

func (a *app) events() *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use:   "events",
		Short: "Print what the daemon did, one JSON document a line",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			stream, err := a.client().Open(c.Context(), control.Events, fmt.Sprintf("follow=%t", follow), control.ContentStream)
			if err != nil {
				return err
			}
			defer stream.Close()
			if err := a.copy(stream); err != nil && c.Context().Err() == nil {
				return err
			}
			return nil
		},
	}
	c.Flags().BoolVar(&follow, "follow", false, "go on until interrupted")
	return exits(c, fault.NoDaemon)
}

func (a *app) poke() *cobra.Command {
	var q control.PokeRequest
	c := &cobra.Command{
		Use:   "poke [--source FILE | --session ID] [--wait]",
		Short: "Make the daemon capture now",
		Long:  "Make the daemon capture a source, a session's sources, or everything that changed, now instead of after a rest.",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q.Source = a.client().Absolute(q.Source)
			return call(a, c, control.Poke, q, func(r control.PokeAnswer) {
				what := "everything that changed"
				if len(r.Sources) > 0 {
					what = fmt.Sprintf("%d source(s)", len(r.Sources))
				}
				a.line("handoff: " + r.Action + " " + what)
			})
		},
	}
	c.Flags().StringVar(&q.Source, "source", "", "transcript to capture")
	c.Flags().StringVar(&q.Session, "session", "", "session to capture, by its id or the start of it")
	c.Flags().BoolVar(&q.Wait, "wait", false, "return when the newest bytes are stored")
	return exits(c, fault.NoDaemon, fault.SourceMissing, fault.Ambiguous, fault.NotFound)
}

func (a *app) reload() *cobra.Command {
	c := &cobra.Command{
		Use:   "reload",
		Short: "Make the daemon read its configuration again",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return call(a, c, control.Reload, control.ReloadRequest{}, func(r control.Done) {
				a.line("handoff: reloaded " + r.Detail)
			})
		},
	}
	return exits(c, fault.NoDaemon)
}

// stopWait is how long stop waits for the daemon to be gone.
const stopWait = 20 * time.Second

func (a *app) stop() *cobra.Command {
	c := &cobra.Command{
		Use:   "stop",
		Short: "Make the daemon end, and wait for that",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var done control.Done
			if _, err := a.client().Call(c.Context(), control.Stop, control.StopRequest{}, &done); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), stopWait)
			defer cancel()
			if err := a.client().Gone(ctx); err != nil {
				return err
			}
			if a.json {
				_, err := fmt.Fprintf(a.out, "{\"ok\":true,\"action\":\"stopped\",\"pid\":%d}\n", done.PID)
				return err
			}
			a.line(fmt.Sprintf("handoff: stopped pid %d", done.PID))
			return nil
		},
	}
	return exits(c, fault.NoDaemon)
}
