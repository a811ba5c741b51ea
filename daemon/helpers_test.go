package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"handoffd/configs"
	"handoffd/daemon/client"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/harness/all"
	"handoffd/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a daemon in a home of its own.
type bench struct {
	t        testing.TB
	dir      string
	settings func(*configs.Daemon)
	change   func(*Config)
	signals  chan os.Signal
	ended    chan error
	log      logBuffer
	client   *client.Client

	mu     sync.Mutex
	states []string
}

func newBench(t testing.TB) *bench {
	dir, err := os.MkdirTemp("", "daemon") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir}
	if err := os.MkdirAll(filepath.Dir(b.session(1)), 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) socket() string { return filepath.Join(b.dir, "run", "d.sock") }
func (b *bench) home() string   { return filepath.Join(b.dir, "home") }
func (b *bench) store() string  { return filepath.Join(b.dir, "store") }

func (b *bench) session(n int) string {
	return filepath.Join(b.home(), ".claude", "projects", "-p", fmt.Sprintf("%08d-2222-4333-8444-555555555555.jsonl", n))
}

func id(path string) string { return strings.TrimSuffix(filepath.Base(path), ".jsonl") }

// say appends a prompt to a transcript.
func (b *bench) say(path, text string) {
	b.t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	if _, err := fmt.Fprintf(f, `{"type":"user","uuid":"%s-%d","sessionId":%q,"cwd":"/p","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":%q}}`+"\n", id(path), info.Size(), id(path), text); err != nil {
		b.t.Fatal(err)
	}
}

// start runs the daemon.
func (b *bench) start() {
	b.t.Helper()
	env := func(string) string { return "" }
	b.signals, b.ended = make(chan os.Signal), make(chan error, 1)
	c := Config{
		Input:  configs.DaemonInput{HomeDir: b.home(), CWD: b.dir, Getenv: env},
		Socket: b.socket(), AllowRoot: true, Formats: all.Formats(), Stderr: &b.log, Signals: b.signals,
		Load: func() (configs.Daemon, error) {
			s, err := configs.LoadDaemon(configs.DaemonInput{HomeDir: b.home(), CWD: b.dir, RootFlag: b.store(), Getenv: env})
			s.Quiet, s.MinFresh, s.Log.Level = 0, 0, "debug"
			if b.settings != nil {
				b.settings(&s)
			}
			return s, err
		},
		Notify: func(state string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.states = append(b.states, state)
		},
	}
	if b.change != nil {
		b.change(&c)
	}
	go func() { b.ended <- Run(context.Background(), c) }()
	b.client = client.New(client.Options{Socket: b.socket(), CWD: b.dir, Home: b.home(), Getenv: env})
	b.until("the daemon", func() bool {
		select {
		case err := <-b.ended:
			b.t.Fatalf("the daemon ended: %v\n%s", err, b.log.String())
		default:
		}
		return b.client.Remote(b.t.Context(), control.Version, new(control.VersionAnswer)) == nil
	})
}

// signal ends the daemon, and returns what it ended with.
func (b *bench) signal(s os.Signal) error {
	b.t.Helper()
	defer b.client.Close()
	b.signals <- s
	return b.wait()
}

func (b *bench) wait() error {
	b.t.Helper()
	select {
	case err := <-b.ended:
		return err
	case <-time.After(30 * time.Second):
		b.t.Fatalf("the daemon does not end\n%s", b.log.String())
		return errors.New("unreachable")
	}
}

func (b *bench) call(verb string, q, into any) error {
	_, err := b.client.Call(b.t.Context(), verb, q, into)
	return err
}

func (b *bench) status() (s control.StatusAnswer) {
	b.t.Helper()
	if err := b.call(control.Status, control.StatusRequest{}, &s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// turns is how many turns of a transcript the daemon lists.
func (b *bench) turns(path string) int {
	b.t.Helper()
	var l control.ListAnswer
	err := b.call(control.List, control.ListRequest{ID: id(path)}, &l)
	if fault.Is(err, fault.NotFound) {
		return 0
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return l.Sessions[0].Turns
}

func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			b.t.Fatalf("waited in vain for: %s\n%s", what, b.log.String())
		case <-tick.C:
		}
	}
}

// none is a watcher that reports nothing.
func none(func(watch.RootStatus)) watch.Source { return &watch.None{} }

// logBuffer is a log in memory.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = (*logBuffer)(nil)

// Write implements io.Writer.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
