// Command handoffctl asks for handoffs: it builds, lists, shows and verifies
// them, with a daemon or without, and tells the daemon what to do. It parses
// and prints; what a verb does is in daemon/server.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process at once
	}()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	a.cwd, _ = os.Getwd()
	a.home, _ = os.UserHomeDir()
	os.Exit(a.run(ctx, os.Args[1:]))
}
