// Package client is the one client: every verb goes as HTTP to the handler of
// daemon/server, over the control socket when a daemon answers there, else
// into this process. It decides which, and nothing else: it prints nothing and
// starts no daemon.
package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/configs"
	"handoffd/daemon/control"
	"handoffd/daemon/socket"
	"handoffd/engine/fault"
)

// Options is what the process knows.
type Options struct {
	Local  bool   // --local: never the daemon
	Socket string // --socket: this daemon
	Root   string // --root
	CWD    string // absolute
	Home   string // "" when unknown
	Getenv func(string) string
}

// Client calls verbs. It is for one goroutine at a time.
type Client struct {
	opt Options

	settings *configs.Resolved
	daemon   *http.Client // over the socket
	socket   string       // where that is
	local    *http.Client // in this process
	// Skew is the daemon's version where it is not ours, after a call.
	Skew string
}

// New returns a client. Nothing is read or dialled before the first call.
func New(o Options) *Client { return &Client{opt: o} }

// home says where a verb runs.
type home int

const (
	_ home = iota
	// hereOnly verbs must work when the daemon is dead or distrusted.
	hereOnly
	// hereWithoutStore verbs are hereOnly and have nothing to do with a store.
	hereWithoutStore
	// thereOnly verbs are about the daemon itself.
	thereOnly
	// hereWithConfig verbs obey the configuration of the project that the
	// user is in, which the daemon does not know.
	hereWithConfig
)

var homes = map[string]home{
	control.Verify: hereOnly, control.Config: hereOnly, control.VerifyGate: hereOnly,
	// These read or run what is outside of the store, for the user who asks
	// and with the user's rights and environment.
	control.Federate: hereOnly, control.Dispatch: hereOnly, control.Improve: hereOnly,
	control.RuntimeEvaluate: hereWithoutStore, control.RuntimeRun: hereWithoutStore, control.RuntimePolicy: hereWithoutStore,
	control.RuntimeJob: hereWithoutStore, control.RuntimeResume: hereWithoutStore, control.RuntimeStatus: hereWithoutStore,
	control.ContextBands: hereOnly, control.ContextGate: hereWithoutStore, control.ContextWrite: hereWithoutStore,
	control.ContextResume: hereWithoutStore, control.ContextBypass: hereWithoutStore, control.ContextRepair: hereWithoutStore,
	control.ContextUnlock: hereWithoutStore, control.ContextContinue: hereWithoutStore,
	control.Status: thereOnly, control.Events: thereOnly, control.Poke: thereOnly,
	control.Reload: thereOnly, control.Stop: thereOnly,
	control.Build: hereWithConfig, control.Auto: hereWithConfig, control.Rename: hereWithConfig,
	control.Retitle: hereWithConfig, control.Index: hereWithConfig, control.Show: hereWithConfig,
	control.ContractSet: hereWithConfig, control.Promote: hereWithConfig, control.Merge: hereWithConfig,
}

// Failure is an error that came with a document.
type Failure struct {
	Fault    *fault.Error
	Document []byte // the problem as JSON
}

// Error implements error.
func (f *Failure) Error() string { return f.Fault.Error() }

// Unwrap returns the fault.
func (f *Failure) Unwrap() error { return f.Fault }

// Call runs a verb and decodes its answer into into, if that is not nil. It
// returns the document as it came.
func (c *Client) Call(ctx context.Context, verb string, q, into any) ([]byte, error) {
	res, err := c.Open(ctx, verb, q, control.ContentJSON)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	raw, err := io.ReadAll(res)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fault.New(fault.Unreachable, "the answer broke off: %w", err)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			return raw, fault.New(fault.Unreachable, "the answer is not understood: %w", err).
				WithHint("client and daemon may be of different versions; see: handoffctl version")
		}
	}
	return raw, nil
}

// Open runs a verb and returns its answer as a stream, which the caller
// closes. accept is the media type wanted.
func (c *Client) Open(ctx context.Context, verb string, q any, accept string) (io.ReadCloser, error) {
	var body []byte
	if !control.Get[verb] {
		var err error
		if body, err = json.Marshal(q); err != nil {
			// JSON has no bytes that are not UTF-8, and another name in their
			// place would mean another file.
			return nil, fault.New(fault.Usage, "a name in the request is not valid UTF-8: %w", err).
				WithHint("name a symbolic link to the file; the daemon captures it by itself")
		}
	}
	path := control.Prefix + verb
	if s, ok := q.(string); ok && s != "" { // the query of a GET
		path += "?" + s
	}
	to, err := c.route(verb)
	if err != nil {
		return nil, err
	}
	for {
		err := c.awake(ctx, to)
		var res *http.Response
		if err == nil {
			res, err = c.send(ctx, to, path, body, accept)
		}
		switch {
		case err == nil && res.StatusCode >= 300 && ctx.Err() != nil:
			// What a verb says that was cut off says nothing.
			res.Body.Close()
			return nil, ctx.Err()
		case err == nil && res.StatusCode == http.StatusMisdirectedRequest && to.fallback:
			res.Body.Close()
		case err == nil && res.StatusCode >= 300:
			return nil, failure(res)
		case err == nil:
			c.noteVersion(to, res)
			return res.Body, nil
		case !to.fallback || !errors.Is(err, socket.ErrNobody):
			return nil, to.explain(err)
		}
		if to, err = c.here(); err != nil {
			return nil, err
		}
	}
}

// answerWait is how long a daemon may take to say that it is there. What it is
// asked for after that may take as long as it needs.
const answerWait = 2 * time.Second

// awake returns when the daemon has answered anything at all: one that is
// stopped still has its connections accepted by the kernel.
func (c *Client) awake(ctx context.Context, to target) error {
	if !to.remote {
		return nil
	}
	to.store = ""
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	res, err := c.send(ctx, to, control.Prefix+control.Version, nil, control.ContentJSON)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Unreachable, "the daemon does not answer within %v", answerWait)
	}
	return err
}

func (c *Client) send(ctx context.Context, to target, path string, body []byte, accept string) (*http.Response, error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+control.Host+path, bytes.NewReader(body))
	if err != nil {
		return nil, fault.New(fault.Internal, "make the request: %w", err)
	}
	r.Header.Set("Accept", accept)
	if body != nil {
		r.Header.Set("Content-Type", control.ContentJSON)
	}
	if to.store != "" {
		r.Header.Set(control.StoreHeader, url.QueryEscape(to.store))
	}
	return to.http.Do(r)
}

// failure decodes a problem document.
func failure(res *http.Response) error {
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return fault.New(fault.Unreachable, "the answer broke off: %w", err)
	}
	var p struct {
		control.Problem
		// An answer that stands in the document may have a status of its own.
		Status jsontext.Value `json:"status"`
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), control.ContentProblem) || json.Unmarshal(raw, &p) != nil {
		return fault.New(fault.Unreachable, "the daemon answered %s without saying why", res.Status)
	}
	return &Failure{p.Err(), raw}
}

func (c *Client) noteVersion(to target, res *http.Response) {
	if v := res.Header.Get(control.VersionHeader); to.remote && v != control.ThisRelease().Version {
		c.Skew = v
	}
}

// Absolute makes a path absolute as the user meant it; "" stays "".
func (c *Client) Absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.opt.CWD, path)
}
