package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"handoffd/daemon/control"
	"handoffd/daemon/socket"
	"handoffd/engine/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a home of its own.
type bench struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newBench(t *testing.T) *bench {
	dir, err := os.MkdirTemp("", "client") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &bench{t, dir, map[string]string{"HANDOFFD_SOCKET": filepath.Join(dir, "run", "d.sock")}}
}

func (b *bench) client(change func(*Options)) *Client {
	o := Options{CWD: b.dir, Home: b.dir, Getenv: func(k string) string { return b.env[k] }}
	if change != nil {
		change(&o)
	}
	c := New(o)
	b.t.Cleanup(c.Close)
	return c
}

// serve listens as a daemon would and answers every request with its path, or
// with 421 if it means another store than /served.
func (b *bench) serve(handler http.HandlerFunc) {
	b.t.Helper()
	l, err := socket.Listen(b.env["HANDOFFD_SOCKET"])
	if err != nil {
		b.t.Fatal(err)
	}
	s := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	b.t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
}

// echo answers with the store that the request means.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(control.VersionHeader, "other")
	if s := r.Header.Get(control.StoreHeader); s != "" && s != "%2Fserved" {
		w.Header().Set("Content-Type", control.ContentProblem)
		w.WriteHeader(http.StatusMisdirectedRequest)
		raw, _ := json.Marshal(control.ProblemOf(fault.New(fault.Usage, "another store")))
		_, _ = w.Write(raw)
		return
	}
	fmt.Fprintf(w, `{"ok":true,"action":"by the daemon: %s %s%s"}`, r.Method, r.Host, r.URL)
}

func call(t *testing.T, c *Client, verb string) (string, error) {
	t.Helper()
	var done control.Done
	_, err := c.Call(t.Context(), verb, struct{}{}, &done)
	return done.Action, err
}

func TestWhereVerbsRun(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*Options)
		env    map[string]string
		file   string // a handoff.config.json in the current directory
		verb   string
		daemon bool
	}{
		{"engine verb", nil, nil, "", control.List, true},
		{"verb that distrusts the daemon", nil, nil, "", control.Config, false},
		{"--local", func(o *Options) { o.Local = true }, nil, "", control.List, false},
		{"the same store", func(o *Options) { o.Root = "/served" }, nil, "", control.List, true},
		{"another store", func(o *Options) { o.Root = "other" }, nil, "", control.List, false},
		{"another store in the environment", nil, map[string]string{"HANDOFFS_ROOT": "/other"}, "", control.List, false},
		{"project with a store", nil, nil, `{"version":1,"handoff_dir":"x"}`, control.List, false},
		{"project without", nil, nil, `{"version":1}`, control.List, true},
		{"project that changes what a build does", nil, nil, `{"version":1,"project_name":"p"}`, control.Index, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBench(t)
			b.serve(echo)
			for k, v := range c.env {
				b.env[k] = v
			}
			if c.file != "" {
				if err := os.WriteFile(filepath.Join(b.dir, "handoff.config.json"), []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			action, err := call(t, b.client(c.change), c.verb)
			if got := strings.HasPrefix(action, "by the daemon"); got != c.daemon {
				t.Errorf("by the daemon: %t, want %t (%q, %v)", got, c.daemon, action, err)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	b := newBench(t)
	named := func(o *Options) { o.Socket = "gone.sock" }
	for _, c := range []struct {
		verb   string
		change func(*Options)
		kind   fault.Kind
	}{
		{control.List, nil, fault.NotFound}, // in-process: no handoffs yet
		{control.Status, nil, fault.NoDaemon},
		{control.Poke, nil, fault.NoDaemon},
		{control.List, named, fault.Unreachable},
		{control.Poke, named, fault.Unreachable},
		{control.Status, named, fault.NoDaemon},
	} {
		_, err := call(t, b.client(c.change), c.verb)
		if !fault.Is(err, c.kind) || fault.HintOf(err) == "" && c.kind != fault.NotFound || strings.Contains(err.Error(), "http://") {
			t.Errorf("%s: %v (%v)", c.verb, err, fault.KindOf(err))
		}
	}
}

func TestNamedDaemonOfAnotherStore(t *testing.T) {
	b := newBench(t)
	b.serve(echo)
	c := b.client(func(o *Options) { o.Socket, o.Root = b.env["HANDOFFD_SOCKET"], "/mine" })
	if _, err := call(t, c, control.List); !fault.Is(err, fault.Usage) {
		t.Errorf("a contradiction: %v", err)
	}
	b.env["HANDOFFS_ROOT"] = "/mine"
	c = b.client(func(o *Options) { o.Socket = b.env["HANDOFFD_SOCKET"] })
	if action, err := call(t, c, control.List); err != nil || !strings.HasPrefix(action, "by the daemon") {
		t.Errorf("%q %v", action, err)
	}
	if c.Skew != "other" {
		t.Errorf("skew %q", c.Skew)
	}
}

// What the daemon says of a failure arrives whole; what is no answer of ours
// does not pass for one.
func TestFailuresOfTheDaemon(t *testing.T) {
	ask := func(answer func(w http.ResponseWriter)) error {
		b := newBench(t)
		b.serve(func(w http.ResponseWriter, _ *http.Request) { answer(w) })
		_, err := call(t, b.client(nil), control.List)
		return err
	}
	problem := func(body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", control.ContentProblem)
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, body)
		}
	}
	err := ask(problem(`{"ok":false,"kind":"ambiguous","detail":"two","hint":"more","exit":3,"sessions":[1]}`))
	var f *Failure
	if !errors.As(err, &f) || !fault.Is(err, fault.Ambiguous) || fault.HintOf(err) != "more" || !strings.Contains(string(f.Document), "sessions") {
		t.Errorf("%v", err)
	}
	for what, a := range map[string]func(http.ResponseWriter){
		"half a problem": problem(`{"ok":`),
		"plain text":     func(w http.ResponseWriter) { http.Error(w, "no", http.StatusTeapot) },
		"no JSON":        func(w http.ResponseWriter) { _, _ = io.WriteString(w, "hello") },
		"broken off": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"ok":true`)
		},
		"closed": func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		if err := ask(a); !fault.Is(err, fault.Unreachable) {
			t.Errorf("%s: %v (%v)", what, err, fault.KindOf(err))
		}
	}
}

func TestDaemonThatNeverAnswers(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	b.serve(func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.client(nil).Call(ctx, control.List, struct{}{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestPathsAreTheUsers(t *testing.T) {
	c := New(Options{CWD: "/here"})
	for in, want := range map[string]string{"": "", "a": "/here/a", "../a": "/a", "/a": "/a", "~/a": "/here/~/a"} {
		if got := c.Absolute(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// The transport into this process behaves as a connection does.
func TestInProcess(t *testing.T) {
	get := func(h http.HandlerFunc) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://handoffd/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		return (&http.Client{Transport: inProcess{h}}).Do(r)
	}
	res, err := get(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X", r.Host)
		w.WriteHeader(http.StatusAccepted)
		w.Header().Set("X", "late")
		_, _ = io.WriteString(w, "body")
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(res.Body)
	if res.StatusCode != 202 || res.Header.Get("X") != "handoffd" || string(raw) != "body" || err != nil || res.Body.Close() != nil {
		t.Errorf("%v %q %v", res, raw, err)
	}
	if res, err = get(func(http.ResponseWriter, *http.Request) {}); err != nil || res.StatusCode != 200 {
		t.Errorf("nothing written: %v %v", res, err)
	} else {
		res.Body.Close()
	}
	res, err = get(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an aborted answer reads to its end: %v", err)
	}
	res.Body.Close()
	// A reader that leaves ends the handler.
	ended := make(chan struct{})
	res, err = get(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for {
			if _, err := io.WriteString(w, "more"); err != nil {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	<-ended
}

// A peer that is not ours is refused, not passed over.
func TestSocketOfAnother(t *testing.T) {
	b := newBench(t)
	dir := filepath.Dir(b.env["HANDOFFD_SOCKET"])
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// Something that listens and never answers must not pass for nobody.
	l, err := net.Listen("unix", b.env["HANDOFFD_SOCKET"])
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	defer l.Close()
	if _, err := call(t, b.client(nil), control.List); !fault.Is(err, fault.Unreachable) {
		t.Errorf("%v (%v)", err, fault.KindOf(err))
	}
}
