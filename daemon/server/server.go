// Package server answers the verbs: one http.Handler over the engine, in
// which each verb is written once. The daemon serves it on the control socket
// and the client calls it in its own process when there is no daemon. It opens
// no socket, starts nothing, and never holds a signing key.
package server

import (
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"handoffd/configs"
	"handoffd/daemon/control"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
)

// Config is what a Server works on.
type Config struct {
	Program string // handoffd or handoffctl
	Store   store.Store
	// Builder returns the builder to use; a reload may replace it.
	Builder func() *pipeline.Builder
	// Settings is how the store was resolved.
	Settings configs.Resolved
	// DaemonSettings loads the daemon's configuration, for config --daemon.
	DaemonSettings func() (configs.Daemon, error)
	// Daemon does what needs one; nil answers fault.NoDaemon.
	Daemon Daemon
	// Gateway lets the verbs below runtime execute in this process; nil, as in
	// a daemon, refuses them.
	Gateway *Gateway
	// Log is told of each request; nil is nobody.
	Log *slog.Logger
	Now func() time.Time // nil is time.Now
}

// Server is the handler. It is safe for concurrent use.
type Server struct {
	Config
	routes map[string]route
	// heavy bounds the verbs that work on sessions.
	heavy chan struct{}
	// streams bounds those who follow events.
	streams chan struct{}
}

const (
	// maxStreams is how many clients may follow events at once.
	maxStreams = 16
	// heavyPerCPU bounds the verbs at work; more wait for their turn.
	heavyPerCPU = 4
)

// New returns a handler.
func New(c Config) *Server {
	if c.Daemon == nil {
		c.Daemon = nobody{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Server{
		Config: c, routes: routes(),
		heavy:   make(chan struct{}, heavyPerCPU*runtime.GOMAXPROCS(0)),
		streams: make(chan struct{}, maxStreams),
	}
}

// route is one path.
type route struct {
	methods []string
	// heavy verbs take turns.
	heavy bool
	serve func(s *Server, w http.ResponseWriter, r *http.Request, body []byte) error
}

// routes is the table of everything that can be asked for.
func routes() map[string]route {
	get, post := []string{http.MethodGet}, []string{http.MethodPost}
	both := []string{http.MethodGet, http.MethodPost}
	t := map[string]route{control.MetricsPath: {methods: get, serve: (*Server).metrics}}
	for verb, r := range map[string]route{
		control.Version: {methods: both, serve: answer((*Server).version)},
		control.Status:  {methods: both, serve: answer((*Server).status)},
		control.Events:  {methods: get, serve: (*Server).events},
		control.Poke:    {methods: post, serve: (*Server).poke},
		control.Reload:  {methods: post, serve: answer((*Server).reload)},
		control.Stop:    {methods: post, serve: answer((*Server).stop)},
		control.Build:   {methods: post, heavy: true, serve: answer((*Server).build)},
		control.Auto:    {methods: post, heavy: true, serve: answer((*Server).auto)},
		control.List:    {methods: post, heavy: true, serve: answer((*Server).list)},
		control.Show:    {methods: post, heavy: true, serve: (*Server).show},
		control.Verify:  {methods: post, heavy: true, serve: answer((*Server).verify)},
		control.Config:  {methods: post, serve: answer((*Server).config)},
		control.Index:   {methods: post, heavy: true, serve: answer((*Server).index)},
		control.Rename:  {methods: post, heavy: true, serve: answer((*Server).rename)},
		control.Retitle: {methods: post, heavy: true, serve: answer((*Server).retitle)},

		control.ContractSet:  {methods: post, heavy: true, serve: answer((*Server).contractSet)},
		control.ContractShow: {methods: post, serve: answer((*Server).contractShow)},
		control.VerifyGate:   {methods: post, heavy: true, serve: answer((*Server).verifyGate)},
		control.Promote:      {methods: post, heavy: true, serve: answer((*Server).promote)},
		control.Merge:        {methods: post, heavy: true, serve: answer((*Server).merge)},
		control.Federate:     {methods: post, heavy: true, serve: answer((*Server).federate)},
		control.Dispatch:     {methods: post, heavy: true, serve: answer((*Server).dispatch)},
		control.Improve:      {methods: post, heavy: true, serve: answer((*Server).improve)},
	} {
		t[control.Prefix+verb] = r
	}
	for _, more := range []map[string]route{policyRoutes(), contextRoutes()} {
		for verb, r := range more {
			t[control.Prefix+verb] = r
		}
	}
	return t
}

// Options are the builder's, as the store's configuration has them.
func Options(s configs.Resolved) pipeline.Options {
	return pipeline.Options{
		Project: s.ProjectName, MaxBriefTokens: s.MaxBriefTokens,
		Linking: s.LinkingEnabled, MinOverlap: s.MinOverlap,
	}
}
