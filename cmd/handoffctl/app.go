package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

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
	root := a.command()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := missingValue(root, args)
	if err == nil {
		err = usage(root.ExecuteContext(ctx))
	}
	if a.made != nil {
		if a.made.Skew != "" {
			a.note("the daemon is version %s, this client %s", a.made.Skew, control.ThisRelease().Version)
		}
		a.made.Close()
	}
	a.fail(err, args)
	return fault.ExitOf(err)
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
	p := control.ProblemOf(err)
	raw, err := json.Marshal(p)
	if err != nil { // text that is not UTF-8
		p.Detail, p.Hint = sanitize.Line(p.Detail), sanitize.Line(p.Hint)
		raw, _ = json.Marshal(p)
	}
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
func (a *app) terminal() bool { return logging.IsTerminal(a.out) }
