package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"handoffd/cmd/handoffctl/continuity"
	"handoffd/engine/fault"
)

const exitKey = "exit" // annotation that holds a verb's exit statuses

// command returns the tree of commands.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "handoffctl",
		Short: "Handoffs of agent sessions: capture, list, show, verify",
		Long: "handoffctl captures the transcripts of coding agents as handoffs, and finds, shows and verifies them.\n" +
			"It asks the daemon when one answers, and does the work itself when none does.",
		SilenceErrors: true, SilenceUsage: true, DisableAutoGenTag: true,
	}
	global := root.PersistentFlags()
	global.StringVar(&a.root, "root", "", "store of handoffs (beats HANDOFFS_ROOT)")
	global.BoolVar(&a.local, "local", false, "work in this process, without the daemon")
	global.StringVar(&a.socket, "socket", "", "control socket of the daemon to ask")
	global.BoolVar(&a.json, "json", false, "print one JSON document, also on failure")
	global.BoolVar(&a.quiet, "quiet", false, "no notes on stderr, only errors")
	root.AddGroup(&cobra.Group{ID: "engine", Title: "Handoffs:"}, &cobra.Group{ID: "runtime", Title: "Runtime:"}, &cobra.Group{ID: "daemon", Title: "Daemon:"})
	for _, c := range []*cobra.Command{a.build(), a.auto(), a.list(), a.show(), a.verify(), a.config(), a.index(), a.rename(), a.retitle(), a.contract()} {
		c.GroupID = "engine"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{a.verifyGate(), a.promote(), a.merge(), a.federate(), a.dispatch(), a.improve(), a.gateway(), a.continuity()} {
		c.GroupID = "runtime"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{a.status(), a.events(), a.poke(), a.reload(), a.stop(), a.version()} {
		c.GroupID = "daemon"
		root.AddCommand(c)
	}
	a.handoffAlias(root)
	root.SetHelpFunc(help)
	return root
}

// continuity is the command of context continuity.
func (a *app) continuity() *cobra.Command {
	return continuity.Command(&continuity.Shell{
		In: a.in, CWD: a.cwd, Client: a.client, Object: a.object, Line: a.line,
		Answer: func(raw []byte) (bool, error) {
			if !a.json {
				return false, nil
			}
			_, err := a.out.Write(raw)
			return true, err
		},
		Printed: func(err error) error { return printed{err} },
		Exit: func(c *cobra.Command, kinds ...fault.Kind) {
			c.Annotations = map[string]string{exitKey: fault.ExitHelp(kinds...)}
		},
	})
}

// exits notes the kinds a verb can fail with, beyond those that all can.
func exits(c *cobra.Command, kinds ...fault.Kind) *cobra.Command {
	kinds = append(kinds, fault.Internal, fault.Usage, fault.Config, fault.Unreachable)
	c.Annotations = map[string]string{exitKey: fault.ExitHelp(kinds...)}
	return c
}

// help prints what a command does, its flags, and last its exit statuses.
func help(c *cobra.Command, _ []string) {
	text := c.Long
	if text == "" {
		text = c.Short
	}
	exit := c.Annotations[exitKey]
	if exit == "" {
		exit = fault.ExitHelp(fault.Internal, fault.Usage, fault.Config, fault.Unreachable)
	}
	fmt.Fprintf(c.OutOrStdout(), "%s\n\n%s\n%s", strings.TrimSpace(text), c.UsageString(), exit)
}

// missingValue finds a flag whose value is missing or empty. The parser takes
// the next argument for the value whatever it looks like, so that
// "--session --project p" would name a session "--project".
func missingValue(root *cobra.Command, args []string) error {
	c, _, err := root.Find(args)
	if err != nil {
		return nil // the parser says it better
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range []*pflag.FlagSet{c.LocalFlags(), c.InheritedFlags()} {
		flags.AddFlagSet(set)
	}
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			break
		}
		name, ok := strings.CutPrefix(args[i], "--")
		if !ok {
			continue
		}
		name, value, inline := strings.Cut(name, "=")
		f := flags.Lookup(name)
		if f == nil || f.NoOptDefVal != "" {
			continue
		}
		if !inline {
			if i++; i < len(args) {
				value = args[i]
			}
		}
		if _, any := f.Annotations[anyValue]; any {
			continue
		}
		if value == "" || !inline && strings.HasPrefix(value, "--") {
			return fault.New(fault.Usage, "flag needs a value: --%s", name).
				WithHint("a value that begins with -- is written --%s=VALUE", name)
		}
	}
	return nil
}

// asksJSON reports whether --json is among args, for failures of parsing them.
func asksJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// oneID is the usage of verbs that take a session.
func oneID(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fault.New(fault.Usage, "name one session, by its id or the start of it")
	}
	return nil
}
