// Command handoffd is the daemon: it watches the transcripts of coding agents
// and captures them as handoffs. It parses its command line and runs what is
// in package daemon.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"handoffd/engine/fault"
	"handoffd/engine/sanitize"
)

func main() {
	p := program{out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	p.cwd, _ = os.Getwd()
	p.home, _ = os.UserHomeDir()
	root := p.command()
	root.SetArgs(os.Args[1:])
	err := p.usage(root.ExecuteContext(context.Background()))
	if err != nil {
		for _, l := range strings.Split("handoffd: "+err.Error(), "\n") { // every fault of a file
			fmt.Fprintln(os.Stderr, sanitize.Line(l))
		}
		if hint := fault.HintOf(err); hint != "" {
			fmt.Fprintln(os.Stderr, "  hint: "+sanitize.Line(hint))
		}
	}
	os.Exit(fault.ExitOf(err))
}
