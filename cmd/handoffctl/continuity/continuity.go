// Package continuity is the command "context" of the client: flags in,
// requests out, one line or one document as the answer. It decides nothing.
package continuity

import (
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"handoffd/daemon/client"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
)

// continuityName is the command of context continuity. Its usage errors end
// with 1, because 2 says that something is refused.
const continuityName = "context"

// Shell is what the commands need of the program that they are in.
type Shell struct {
	In  io.Reader
	CWD string // absolute
	// Client returns the client of this run.
	Client func() *client.Client
	// Object prints one JSON document, Answer the same with --json only and
	// says whether it did, Line one line of the answer.
	Object func(raw []byte) error
	Answer func(raw []byte) (bool, error)
	Line   func(text string)
	// Printed makes an error one of which everything was said.
	Printed func(error) error
	// Exit makes the key and the text of a command's exit statuses.
	Exit func(*cobra.Command, ...fault.Kind)
}

// anyValue is the annotation of flags that may be empty or begin with "--".
const anyValue = "any-value"

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.New(fault.Operational, "unexpected argument: %s", args[0])
	}
	return nil
}

// Command returns the command with its verbs.
func Command(a *Shell) *cobra.Command {
	const use = continuityName + " bands|gate|write|resume|bypass|repair|unlock|continue"
	c := &cobra.Command{
		Use:   use,
		Short: "Hand work on when a session's context is full",
		Long: "Hand work on when a session's context is full: bands of how full it is, a gate that denies changes, and verbs\n" +
			"that lead out. They work on the files of the project's .adlc directory, which the published adlc tool shares.\n" +
			"What changes them is a dry run without --write, needs the project's key (ADLC_MANIFEST_KEY, or --key-file),\n" +
			"and is attested in the signed ledger. All of it happens in this process, never in the daemon.",
		Args: func(_ *cobra.Command, args []string) error {
			return fault.New(fault.Operational, "usage: handoffctl %s", use)
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(a.bands(), a.contextGate(), a.contextWrite(), a.contextResume(), a.contextBypass(), a.contextRepair(), a.contextUnlock(), a.contextContinue())
	return a.refusing(c)
}

// refusing notes how the verbs of continuity end.
func (a *Shell) refusing(c *cobra.Command) *cobra.Command {
	a.Exit(c, fault.Operational, fault.Refused)
	return c
}

// At returns the verb of continuity that the arguments name, "" for
// none of them.
func At(root *cobra.Command, args []string) string {
	c, _, err := root.Find(args)
	if err != nil {
		return ""
	}
	verb := c.Name()
	for ; c != nil; c = c.Parent() {
		if c.Name() == continuityName && c.Parent() == root {
			return verb
		}
	}
	return ""
}

// Operational makes what is wrong with a command line an operational failure,
// with the head that every answer of these verbs has.
func Operational(command string, args []string, err error) error {
	var told *client.Failure
	if err == nil || errors.As(err, &told) {
		return err
	}
	var known *fault.Error
	if !errors.As(err, &known) {
		known = fault.New(fault.Operational, "%w", err)
	}
	if known.Kind == fault.Usage {
		known = &fault.Error{Kind: fault.Operational, Msg: known.Msg, Hint: known.Hint, Err: known}
	}
	dry := true
	for _, s := range args {
		dry = dry && s != "--write" && s != "--write=true"
	}
	raw, encodeErr := control.Encode(struct {
		control.Problem
		control.ContextHead
	}{control.ProblemOf(known), control.ContextHead{Tool: "handoff", Command: command, DryRun: dry}})
	if encodeErr != nil {
		return known
	}
	return &client.Failure{Fault: known, Document: append(raw, '\n')}
}

// signals are the flags of what was measured.
type signals struct{ pct, depth, bytes string }

func (s *signals) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.pct, "pct", "", "percent of the context window in use")
	c.Flags().StringVar(&s.depth, "depth", "", "tool calls so far")
	c.Flags().StringVar(&s.bytes, "bytes", "", "size of the transcript")
	for _, name := range []string{"pct", "depth", "bytes"} {
		c.Flags().Lookup(name).Annotations = map[string][]string{anyValue: nil}
	}
}

// value returns a flag as JSON: a number, or a text, which is no number and
// past every band.
func value(c *cobra.Command, name, text string) jsontext.Value {
	if !c.Flags().Changed(name) {
		return nil
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		raw, _ := json.Marshal(text, jsontext.AllowInvalidUTF8(true)) // a text cannot fail
		return raw
	}
	raw, _ := json.Marshal(f) // a finite number cannot fail
	return raw
}

// ask runs a verb and prints its document.
func (a *Shell) ask(c *cobra.Command, verb string, q any) error {
	raw, err := a.Client().Call(c.Context(), verb, q, nil)
	if err != nil {
		return err
	}
	return a.Object(raw)
}

func (a *Shell) bands() *cobra.Command {
	var s signals
	var q control.BandsRequest
	c := &cobra.Command{
		Use:   "bands [--pct N] [--depth N] [--bytes N] | --session S",
		Short: "Say how full a context is",
		Long: "Say how full a context is: the bands that any signal has reached. Without flags one JSON observation is read\n" +
			"from stdin, such as {\"pct\":61}. What is there and is no number is past every band; what is not there says\n" +
			"nothing. --session measures a captured session by what its harness says of its tokens.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q.Pct, q.Depth, q.Bytes = value(c, "pct", s.pct), value(c, "depth", s.depth), value(c, "bytes", s.bytes)
			if q.Pct == nil && q.Depth == nil && q.Bytes == nil && q.Session == "" {
				raw, err := a.observation()
				if err != nil {
					return err
				}
				q.Observation = raw
			}
			return a.ask(c, control.ContextBands, q)
		},
	}
	s.flags(c)
	c.Flags().StringVar(&q.Session, "session", "", "a captured session")
	return a.refusing(c)
}

// maxObservation bounds what is read from stdin, in bytes.
const maxObservation = 64 << 10

// observation reads stdin, unless that is a terminal or nothing.
func (a *Shell) observation() (jsontext.Value, error) {
	if f, ok := a.In.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return nil, nil
		}
	}
	if a.In == nil {
		return nil, nil
	}
	raw, err := io.ReadAll(io.LimitReader(a.In, maxObservation+1))
	if err != nil {
		return nil, fault.New(fault.Operational, "read the observation: %w", err)
	}
	v := jsontext.Value(strings.TrimSpace(string(raw)))
	if len(v) == 0 {
		return nil, nil
	}
	if len(raw) > maxObservation || !v.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil, fault.New(fault.Operational, "the observation on stdin is not one JSON value")
	}
	return v, v.Canonicalize(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (a *Shell) contextGate() *cobra.Command {
	var s signals
	q := control.ContextGateRequest{}
	c := &cobra.Command{
		Use:   "gate --tool edit|shell|read [--session S] [--target F]... [--command C] [--pct N] [--depth N] [--bytes N]",
		Short: "Decide whether a tool call may change something",
		Long: "Decide whether a tool call may change something: exit 0, or 2 with every reason and what leads out. A session\n" +
			"whose context is full gets a deny marker. Reading is never denied; a shell is denied as a whole under a deny,\n" +
			"and without one only where its command would change the continuity store itself. A project without an .adlc\n" +
			"directory is none of the gate's, and nothing is written to a clean one.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q.Pct, q.Depth, q.Bytes = value(c, "pct", s.pct), value(c, "depth", s.depth), value(c, "bytes", s.bytes)
			q.Dir, q.KeyFile = a.Client().Absolute(q.Dir), a.Client().Absolute(q.KeyFile)
			if c.Flags().Changed("cwd") {
				q.CWD = a.Client().Absolute(q.CWD)
			} else if q.Dir == "" {
				q.CWD = a.CWD
			}
			err := a.ask(c, control.ContextGate, q)
			var f *client.Failure
			var v control.ContextGateAnswer
			if errors.As(err, &f) && f.Fault.Kind == fault.Refused && json.Unmarshal(f.Document, &v) == nil && v.Deny {
				raw, encodeErr := control.Encode(v)
				if encodeErr != nil {
					return encodeErr
				}
				if err := a.Object(raw); err != nil {
					return err
				}
				return a.Printed(err)
			}
			return err
		},
	}
	s.flags(c)
	f := c.Flags()
	f.StringVar(&q.Session, "session", "", "session that asks")
	f.StringVar(&q.Tool, "tool", "", "edit, shell or read")
	f.StringArrayVar(&q.Targets, "target", nil, "file that an edit changes; may be repeated")
	f.StringVar(&q.Command, "command", "", "command of a shell")
	f.StringVar(&q.Ticket, "ticket", "", "ticket that a new deny is bound to (default: the active one)")
	f.StringVar(&q.Host, "host", "", "harness that asks")
	f.StringVar(&q.Dir, "dir", "", "ledger directory, ending in .adlc")
	f.StringVar(&q.CWD, "cwd", "", "directory that the tool runs in")
	f.StringVar(&q.KeyFile, "key-file", "", "file with the project's key")
	f.BoolVar(&q.EverDenied, "deny-ever-written", false, "the session was denied before, as an earlier answer said")
	for _, name := range []string{"session", "command", "target"} {
		f.Lookup(name).Annotations = map[string][]string{anyValue: nil}
	}
	return a.refusing(c)
}
