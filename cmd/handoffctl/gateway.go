package main

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"handoffd/daemon/client"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
)

// gatewayName is the command whose verbs answer with one JSON object on
// stdout, failures included, and say nothing else: that is the published
// engine's contract, and scripts parse it.
const gatewayName = "runtime"

// anyValue marks a flag whose value may begin with "--".
const anyValue = "any-value"

// exited ends the program with a status of its own.
type exited struct{ status int }

// Error implements error.
func (e exited) Error() string { return "exit status " + strconv.Itoa(e.status) }

func (a *app) gateway() *cobra.Command {
	c := &cobra.Command{
		Use:   gatewayName + " evaluate|run|policy|job|resume|status",
		Short: "Decide by the permission policy, and execute within bounds",
		Long: "Decide by the permission policy, and execute only what it allows. Every decision is recorded in the state\n" +
			"directory before it is acted on. All of it happens in this process, never in the daemon.\n\n" +
			"The policy is --policy FILE, else permission-policy.json in the workspace, else a built-in one; the workspace\n" +
			"is the policy's directory, else the top of the checkout, else the current directory. Relative targets are\n" +
			"meant from there. The state directory is AGENT_HANDOFF_STATE_DIR, else .agents-handoff in the workspace.\n" +
			"The answer is one JSON object on stdout, failures too ({\"error\": ...}); with --json it is indented.",
		Args: func(_ *cobra.Command, args []string) error {
			return fault.New(fault.Usage, "usage: handoffctl runtime evaluate|run|policy|job|resume|status")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(a.evaluate(), a.execute(), a.policy(), a.job(), a.resume(), a.jobStatus())
	return exits(c)
}

func (a *app) evaluate() *cobra.Command {
	var q control.EvaluateRequest
	c := &cobra.Command{
		Use:   "evaluate --risk R0..R4 [--target PATH]",
		Short: "Decide, and execute nothing",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := a.ask(c, control.RuntimeEvaluate, q)
			return err
		},
	}
	policyFlag(c, &q.Policy)
	c.Flags().StringVar(&q.Risk, "risk", "", "risk of the operation")
	c.Flags().StringVar(&q.Target, "target", "", "what it would be done to")
	return exits(c, fault.Denied, fault.NeedsAuth)
}

func (a *app) execute() *cobra.Command {
	var q control.RunRequest
	c := &cobra.Command{
		Use:   "run --risk R0|R1 --op read --target PATH | --op spawn --args 'ARGUMENTS'",
		Short: "Read a file, or run the policy's program, if that is allowed",
		Long: "Read a file: its length and the SHA-256 of its bytes. Or run the program that the policy names (node unless it\n" +
			"says otherwise): in the workspace, with a scrubbed environment, for at most 15 seconds, its output hashed and\n" +
			"not shown, its whole process tree ended with it, and on Linux confined to the workspace by Landlock where the\n" +
			"kernel has it. The record says what confined it. This ends with the program's exit status, with 1 if a signal\n" +
			"ended it.\n\n" +
			"White space separates ARGUMENTS. Single quotes take everything as it is. In double quotes \\\" and \\\\ are a quote\n" +
			"and a backslash. Outside quotes a backslash before white space, a quote or a backslash takes its meaning away.\n" +
			"Any other backslash is one. There is no shell, and nothing is expanded.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			raw, err := a.ask(c, control.RuntimeRun, q)
			if err != nil || q.Op != "spawn" {
				return err
			}
			var end control.SpawnAnswer
			if err := json.Unmarshal(raw, &end); err != nil {
				return fault.New(fault.Internal, "the answer is not understood: %w", err)
			}
			switch {
			case end.ExitCode == nil:
				return printed{exited{fault.Internal.Exit()}}
			case *end.ExitCode != 0:
				return printed{exited{*end.ExitCode}}
			}
			return nil
		},
	}
	policyFlag(c, &q.Policy)
	f := c.Flags()
	f.StringVar(&q.Risk, "risk", "", "risk of the operation")
	f.StringVar(&q.Op, "op", "", "read or spawn")
	f.StringVar(&q.Target, "target", "", "file to read")
	f.StringVar(&q.Args, "args", "", "arguments of the program")
	f.Lookup("args").Annotations = map[string][]string{anyValue: nil}
	return exits(c, fault.Denied, fault.NeedsAuth)
}

func (a *app) policy() *cobra.Command {
	var q control.PolicyRequest
	c := &cobra.Command{
		Use:   "policy",
		Short: "Print the policy that rules, and what it means here",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := a.ask(c, control.RuntimePolicy, q)
			return err
		},
	}
	policyFlag(c, &q.Policy)
	return exits(c)
}

func (a *app) job() *cobra.Command {
	var q control.JobRequest
	var steps, failAt string
	c := &cobra.Command{
		Use:   "job --session S --steps N [--fail-at K]",
		Short: "Begin a job of numbered steps, with a checkpoint after each",
		Long: "Begin a job of numbered steps, with a sealed checkpoint after each. It can be killed at any instant and gone on\n" +
			"with by resume; each step is done once. --fail-at K ends it as a kill would before step K, with exit status 137.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if q.Session == "" {
				return fault.New(fault.Usage, "job requires --session")
			}
			if q.Steps, err = stepCount(steps); err != nil {
				return err
			}
			if c.Flags().Changed("fail-at") {
				var ok bool
				if q.FailAt, ok = integer(failAt); !ok || q.FailAt < 2 || q.FailAt > q.Steps {
					return fault.New(fault.Usage, "--fail-at must be an integer in [2,%d]", q.Steps)
				}
			}
			if _, err := a.ask(c, control.RuntimeJob, q); err != nil {
				return err
			}
			if q.FailAt != 0 {
				return printed{exited{control.ExitKilled}}
			}
			return nil
		},
	}
	policyFlag(c, &q.Policy)
	c.Flags().StringVar(&q.Session, "session", "", "name of the job")
	c.Flags().StringVar(&steps, "steps", "", "number of steps")
	c.Flags().StringVar(&failAt, "fail-at", "", "step to be killed before")
	return exits(c, fault.Denied, fault.NeedsAuth, fault.Locked, fault.CorruptCheckpoint)
}

func (a *app) resume() *cobra.Command {
	var q control.JobRequest
	var steps string
	c := &cobra.Command{
		Use:   "resume --session S --steps N",
		Short: "Go on with a job from its checkpoint",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if q.Session == "" {
				return fault.New(fault.Usage, "resume requires --session")
			}
			if q.Steps, err = stepCount(steps); err != nil {
				return err
			}
			_, err = a.ask(c, control.RuntimeResume, q)
			return err
		},
	}
	policyFlag(c, &q.Policy)
	c.Flags().StringVar(&q.Session, "session", "", "name of the job")
	c.Flags().StringVar(&steps, "steps", "", "number of steps that the job has")
	return exits(c, fault.Denied, fault.NeedsAuth, fault.Locked, fault.NoCheckpoint, fault.CorruptCheckpoint)
}

func (a *app) jobStatus() *cobra.Command {
	var q control.JobStatusRequest
	c := &cobra.Command{
		Use:   "status --session S",
		Short: "Say what the disk says of a job",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := a.ask(c, control.RuntimeStatus, q)
			return err
		},
	}
	policyFlag(c, &q.Policy)
	c.Flags().StringVar(&q.Session, "session", "", "name of the job")
	return exits(c, fault.NoCheckpoint, fault.CorruptCheckpoint)
}

func policyFlag(c *cobra.Command, into *string) {
	c.Flags().StringVar(into, "policy", "", "policy file")
}

// stepCount reads --steps.
func stepCount(text string) (int64, error) {
	n, ok := integer(text)
	if !ok || n < 1 {
		return 0, fault.New(fault.Usage, "--steps must be an integer >= 1")
	}
	return n, nil
}

// integer reads a whole number as the published engine does, which takes 0x3
// and 1e1 too (github.com/Alot1z/agent-handoff, tools/runtime-engine.mjs).
func integer(text string) (int64, bool) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "_") {
		return 0, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, n <= 1<<53
	}
	if len(text) > 1 && text[0] == '0' && strings.ContainsRune("xXoObB", rune(text[1])) {
		n, err := strconv.ParseInt(text, 0, 64)
		return n, err == nil && n <= 1<<53
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 || strings.ContainsAny(text, "xXpP") {
		return 0, false
	}
	return int64(f), true
}

// ask runs a verb and prints its document.
func (a *app) ask(c *cobra.Command, verb string, q any) ([]byte, error) {
	raw, err := a.client().Call(c.Context(), verb, q, nil)
	if err != nil {
		return nil, err
	}
	return raw, a.object(raw)
}

// object prints a JSON object on one line, or indented with --json.
func (a *app) object(raw []byte) error {
	v := jsontext.Value(bytes.TrimSpace(raw)).Clone()
	format := v.Compact
	if a.json {
		format = func(o ...jsontext.Options) error { return v.Indent(append(o, jsontext.WithIndent("  "))...) }
	}
	if err := format(jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return fault.New(fault.Internal, "the answer is not understood: %w", err)
	}
	_, err := a.out.Write(append(v, '\n'))
	return err
}

// atGateway reports whether the arguments name a verb of the gateway.
func atGateway(root *cobra.Command, args []string) bool {
	c, _, err := root.Find(args)
	for ; err == nil && c != nil; c = c.Parent() {
		if c.Name() == gatewayName && c.Parent() == root {
			return true
		}
	}
	return false
}

// refusal prints a failure as the gateway does: what the verb has to say, or
// else the error.
func (a *app) refusal(err error) {
	var done printed
	if errors.As(err, &done) {
		return
	}
	said := map[string]bool{}
	var out bytes.Buffer
	e := jsontext.NewEncoder(&out, jsontext.AllowInvalidUTF8(true), jsontext.EscapeForHTML(false))
	put := func(name string, value any) {
		_ = e.WriteToken(jsontext.String(name))
		_ = json.MarshalEncode(e, value)
		said[name] = true
	}
	_ = e.WriteToken(jsontext.BeginObject)
	var f *client.Failure
	var members, of map[string]jsontext.Value
	problem, _ := control.Encode(control.Problem{Hint: "h"})
	if errors.As(err, &f) && json.Unmarshal(f.Document, &members) == nil && json.Unmarshal(problem, &of) == nil {
		for d := jsontext.NewDecoder(bytes.NewReader(f.Document)); ; {
			t, err := d.ReadToken()
			if err != nil {
				break
			}
			if t.Kind() != '"' {
				continue
			}
			name := t.String()
			if _, known := of[name]; !known {
				put(name, members[name])
			}
			if d.SkipValue() != nil {
				break
			}
		}
	}
	if !said["error"] && !said["verdict"] {
		put("error", err.Error())
		if hint := fault.HintOf(err); hint != "" {
			put("hint", hint)
		}
	}
	_ = e.WriteToken(jsontext.EndObject)
	_ = a.object(out.Bytes()) // what was just encoded; a failing stdout is noted there
}
