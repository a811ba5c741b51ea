package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"handoffd/cmd/handoffctl/continuity"
	"handoffd/daemon/client"
	"handoffd/daemon/control"
	"handoffd/daemon/logging"
	"handoffd/engine/fault"
	"handoffd/engine/sanitize"
)

// app is one run of the program.
type app struct {
	in        io.Reader
	out, err  io.Writer
	getenv    func(string) string
	cwd, home string

	json, quiet  bool
	local        bool
	root, socket string
	made         *client.Client
}

// printed is a failure of which everything has been said.
type printed struct{ error }

// Unwrap returns the failure.
func (p printed) Unwrap() error { return p.error }

// run parses args, runs the verb and returns the exit status.
func (a *app) run(ctx context.Context, args []string) int {
	out := &stdout{Writer: a.out}
	a.out = out
	root := a.command()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := missingValue(root, args)
	if err == nil {
		err = usage(root.ExecuteContext(ctx))
	}
	var said printed
	if verb := continuity.At(root, args); verb != "" && !errors.As(err, &said) {
		err = continuity.Operational(verb, args, err)
	}
	if a.made != nil {
		if a.made.Skew != "" {
			a.note("the daemon is version %s, this client %s", a.made.Skew, control.ThisRelease().Version)
		}
		a.made.Close()
	}
	var end exited
	a.json = a.json || asksJSON(args)
	switch {
	case out.err == nil && ctx.Err() != nil && errors.Is(err, context.Canceled):
		if atGateway(root, args) {
			a.refusal(errors.New("interrupted"))
			return exitInterrupted
		}
		if a.json {
			p := control.ProblemOf(fault.New(fault.Internal, "interrupted"))
			p.Exit = exitInterrupted
			raw, _ := control.Encode(p)
			_, _ = a.out.Write(append(raw, '\n'))
		} else {
			a.say("interrupted")
		}
		return exitInterrupted
	case out.err == nil && err != nil && atGateway(root, args):
		a.refusal(err)
	case out.err == nil:
		a.fail(err, args)
	}
	if out.err != nil {
		// Whatever else there is to say, nobody has got the answer.
		a.say("cannot write the answer: %v", out.err)
		return fault.Internal.Exit()
	}
	if errors.As(err, &end) {
		return end.status
	}
	return fault.ExitOf(err)
}

// exitInterrupted is what a shell reports of a program that SIGINT ended.
const exitInterrupted = 130

// stdout remembers that something could not be written: lines are printed
// from many places, and only the end decides on the exit status.
type stdout struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (s *stdout) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// usage makes what the command line parser complains of a usage error.
func usage(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	return fault.New(fault.Usage, "%w", err).WithHint("see: handoffctl help")
}

// fail says what went wrong: as a document on stdout with --json, else as a
// sentence on stderr with the hint below it.
func (a *app) fail(err error, args []string) {
	var done printed
	if err == nil || errors.As(err, &done) {
		return
	}
	if a.json || asksJSON(args) {
		_, _ = a.out.Write(document(err))
		return
	}
	for i, l := range strings.Split(err.Error(), "\n") { // every fault of a file
		if i == 0 {
			a.say("%s", l)
		} else {
			fmt.Fprintln(a.err, sanitize.Line(l))
		}
	}
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintln(a.err, "  hint: "+sanitize.Line(hint))
	}
}

// document is a failure as JSON: the daemon's own if it came from there.
func document(err error) []byte {
	var f *client.Failure
	if errors.As(err, &f) {
		return f.Document
	}
	raw, _ := control.Encode(control.ProblemOf(err)) // texts and numbers cannot fail
	return append(raw, '\n')
}

// say writes a line for people.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.err, "handoffctl: "+sanitize.Line(fmt.Sprintf(format, args...)))
}

// note is say for what a quiet user does not want to hear.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.say(format, args...)
	}
}

// line writes a line of the answer.
func (a *app) line(text string) { fmt.Fprintln(a.out, sanitize.Line(text)) }

// text writes text of several lines, with what could control a terminal made
// visible on one.
func (a *app) text(s string) {
	for line := range strings.Lines(s) {
		if line = strings.TrimRight(line, "\r\n"); a.terminal() {
			line = sanitize.Line(line)
		}
		fmt.Fprintln(a.out, line)
	}
}

// client returns the one client of this run.
func (a *app) client() *client.Client {
	if a.made == nil {
		a.made = client.New(client.Options{
			Local: a.local, Socket: a.socket, Root: a.root, CWD: a.cwd, Home: a.home, Getenv: a.getenv,
		})
	}
	return a.made
}

// call runs a verb and prints its document with --json; else show prints the
// decoded answer.
func call[A any](a *app, c *cobra.Command, verb string, q any, show func(A)) error {
	var into A
	raw, err := a.client().Call(c.Context(), verb, q, &into)
	if err != nil {
		return err
	}
	if a.json {
		_, err := a.out.Write(raw)
		return err
	}
	show(into)
	return nil
}

// terminal reports whether stdout is a terminal.
func (a *app) terminal() bool { return logging.IsTerminal(unwrapped(a.out)) }

func unwrapped(w io.Writer) io.Writer {
	if s, ok := w.(*stdout); ok {
		return s.Writer
	}
	return w
}
