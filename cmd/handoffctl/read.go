package main

import (
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"handoffd/daemon/client"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/sanitize"
)

func (a *app) list() *cobra.Command {
	var q control.ListRequest
	c := &cobra.Command{
		Use:   "list [PROJECT|PREFIX]",
		Short: "List handoffs, newest first",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				q.Project = args[0]
			}
			return call(a, c, control.List, q, func(r control.ListAnswer) {
				for _, s := range r.Sessions {
					a.line(s.Line())
				}
				if r.Hidden > 0 {
					a.note("%d warm-up session(s) hidden; --all shows them", r.Hidden)
				}
			})
		},
	}
	c.Flags().BoolVar(&q.All, "all", false, "warm-up sessions too")
	return exits(c, fault.NotFound)
}

func (a *app) show() *cobra.Command {
	var q control.ShowRequest
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Print a handoff: the brief, or another of its files",
		Args:  oneID,
		RunE: func(c *cobra.Command, args []string) error {
			q.ID = args[0]
			if a.json {
				return call(a, c, control.Show, q, func(control.ShowAnswer) {})
			}
			content, err := a.client().Open(c.Context(), control.Show, q, control.ContentRaw)
			if err != nil {
				return err
			}
			defer content.Close()
			return a.copy(content)
		},
	}
	f := c.Flags()
	f.BoolVar(&q.Payload, "payload", false, "HANDOFF.llm.json, brought up to date first")
	f.BoolVar(&q.Summary, "summary", false, "HANDOFF.summary.json")
	f.BoolVar(&q.Tools, "tools", false, "TOOLS.md, every tool call")
	f.BoolVar(&q.Timeline, "timeline", false, "timeline.jsonl")
	return exits(c, fault.Ambiguous, fault.NotFound, fault.Integrity)
}

// copy prints a file: to a pipe as it is, to a terminal with what could
// control it made visible. A last line without a newline gets one on a
// terminal, and where the reference prints one.
func (a *app) copy(content io.Reader) error {
	last := &lastByte{w: a.out}
	var w io.Writer = last
	if a.terminal() {
		safe := sanitize.Writer(last)
		defer safe.Close()
		w = safe
	}
	if _, err := io.Copy(w, content); err != nil {
		return fault.New(fault.Unreachable, "the answer broke off: %w", err)
	}
	if last.b != '\n' && last.b != 0 {
		_, err := io.WriteString(w, "\n")
		return err
	}
	return nil
}

// lastByte remembers how what was written ends.
type lastByte struct {
	w io.Writer
	b byte
}

// Write implements io.Writer.
func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.b = p[len(p)-1]
	}
	return l.w.Write(p)
}

func (a *app) verify() *cobra.Command {
	var q control.VerifyRequest
	c := &cobra.Command{
		Use:   "verify ID | verify --all",
		Short: "Check a handoff against its seal, its files and its sources",
		Args: func(c *cobra.Command, args []string) error {
			if q.All && len(args) == 0 {
				return nil
			}
			if q.All {
				return fault.New(fault.Usage, "name a session or --all, not both")
			}
			return oneID(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				q.ID = args[0]
			}
			err := call(a, c, control.Verify, q, a.verdicts)
			var f *client.Failure
			var r control.VerifyAnswer
			if !a.json && errors.As(err, &f) && json.Unmarshal(f.Document, &r) == nil && len(r.Sessions) > 0 {
				a.verdicts(r)
				return printed{err}
			}
			return err
		},
	}
	c.Flags().BoolVar(&q.All, "all", false, "every handoff")
	return exits(c, fault.Integrity, fault.Ambiguous, fault.NotFound)
}

// verdicts prints what passed on stdout and what failed on stderr.
func (a *app) verdicts(r control.VerifyAnswer) {
	for _, s := range r.Sessions {
		if s.OK {
			a.line(s.Line)
		} else {
			_, _ = io.WriteString(a.err, sanitize.Line(s.Line)+"\n")
		}
	}
}
