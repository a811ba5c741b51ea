package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"handoffd/configs"
	"handoffd/daemon"
	"handoffd/daemon/control"
	"handoffd/daemon/demo"
	"handoffd/daemon/logging"
	"handoffd/engine/fault"
	"handoffd/engine/harness/all"
)

// program is one run of handoffd.
type program struct {
	out, err  io.Writer
	getenv    func(string) string
	cwd, home string
}

func (p *program) command() *cobra.Command {
	root := &cobra.Command{
		Use: "handoffd", Short: "Capture the transcripts of coding agents as handoffs",
		SilenceErrors: true, SilenceUsage: true,
	}
	root.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fault.New(fault.Usage, "unknown verb: %s", args[0]).WithHint("see: handoffd help")
		}
		return fault.New(fault.Usage, "no verb given").WithHint("handoffd run")
	}
	root.Args = cobra.ArbitraryArgs
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.AddCommand(p.run(), p.version())
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		text := c.Long
		if text == "" {
			text = c.Short
		}
		fmt.Fprintf(c.OutOrStdout(), "%s\n\n%s\n%s", text, c.UsageString(),
			fault.ExitHelp(fault.Internal, fault.Usage, fault.Config, fault.Locked))
	})
	return root
}

func (p *program) run() *cobra.Command {
	var config, root, socket string
	var allowRoot, isDemo, keep bool
	c := &cobra.Command{
		Use:   "run",
		Short: "Watch and capture until told to end",
		Long: "Watch the session directories of every known harness, or those of the configuration, and capture what\n" +
			"grows there. The first interrupt captures what changed last and ends; the second does not wait.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if isDemo {
				return demo.Run(c.Context(), demo.Options{Out: p.out, Formats: all.Formats(), Keep: keep})
			}
			err := daemon.Run(c.Context(), daemon.Config{
				Input:  configs.DaemonInput{CWD: p.cwd, ConfigFlag: config, RootFlag: root, Getenv: p.getenv, HomeDir: p.home},
				Socket: socket, AllowRoot: allowRoot, Formats: all.Formats(), Stderr: p.err,
				Color: logging.IsTerminal(p.err) && p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb",
			})
			// A service manager that starts a second one shall not try again.
			if fault.Is(err, fault.Locked) && p.getenv("INVOCATION_ID") != "" {
				_, err = fmt.Fprintln(p.out, "handoffd: "+err.Error())
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&config, "config", "", "configuration file (beats HANDOFFD_CONFIG)")
	f.StringVar(&root, "root", "", "store of handoffs (beats HANDOFFS_ROOT and the configuration)")
	f.StringVar(&socket, "socket", "", "control socket (beats HANDOFFD_SOCKET and the configuration)")
	f.BoolVar(&allowRoot, "allow-root", false, "run as root all the same")
	f.BoolVar(&isDemo, "demo", false, "show it on a bundled transcript, and end by itself")
	f.BoolVar(&keep, "keep", false, "with --demo: leave its files behind")
	return c
}

func (p *program) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r := control.ThisRelease()
			if _, err := fmt.Fprintln(p.out, strings.TrimSpace(fmt.Sprintf("handoffd %s %s", r.Version, r.Go))); err != nil {
				return fault.New(fault.Internal, "write the version: %w", err)
			}
			return nil
		},
	}
}

// usage makes what the command line parser complains of a usage error.
func (p *program) usage(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return fault.New(fault.Usage, "%w", err).WithHint("see: handoffd help")
}
