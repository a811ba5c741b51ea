package main

import (
	"errors"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"handoffd/daemon/client"
	"handoffd/daemon/control"
	"handoffd/daemon/logging"
	"handoffd/engine/fault"
)

func (a *app) contract() *cobra.Command {
	c := &cobra.Command{
		Use:   "contract set|show ID",
		Short: "Write or print the evidence contract of a handoff",
		Long: "The evidence contract says what came of a session: RESULT, WHAT_CHANGED, VALIDATION, EVIDENCE, BLOCKERS, RISKS\n" +
			"and FOLLOW_UP. It stands in the last section of HANDOFF.md, is kept across rebuilds, and is what verify-gate,\n" +
			"promote and dispatch judge. Nothing that a transcript says can become part of it.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return fault.New(fault.Usage, "set or show?") },
	}
	c.AddCommand(a.contractSet(), a.contractShow())
	return exits(c)
}

func (a *app) contractSet() *cobra.Command {
	var q control.ContractSetRequest
	fields := []struct {
		flag, help string
		into       **string
	}{
		{"result", "what came of it, such as DONE, PARTIAL or BLOCKED", &q.Result},
		{"what-changed", "what is different now", &q.WhatChanged},
		{"validation", "how it was checked", &q.Validation},
		{"evidence", "what shows it: commands and their results, commits, files", &q.Evidence},
		{"blockers", "what stands in the way", &q.Blockers},
		{"risks", "what may go wrong", &q.Risks},
		{"follow-up", "what is left to do", &q.FollowUp},
	}
	c := &cobra.Command{
		Use:   "set ID [--result TEXT ...]",
		Short: "Give fields of the contract their values",
		Long: "Give fields of the contract their values; the others stay as they are. Without a field on the command line, a JSON\n" +
			"object on stdin gives them, with the keys result, what_changed, validation, evidence, blockers, risks, follow_up.",
		Example: `  handoffctl contract set 3f2a --result DONE --evidence "go test ./...: 214 passed"
  echo '{"result":"PARTIAL","risks":"none known"}' | handoffctl contract set 3f2a`,
		Args: oneID,
		RunE: func(c *cobra.Command, args []string) error {
			given := false
			for _, f := range fields {
				if c.Flags().Changed(f.flag) {
					v, _ := c.Flags().GetString(f.flag) // it is defined below
					*f.into, given = &v, true
				}
			}
			if !given {
				if err := a.fromStdin(&q); err != nil {
					return err
				}
			}
			q.ID = args[0]
			return call(a, c, control.ContractSet, q, func(r control.ContractAnswer) { a.line(r.Line()) })
		},
	}
	for _, f := range fields {
		c.Flags().String(f.flag, "", f.help)
	}
	return exits(c, fault.Integrity, fault.Locked, fault.Ambiguous, fault.NotFound)
}

// fromStdin reads a request from stdin: one JSON object without members that
// are not known.
func (a *app) fromStdin(q *control.ContractSetRequest) error {
	if f, ok := a.in.(*os.File); ok && logging.IsTerminal(f) {
		return fault.New(fault.Usage, "no field given").WithHint("handoffctl contract set ID --result TEXT ..., or JSON on stdin")
	}
	raw, err := io.ReadAll(io.LimitReader(a.in, control.MaxBody+1))
	if err != nil {
		return fault.New(fault.Usage, "read the contract from stdin: %w", err)
	}
	if len(raw) > control.MaxBody {
		return fault.New(fault.Usage, "the contract on stdin is longer than %d bytes", control.MaxBody)
	}
	if err := json.Unmarshal(raw, q, json.RejectUnknownMembers(true)); err != nil || q.ID != "" {
		return fault.New(fault.Usage, "no field on the command line, and stdin is no JSON object of fields: %w", err).
			WithHint(`{"result":"...","what_changed":"...","validation":"...","evidence":"...","blockers":"...","risks":"...","follow_up":"..."}`)
	}
	return nil
}

func (a *app) contractShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Print the contract as it stands in the brief",
		Args:  oneID,
		RunE: func(c *cobra.Command, args []string) error {
			return call(a, c, control.ContractShow, control.ContractShowRequest{ID: args[0]}, func(r control.ContractAnswer) { a.text(r.Text) })
		},
	}
	return exits(c, fault.Integrity, fault.Ambiguous, fault.NotFound)
}

func (a *app) verifyGate() *cobra.Command {
	var q control.GateRequest
	c := &cobra.Command{
		Use:   "verify-gate ID",
		Short: "Judge a handoff: seal, counts, payload, contract, evidence",
		Long: "Judge a handoff by five checks and print the verdict as JSON, VERIFIED or REJECTED. Both end with status 0, as\n" +
			"scripts expect; --exit-code makes a rejection status 6.",
		Args: oneID,
		RunE: func(c *cobra.Command, args []string) error {
			q.ID = args[0]
			return documented(a, c, control.VerifyGate, q, func(r control.GateAnswer) []any { return []any{r} })
		},
	}
	c.Flags().BoolVar(&q.ExitCode, "exit-code", false, "end with status 6 on a rejection")
	return exits(c, fault.Rejected, fault.Ambiguous, fault.NotFound)
}

func (a *app) promote() *cobra.Command {
	var q control.PromoteRequest
	c := &cobra.Command{
		Use:   "promote ID",
		Short: "Stamp a handoff with the verdict of the evidence gate",
		Long: "Run the evidence gate and stamp its verdict and the time into the manifest, whatever the verdict is. The manifest\n" +
			"before is kept in manifest.json.bak. Work that follows a promotion shows as promoted_stale. With\n" +
			"--require-verified, or gate.enforce in a configuration, a rejected handoff gets no stamp and the status is 6.",
		Args: oneID,
		RunE: func(c *cobra.Command, args []string) error {
			q.ID = args[0]
			return documented(a, c, control.Promote, q, func(r control.PromoteAnswer) []any {
				verdict := r.Verdict
				r.Verdict = nil
				switch {
				case verdict == nil:
					return nil
				case r.At == "":
					return []any{verdict}
				}
				return []any{verdict, r}
			})
		},
	}
	c.Flags().BoolVar(&q.RequireVerified, "require-verified", false, "stamp only what the gate verifies")
	return exits(c, fault.Integrity, fault.Rejected, fault.Locked, fault.Ambiguous, fault.NotFound)
}

// documented runs a verb whose answer is JSON also for people: with --json the
// one document as it came, else those that show makes of it, one a line. A
// failure that has an answer prints it before its sentence.
func documented[A any](a *app, c *cobra.Command, verb string, q any, show func(A) []any) error {
	var into A
	raw, err := a.client().Call(c.Context(), verb, q, &into)
	if a.json {
		if err == nil {
			_, err = a.out.Write(raw)
		}
		return err
	}
	var f *client.Failure
	if err != nil && (!errors.As(err, &f) || json.Unmarshal(f.Document, &into) != nil) {
		return err
	}
	for _, doc := range show(into) {
		line, encodeErr := control.Encode(doc)
		if encodeErr != nil {
			return fault.New(fault.Internal, "encode the answer: %w", encodeErr)
		}
		if _, err := a.out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return err
}
