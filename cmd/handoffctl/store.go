package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
)

func (a *app) config() *cobra.Command {
	var q control.ConfigRequest
	c := &cobra.Command{
		Use:   "config",
		Short: "Say where handoffs are stored, and why",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return call(a, c, control.Config, q, func(r control.ConfigAnswer) {
				if !q.Daemon {
					for _, l := range r.Lines() {
						a.line(l)
					}
					return
				}
				for _, v := range r.Values {
					text, err := control.Encode(v.Value)
					if err != nil {
						text = fmt.Append(nil, v.Value)
					}
					a.line(fmt.Sprintf("%s=%s  (%s)", v.Key, text, v.Origin))
				}
			})
		},
	}
	c.Flags().BoolVar(&q.Daemon, "daemon", false, "every value of the daemon's configuration, with its origin")
	return exits(c)
}

func (a *app) index() *cobra.Command {
	c := &cobra.Command{
		Use:   "index",
		Short: "Write INDEX.json again, and list what is stale or damaged",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			raw, err := a.client().Call(c.Context(), control.Index, control.IndexRequest{}, nil)
			if err == nil {
				_, err = a.out.Write(raw)
			}
			return err
		},
	}
	return exits(c, fault.Locked)
}

func (a *app) rename() *cobra.Command {
	c := &cobra.Command{
		Use:   "rename ID PROJECT",
		Short: "Move a handoff to another project",
		Args:  two("a session and a project"),
		RunE: func(c *cobra.Command, args []string) error {
			return call(a, c, control.Rename, control.RenameRequest{ID: args[0], Project: args[1]}, func(r control.MoveAnswer) { a.line(r.Line()) })
		},
	}
	return exits(c, fault.Locked, fault.Ambiguous, fault.NotFound, fault.Exists)
}

func (a *app) retitle() *cobra.Command {
	c := &cobra.Command{
		Use:   "retitle ID NAME",
		Short: "Give a handoff another name",
		Args:  two("a session and a name"),
		RunE: func(c *cobra.Command, args []string) error {
			return call(a, c, control.Retitle, control.RetitleRequest{ID: args[0], Name: args[1]}, func(r control.MoveAnswer) { a.line(r.Line()) })
		},
	}
	return exits(c, fault.Locked, fault.Ambiguous, fault.NotFound, fault.Exists)
}

// two is the usage of verbs with two arguments.
func two(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 2 || args[0] == "" || args[1] == "" {
			return fault.New(fault.Usage, "name %s", what)
		}
		return nil
	}
}
