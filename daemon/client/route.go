package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"handoffd/configs"
	"handoffd/daemon/control"
	"handoffd/daemon/server"
	"handoffd/daemon/socket"
	"handoffd/engine/fault"
	"handoffd/engine/pipeline"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
)

// dialTimeout bounds the connecting, not the answer.
const dialTimeout = 2 * time.Second

// target is where a call goes.
type target struct {
	http   *http.Client
	remote bool
	// fallback says that the call may run here when nobody is there, or one
	// who serves another store.
	fallback bool
	// named says that the user named the socket.
	named bool
	// status is asked: then nobody there is an answer of its own.
	status bool
	// here says that the verb works without a daemon.
	here  bool
	store string // that the daemon must serve, "" for any
}

// explain turns the error of a call that did not get through into a fault.
func (t target) explain(err error) error {
	switch {
	case errors.Is(err, socket.ErrNobody) && t.named && !t.status:
		return fault.New(fault.Unreachable, "%w", cause(err)).WithHint("start it with: handoffd run, or leave out --socket")
	case errors.Is(err, socket.ErrNobody):
		return fault.New(fault.NoDaemon, "no daemon is running: %w", cause(err)).WithHint("start it with: handoffd run")
	case errors.Is(err, context.Canceled):
		return err
	}
	var known *fault.Error
	if !errors.As(err, &known) {
		known = fault.New(fault.Unreachable, "the daemon does not answer: %w", cause(err))
	}
	if known.Kind == fault.Unreachable && known.Hint == "" && t.here {
		known = known.WithHint("--local works without it")
	}
	return known
}

// cause strips what net/http puts around an error.
func cause(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return known
	}
	var op interface{ Unwrap() error }
	if errors.As(err, &op) && op.Unwrap() != nil {
		return op.Unwrap()
	}
	return err
}

// route decides where a verb runs.
func (c *Client) route(verb string) (target, error) {
	where := homes[verb]
	if where == hereWithoutStore {
		return c.bare(), nil
	}
	if c.opt.Local || where == hereOnly {
		return c.here()
	}
	named := c.opt.Socket != ""
	t := target{remote: true, named: named, status: verb == control.Status, here: where != thereOnly, fallback: !named && where != thereOnly}
	if where != thereOnly {
		if named {
			// The user named the daemon. Only a store named as plainly can
			// contradict that.
			if c.opt.Root != "" {
				s, err := c.resolve()
				if err != nil {
					return t, err
				}
				t.store = s.Root
			}
		} else {
			s, err := c.resolve()
			if err != nil {
				return t, err
			}
			if where == hereWithConfig && s.File != "" {
				return c.here()
			}
			if s.RootSource != configs.RootDefault {
				t.store = s.Root
			}
		}
	}
	var err error
	t.http, err = c.there()
	return t, err
}

// resolve finds the store, once.
func (c *Client) resolve() (configs.Resolved, error) {
	if c.settings == nil {
		r, err := configs.Resolve(configs.Input{CWD: c.opt.CWD, RootFlag: c.opt.Root, Getenv: c.opt.Getenv, HomeDir: c.opt.Home})
		if err != nil {
			return r, err
		}
		if err := supported(r); err != nil {
			return r, err
		}
		c.settings = &r
	}
	return *c.settings, nil
}

func (c *Client) daemonSettings() (configs.Daemon, error) {
	return configs.LoadDaemon(configs.DaemonInput{CWD: c.opt.CWD, RootFlag: c.opt.Root, Getenv: c.opt.Getenv, HomeDir: c.opt.Home})
}

// Socket returns the path of the control socket.
func (c *Client) Socket() (string, error) {
	if c.socket != "" {
		return c.socket, nil
	}
	configured := ""
	if c.opt.Socket == "" && c.opt.Getenv(socket.EnvSocket) == "" {
		d, err := c.daemonSettings()
		if err != nil {
			return "", err
		}
		configured = d.Socket
	}
	path, err := socket.Path(c.Absolute(c.opt.Socket), c.opt.Getenv, configured)
	if err == nil {
		c.socket = path
	}
	return path, err
}

// there returns the way to the daemon.
func (c *Client) there() (*http.Client, error) {
	if c.daemon != nil {
		return c.daemon, nil
	}
	path, err := c.Socket()
	if err != nil {
		return nil, err
	}
	c.daemon = &http.Client{Transport: &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return socket.Dial(ctx, path)
		},
	}}
	return c.daemon, nil
}

// gateway is what verbs may do outside of a store, in this process.
func (c *Client) gateway() *server.Gateway {
	return &server.Gateway{CWD: c.opt.CWD, Home: c.opt.Home, Getenv: c.opt.Getenv}
}

// bare returns the way into this process for verbs that know no store: no
// configuration of one keeps them from working.
func (c *Client) bare() target {
	return target{http: &http.Client{Transport: inProcess{server.New(server.Config{Program: "handoffctl", Gateway: c.gateway()})}}}
}

// here returns the way into this process.
func (c *Client) here() (target, error) {
	if c.local == nil {
		s, err := c.resolve()
		if err != nil {
			return target{}, err
		}
		st := store.Store{Root: s.Root}
		b := pipeline.New(st, server.Options(s))
		c.local = &http.Client{Transport: inProcess{server.New(server.Config{
			Program: "handoffctl", Store: st, Settings: s, DaemonSettings: c.daemonSettings,
			Gateway: c.gateway(),
			Builder: func() *pipeline.Builder { return b },
		})}}
	}
	return target{http: c.local}, nil
}

// Close gives back the connections.
func (c *Client) Close() {
	if c.daemon != nil {
		c.daemon.CloseIdleConnections()
	}
}

// Remote asks the daemon alone, with GET.
func (c *Client) Remote(ctx context.Context, verb string, into any) error {
	h, err := c.there()
	if err != nil {
		return err
	}
	t := target{http: h, remote: true, named: c.opt.Socket != ""}
	if err := c.awake(ctx, t); err != nil {
		return t.explain(err)
	}
	res, err := c.send(ctx, t, control.Prefix+verb, nil, control.ContentJSON)
	if err != nil {
		return t.explain(err)
	}
	if res.StatusCode >= 300 {
		return failure(res)
	}
	defer res.Body.Close()
	if err := json.UnmarshalRead(res.Body, into); err != nil {
		return fault.New(fault.Unreachable, "the answer is not understood: %w", err)
	}
	return nil
}

// gonePoll is how often Gone looks.
const gonePoll = 20 * time.Millisecond

// Gone returns when nobody listens on the socket any more and the daemon has
// given back its lock, so that another one can start.
func (c *Client) Gone(ctx context.Context) error {
	path, err := c.Socket()
	if err != nil {
		return err
	}
	tick := time.NewTicker(gonePoll)
	defer tick.Stop()
	for {
		if gone(ctx, path) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.Unreachable, "the daemon is still there").WithHint("see what it does with: handoffctl status")
		case <-tick.C:
		}
	}
}

func gone(ctx context.Context, path string) bool {
	conn, err := socket.Dial(ctx, path)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, socket.ErrNobody) {
		return false
	}
	lock, err := safefile.Acquire(ctx, path+control.LockSuffix, gonePoll)
	if err != nil {
		// Whoever cannot lock it, because the directory is gone or read-only,
		// is held up by nobody.
		return !fault.Is(err, fault.Locked)
	}
	return lock.Release() == nil
}
