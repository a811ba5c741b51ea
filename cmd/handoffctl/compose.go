package main

import (
	"strings"

	"github.com/spf13/cobra"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
)

func (a *app) merge() *cobra.Command {
	var q control.MergeRequest
	c := &cobra.Command{
		Use:   "merge A B",
		Short: "Compose two handoffs into a third",
		Long: "Compose two handoffs into a third, called A+merge+B, under the project of A: the turns of both by time, each with the\n" +
			"place it comes from. What both hold because one was forked or merged from the other is taken once. Merged again,\n" +
			"what is new in either is appended. Without --render there is a timeline and a manifest only.",
		Args: two("two sessions"),
		RunE: func(c *cobra.Command, args []string) error {
			q.A, q.B = args[0], args[1]
			return documented(a, c, control.Merge, q, func(r control.MergeAnswer) []any { return answered(r.OK, r) })
		},
	}
	c.Flags().BoolVar(&q.Render, "render", false, "write the brief and the payloads too")
	return exits(c, fault.Integrity, fault.Locked, fault.Ambiguous, fault.NotFound, fault.Exists)
}

func (a *app) federate() *cobra.Command {
	var q control.FederateRequest
	c := &cobra.Command{
		Use:   "federated-merge --from ROOT [--from ROOT ...]",
		Short: "Import the handoffs of other stores",
		Long: "Import the handoffs of other stores: directories, mounted shares, or ssh://[user@]host[:port]/path, which is reached\n" +
			"with the user's own ssh (and rsync). Sessions that are not here are taken over, others get the turns that they lack.\n" +
			"Nothing that is here is replaced: a session that went on in both stores keeps every turn of both, and is listed\n" +
			"under conflicts. A store that is imported again costs nothing unless it changed.",
		Example: `  handoffctl federated-merge --from /mnt/laptop/handoff --dry-run
  handoffctl federated-merge --from ssh://laptop/~/.local/share/handoff`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			from := make([]string, len(q.From)) // a root may hold a comma
			for i, root := range q.From {
				if from[i] = root; !strings.HasPrefix(root, "ssh://") {
					from[i] = a.client().Absolute(root)
				}
			}
			request := q
			request.From = from
			return documented(a, c, control.Federate, request, func(r control.FederateAnswer) []any {
				return answered(r.Action != "", r)
			})
		},
	}
	c.Flags().StringArrayVar(&q.From, "from", nil, "store to import, again for more")
	c.Flags().BoolVar(&q.DryRun, "dry-run", false, "say what would be done and write nothing")
	c.Flags().BoolVar(&q.Redact, "redact", false, "take credentials out of what is imported")
	return exits(c, fault.Internal)
}

func (a *app) dispatch() *cobra.Command {
	var q control.DispatchRequest
	c := &cobra.Command{
		Use:   "dispatch ID --task TEXT",
		Short: "Hand a handoff's continuation to a worker",
		Long: "Check that the evidence contract of a handoff is complete, and hand its continuation to a worker. Without --live and\n" +
			"--broker the envelope is printed and nothing happens. Live, the program BROKER/runtime/request-child-worker, in\n" +
			"whatever form it has, is run without a shell, for at most a minute, and answers in JSON. With --once the same\n" +
			"request (session, contract, task) is made at most once: one of which the end is not known is not repeated.",
		Args: oneID,
		RunE: func(c *cobra.Command, args []string) error {
			q.ID, q.Broker = args[0], a.client().Absolute(q.Broker)
			return documented(a, c, control.Dispatch, q, func(r control.DispatchAnswer) []any { return answered(r.Status != "", r) })
		},
	}
	f := c.Flags()
	f.StringVar(&q.Task, "task", "", "what the worker is asked to do")
	f.StringVar(&q.Role, "role", "", "role that the request is addressed to (default implementation-agent)")
	f.StringVar(&q.Parent, "parent", "", "task that the request belongs to (default handoff:ID)")
	f.StringVar(&q.Broker, "broker", "", "root of the broker program")
	f.BoolVar(&q.Live, "live", false, "enqueue the request")
	f.BoolVar(&q.Once, "once", false, "record the request, and make it at most once")
	f.BoolVar(&q.Again, "again", false, "with --once, make it although a record says that it was begun")
	f.BoolVar(&q.Verified, "verified", false, "ask for the whole evidence gate, not only the contract")
	return exits(c, fault.GateRejected, fault.Missing, fault.Locked, fault.Ambiguous, fault.Denied, fault.NotFound, fault.NeedsAuth)
}

func (a *app) improve() *cobra.Command {
	c := &cobra.Command{
		Use:   "self-improve",
		Short: "List the briefs that fall short of the work in their sessions",
		Long: "Look at every handoff for a brief that lacks an objective, an end, or the files that were changed, or that is short for\n" +
			"its session, and write the list (counts, no content) to the state directory.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return documented(a, c, control.Improve, control.ImproveRequest{}, func(r control.ImproveAnswer) []any { return []any{r} })
		},
	}
	return exits(c, fault.Denied)
}

// answered is an answer to print, if there is one.
func answered(ok bool, doc any) []any {
	if !ok {
		return nil
	}
	return []any{doc}
}
