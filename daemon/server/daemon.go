package server

import (
	"context"
	"iter"
	"net/http"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
)

// Daemon is what only a running daemon can do.
type Daemon interface {
	// About adds to a version's answer.
	About(*control.VersionAnswer)
	Status(context.Context) (control.StatusAnswer, error)
	// Events yields what is remembered and, with follow, what happens until
	// ctx ends.
	Events(ctx context.Context, follow bool) (iter.Seq[control.Event], error)
	// Poke makes sources due now, everything that changed if there are none,
	// and with wait returns when their newest bytes are stored.
	Poke(ctx context.Context, paths []string, wait bool) error
	Reload(context.Context) (detail string, err error)
	// Stop makes the daemon end; it does not wait for that.
	Stop(context.Context) error
	Metrics(http.ResponseWriter, *http.Request) error
	// Built and Moved tell it what a verb did.
	Built(source string, r *pipeline.Result)
	Moved(from store.Location)
}

// nobody stands for the daemon where there is none.
type nobody struct{}

func noDaemon() error {
	return fault.New(fault.NoDaemon, "no daemon is running").WithHint("start it with: handoffd run")
}

func (nobody) About(*control.VersionAnswer) {}
func (nobody) Status(context.Context) (control.StatusAnswer, error) {
	return control.StatusAnswer{}, noDaemon()
}
func (nobody) Events(context.Context, bool) (iter.Seq[control.Event], error) { return nil, noDaemon() }
func (nobody) Poke(context.Context, []string, bool) error                    { return noDaemon() }
func (nobody) Reload(context.Context) (string, error)                        { return "", noDaemon() }
func (nobody) Stop(context.Context) error                                    { return noDaemon() }
func (nobody) Metrics(http.ResponseWriter, *http.Request) error              { return noDaemon() }
func (nobody) Built(string, *pipeline.Result)                                {}
func (nobody) Moved(store.Location)                                          {}
