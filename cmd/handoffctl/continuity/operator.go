package continuity

import (
	"fmt"

	"github.com/spf13/cobra"

	"handoffd/daemon/control"
)

// keyFlags are those of every verb that changes the continuity store.
func (a *Shell) keyFlags(c *cobra.Command, q *control.Continuity) {
	f := c.Flags()
	f.StringVar(&q.Dir, "dir", "", "ledger directory, ending in .adlc (default: the nearest in the checkout)")
	f.BoolVar(&q.Write, "write", false, "do it; without, only say what would be done")
	f.StringVar(&q.KeyFile, "key-file", "", "file with the project's key, for nobody else to read (default: $ADLC_MANIFEST_KEY)")
}

// done is what the answers of these verbs have in common.
type done struct {
	control.ContextHead
	Evidence struct {
		Gate string `json:"gate"`
		Seq  int64  `json:"seq"`
	} `json:"evidence"`
	Successor string `json:"successor_session_id"`
	Path      string `json:"content_path"`
	Hash      string `json:"content_hash"`
	Withheld  string `json:"narrative_withheld"`
}

// operator makes a verb that changes the continuity store; about says in a
// word what it is about.
func operator[Q any](a *Shell, c *cobra.Command, verb string, q *Q, head *control.Continuity, about func() string) *cobra.Command {
	c.Args = noArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		head.Dir, head.KeyFile = a.Client().Absolute(head.Dir), a.Client().Absolute(head.KeyFile)
		var d done
		raw, err := a.Client().Call(c.Context(), verb, q, &d)
		if err != nil {
			return err
		}
		if said, err := a.Answer(raw); said || err != nil {
			return err
		}
		text := fmt.Sprintf("handoff: %s %s", d.Command, about())
		if d.Successor != "" {
			text += fmt.Sprintf(" successor=%s hash=%s -> %s", d.Successor, d.Hash, d.Path)
		}
		if d.Withheld != "" {
			text += " (narrative withheld: " + d.Withheld + ")"
		}
		if d.DryRun {
			text += " (dry run; do it with --write)"
		} else if d.Evidence.Seq > 0 {
			text += fmt.Sprintf(" seq=%d", d.Evidence.Seq)
		}
		a.Line(text)
		return nil
	}
	a.keyFlags(c, head)
	return a.refusing(c)
}

func (a *Shell) contextWrite() *cobra.Command {
	var q control.ContextWriteRequest
	c := &cobra.Command{Use: "write --session S [--ticket T] [--host H] [--content-hash H]", Short: "Note what a session hands off, and deny it"}
	f := c.Flags()
	f.StringVar(&q.Session, "session", "", "session")
	f.StringVar(&q.Ticket, "ticket", "", "ticket it worked on")
	f.StringVar(&q.Host, "host", "", "its harness (default local)")
	f.StringVar(&q.Hash, "content-hash", "", "hash of what it hands off (default: of this note)")
	return operator(a, c, control.ContextWrite, &q, &q.Continuity, func() string { return q.Session })
}

func (a *Shell) contextResume() *cobra.Command {
	var q control.ContextResumeRequest
	c := &cobra.Command{Use: "resume --session CONSUMER --deny-session DENIER", Short: "Let a session go on with the work of a denied one"}
	c.Flags().StringVar(&q.Session, "session", "", "session that goes on")
	c.Flags().StringVar(&q.Denier, "deny-session", "", "denied session")
	return operator(a, c, control.ContextResume, &q, &q.Continuity, func() string { return q.Denier + " by " + q.Session })
}

func (a *Shell) contextBypass() *cobra.Command {
	var q control.ContextBypassRequest
	var reason string
	c := &cobra.Command{Use: "bypass --session S [--unbound-reason TEXT] [--ticket T]", Short: "Let one call of a session through, within ten minutes"}
	c.Flags().StringVar(&q.Session, "session", "", "session")
	c.Flags().StringVar(&reason, "unbound-reason", "", "why records that are bound to nothing, and faults of the store, are lifted too")
	c.Flags().StringVar(&q.Ticket, "ticket", "", "ticket, for the ledger")
	c = operator(a, c, control.ContextBypass, &q, &q.Continuity, func() string { return q.Session })
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("unbound-reason") {
			q.Reason = &reason
		}
		return run(c, args)
	}
	return c
}

func (a *Shell) contextRepair() *cobra.Command {
	var q control.ContextRepairRequest
	c := &cobra.Command{
		Use:   "repair --session S --ticket T --content-hash H [--host H] | --forget [--session S] | --ledger",
		Short: "Bind a deny, or mend what is damaged",
		Long: "Bind the deny of a session to a ticket and a hash. A marker that is registered and gone, or damaged, is made\n" +
			"again; a capture that is lost is let go of. --forget gives up registered sessions whose markers are gone;\n" +
			"--ledger takes the unfinished last line off the ledger. What is moved aside is kept.",
	}
	f := c.Flags()
	f.StringVar(&q.Session, "session", "", "denied session")
	f.StringVar(&q.Ticket, "ticket", "", "ticket")
	f.StringVar(&q.Hash, "content-hash", "", "hash of what it handed off")
	f.StringVar(&q.Host, "host", "", "its harness (default local)")
	f.BoolVar(&q.Forget, "forget", false, "give up records that are gone")
	f.BoolVar(&q.Ledger, "ledger", false, "mend the end of the ledger")
	return operator(a, c, control.ContextRepair, &q, &q.Continuity, func() string {
		switch {
		case q.Session != "":
			return q.Session
		case q.Ledger:
			return "ledger"
		}
		return "sentinel"
	})
}

func (a *Shell) contextUnlock() *cobra.Command {
	var q control.ContextUnlockRequest
	c := &cobra.Command{Use: "unlock --session S --pid N --started-at TIME --host H --nonce N", Short: "Remove the lock of a process that is dead"}
	f := c.Flags()
	f.StringVar(&q.Session, "session", "", "session")
	f.IntVar(&q.PID, "pid", 0, "process in the lock")
	f.StringVar(&q.Started, "started-at", "", "time in the lock")
	f.StringVar(&q.Host, "host", "", "machine in the lock")
	f.StringVar(&q.Nonce, "nonce", "", "nonce in the lock")
	return operator(a, c, control.ContextUnlock, &q, &q.Continuity, func() string { return q.Session })
}

func (a *Shell) contextContinue() *cobra.Command {
	var q control.ContextContinueRequest
	c := &cobra.Command{
		Use:   "continue --deny-session DENIER [--session NEW] [--capture-from TRANSCRIPT] [--ticket T] [--host H]",
		Short: "Capture what a denied session leaves, for one successor",
		Long: "Capture what a denied session leaves, for one successor: its ticket, the working tree, the ledger's newest\n" +
			"entries, and with a transcript of any known harness what it said last; redacted, bounded and fenced. The deny\n" +
			"is consumed by the successor, and never lifted. With --json the answer has the prompt that the successor\n" +
			"starts with as bootstrap_prompt.",
	}
	f := c.Flags()
	f.StringVar(&q.Denier, "deny-session", "", "denied session")
	f.StringVar(&q.Session, "session", "", "successor (default: drawn by lot)")
	f.StringVar(&q.From, "capture-from", "", "transcript of the denied session")
	f.StringVar(&q.Ticket, "ticket", "", "ticket that it must be bound to (default: the active one)")
	f.StringVar(&q.Host, "host", "", "its harness (default local)")
	c = operator(a, c, control.ContextContinue, &q, &q.Continuity, func() string { return q.Denier })
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		q.From = a.Client().Absolute(q.From)
		return run(c, args)
	}
	return c
}
