package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
)

func (a *app) build() *cobra.Command {
	var q control.BuildRequest
	c := &cobra.Command{
		Use:   "build --source FILE",
		Short: "Capture what is new in a transcript",
		Long: "Capture what is new in a transcript: the session's timeline, brief, payload and manifest are brought up to\n" +
			"date. Nothing is written when nothing is new. Of a database that holds many sessions each is captured, or the\n" +
			"one that --session names.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && q.Source != "" {
				return fault.New(fault.Usage, "name one source")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				q.Source = args[0]
			}
			return a.runBuild(c, q)
		},
	}
	buildFlags(c.Flags(), &q)
	return exits(c, fault.SourceMissing, fault.Locked, fault.NoTurns, fault.Unsupported, fault.Unparsable)
}

func buildFlags(f *pflag.FlagSet, q *control.BuildRequest) {
	f.StringVar(&q.Source, "source", "", "transcript to read")
	f.StringVar(&q.Session, "session", "", "session id (default: what the transcript says, else the file name)")
	f.StringVar(&q.Harness, "harness", "", "label of the harness, and a hint at the format")
	f.StringVar(&q.Model, "model", "", "model, where the transcript does not say")
	f.StringVar(&q.Project, "project", "", "project of a new session")
	f.StringVar(&q.Objective, "objective", "", "objective (default: the first real prompt)")
	f.BoolVar(&q.ForceHarness, "force-harness", false, "change the label of a session that has one")
	f.BoolVar(&q.ForceModel, "force-model", false, "change the model of a session that has one")
	f.BoolVar(&q.Strict, "strict", false, "refuse a transcript with damage, and write nothing")
}

// handoffAlias lets the reference's form work: handoffctl --handoff --source F.
func (a *app) handoffAlias(root *cobra.Command) {
	var q control.BuildRequest
	var asked bool
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.BoolVar(&asked, "handoff", false, "the same as the verb build")
	buildFlags(f, &q)
	f.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = true
		root.Flags().AddFlag(flag)
	})
	root.Args = cobra.ArbitraryArgs
	root.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return fault.New(fault.Usage, "unknown verb: %s", args[0]).WithHint("see: handoffctl help")
		case !asked:
			c.SetOut(a.err)
			help(c, nil)
			return printed{fault.New(fault.Usage, "no verb")}
		}
		return a.runBuild(c, q)
	}
}

func (a *app) runBuild(c *cobra.Command, q control.BuildRequest) error {
	q.Source = a.client().Absolute(q.Source)
	var r control.BuildAnswer
	raw, err := a.client().Call(c.Context(), control.Build, q, &r)
	if err != nil {
		return err
	}
	if a.json {
		_, err = a.out.Write(raw)
	} else {
		a.builtAll(r)
	}
	if err != nil || len(r.Unbuilt) == 0 {
		return err
	}
	kind, _ := fault.ParseKind(r.Unbuilt[0].Kind)
	failed := fault.New(kind, "%d session(s) could not be built", len(r.Unbuilt))
	if a.json {
		return printed{failed} // the document says so
	}
	return failed
}

// builtAll tells of the builds of a source.
func (a *app) builtAll(r control.BuildAnswer) {
	if len(r.Sessions)+len(r.Unbuilt) == 0 {
		a.built(r)
		return
	}
	for _, one := range r.Sessions {
		a.built(one)
	}
	if r.Passed > 0 {
		a.note("%d session(s) without a turn were passed over", r.Passed)
	}
	for _, f := range r.Unbuilt {
		a.note("not built: %s: %s", f.Source, f.Err)
	}
}

// built tells of one build.
func (a *app) built(r control.BuildAnswer) {
	a.line(r.Line())
	for _, what := range r.Repaired {
		a.note("repaired: %s", what)
	}
	if r.NewDamage > 0 {
		a.note("%d damaged piece(s) were kept aside in %s/quarantine", r.NewDamage, r.Dir)
	}
}

func (a *app) auto() *cobra.Command {
	var q control.AutoRequest
	var minFresh int64
	c := &cobra.Command{
		Use:   "auto --source FILE",
		Short: "Capture a transcript unless that was done a moment ago",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q.Source = a.client().Absolute(q.Source)
			q.MinFreshMS = &minFresh
			// The answer is a document with or without --json.
			raw, err := a.client().Call(c.Context(), control.Auto, q, nil)
			if err == nil {
				_, err = a.out.Write(raw)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&q.Source, "source", "", "transcript to read")
	f.StringVar(&q.Session, "session", "", "session id")
	f.StringVar(&q.Harness, "harness", "", "label of the harness")
	f.StringVar(&q.Project, "project", "", "project of a new session")
	f.Int64Var(&minFresh, "min-fresh-ms", control.DefaultMinFreshMS, "how long a capture is fresh, in milliseconds")
	return exits(c, fault.SourceMissing, fault.Locked, fault.NoTurns, fault.Unsupported)
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.New(fault.Usage, "unexpected argument: %s", args[0])
	}
	return nil
}
