package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"handoffd/configs"
	"handoffd/daemon/client"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
)

// The whole of it without a single event: slower, and otherwise the same.
func TestDaemonWithoutEvents(t *testing.T) {
	b := newBench(t)
	b.change = func(c *Config) { c.Watch = none }
	b.settings = func(c *configs.Daemon) { c.Sweep = time.Second }
	b.say(b.session(1), "before the start")
	b.start()
	b.until("what was there", func() bool { return b.turns(b.session(1)) == 1 })
	b.say(b.session(1), "later")
	b.say(b.session(2), "new")
	b.until("what came later", func() bool { return b.turns(b.session(1)) == 2 && b.turns(b.session(2)) == 1 })
	if err := b.signal(os.Interrupt); err != nil {
		t.Error(err)
	}
}

// A harness that is installed while the daemon runs is followed.
func TestHarnessThatAppears(t *testing.T) {
	b := newBench(t)
	b.start()
	path := filepath.Join(b.home(), ".codex", "sessions", "2026", "01", "02", "rollout-2026-01-02T03-04-05-11111111-2222-4333-8444-555555555555.jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"11111111-2222-4333-8444-555555555555","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/p","originator":"codex_cli_rs","cli_version":"0.50.0"}}
{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.until("the session", func() bool {
		var l control.ListAnswer
		return b.call(control.List, control.ListRequest{ID: "11111111"}, &l) == nil && l.Sessions[0].Harness == "codex"
	})
	if err := b.signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

// The first signal captures what changed last; nothing is left for the next
// start to repair.
func TestFirstSignalDrains(t *testing.T) {
	b := newBench(t)
	b.settings = func(c *configs.Daemon) { c.Quiet, c.MinFresh = time.Hour, time.Hour }
	b.say(b.session(1), "one")
	b.start()
	b.until("the first", func() bool { return b.turns(b.session(1)) == 1 })
	b.say(b.session(1), "two")
	if err := b.signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(b.socket()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	index, err := os.ReadFile(filepath.Join(b.store(), store.IndexName))
	if err != nil || !bytes.Contains(index, []byte(`"turns": 2`)) {
		t.Errorf("%v %s", err, index)
	}
	if want := []string{"READY=1", "STOPPING=1"}; !slices.Equal(b.states, want) {
		t.Errorf("told the service manager %q", b.states)
	}
	b.log = logBuffer{}
	b.start()
	b.until("the first sweep", func() bool { s := b.status(); return s.Scan.Last != "" && !s.Scan.Initial })
	if s := b.status(); s.Captures.Built != 0 || s.Sessions.Total != 1 || !s.Healthy {
		t.Errorf("%+v", s)
	}
	if err := b.signal(os.Interrupt); err != nil {
		t.Error(err)
	}
}

// The second signal does not wait for a capture that cannot end.
func TestSecondSignalDoesNotWait(t *testing.T) {
	b := newBench(t)
	b.start()
	lock, err := safefile.Acquire(t.Context(), store.Store{Root: b.store()}.SessionLock(id(b.session(1))), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	b.say(b.session(1), "held")
	b.until("the attempt", func() bool { return b.status().Queue.Running == 1 })
	began := time.Now()
	b.signals <- os.Interrupt
	err = b.signal(os.Interrupt)
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("waited %v", took)
	}
	if err == nil {
		t.Error("what was left undone is not said")
	}
}

func TestStopAndSecondInstance(t *testing.T) {
	b := newBench(t)
	b.start()
	for what, change := range map[string]func(*Config){
		"same":         func(*Config) {},
		"other socket": func(c *Config) { c.Socket += "2" },
		"other store": func(c *Config) {
			load := c.Load
			c.Load = func() (configs.Daemon, error) {
				s, err := load()
				s.Store += "2"
				return s, err
			}
		},
	} {
		other := &bench{t: t, dir: b.dir, change: change}
		err := runOnce(other)
		if !fault.Is(err, fault.Locked) || err.Error() != fmt.Sprintf("already running, pid %d", os.Getpid()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := b.call(control.Stop, control.StopRequest{}, new(control.Done)); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Gone(t.Context()); err != nil {
		t.Error(err)
	}
	if err := b.wait(); err != nil {
		t.Error(err)
	}
	b.client.Close()
}

// runOnce runs a daemon that is expected to end at once.
func runOnce(b *bench) error {
	b.signals = make(chan os.Signal)
	env := func(string) string { return "" }
	c := Config{
		Input:  configs.DaemonInput{HomeDir: b.home(), CWD: b.dir, Getenv: env},
		Socket: b.socket(), AllowRoot: true, Formats: nil, Stderr: &b.log, Signals: b.signals, Notify: func(string) {},
		Load: func() (configs.Daemon, error) {
			return configs.LoadDaemon(configs.DaemonInput{HomeDir: b.home(), CWD: b.dir, RootFlag: b.store(), Getenv: env})
		},
	}
	b.change(&c)
	return Run(b.t.Context(), c)
}

func TestRefusedStarts(t *testing.T) {
	b := newBench(t)
	for what, c := range map[string]struct {
		change func(*Config)
		kind   fault.Kind
	}{
		"broken configuration": {func(c *Config) {
			c.Load = func() (configs.Daemon, error) { return configs.Daemon{}, fault.New(fault.Config, "broken") }
		}, fault.Config},
		"relative socket": {func(c *Config) { c.Socket = "x.sock" }, fault.Config},
		"unsupported": {func(c *Config) {
			load := c.Load
			c.Load = func() (configs.Daemon, error) {
				s, err := load()
				s.Retention.QuarantineDays = 3
				return s, err
			}
		}, fault.Config},
		"log that is no file": {func(c *Config) {
			load := c.Load
			c.Load = func() (configs.Daemon, error) {
				s, err := load()
				s.Log.File = b.dir
				return s, err
			}
		}, fault.Config},
		"public socket directory": {func(c *Config) {
			dir := filepath.Join(b.dir, "public")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			c.Socket = filepath.Join(dir, "d.sock")
		}, fault.Config},
	} {
		other := &bench{t: t, dir: b.dir, change: c.change}
		if err := runOnce(other); !fault.Is(err, c.kind) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if os.Geteuid() == 0 {
		other := &bench{t: t, dir: b.dir, change: func(c *Config) { c.AllowRoot = false }}
		if err := runOnce(other); !fault.Is(err, fault.Usage) || fault.HintOf(err) == "" {
			t.Errorf("root: %v", err)
		}
	}
}

// Status names what is wrong while it is, and events tell when it came and
// went.
func TestStatusTellsTheTruth(t *testing.T) {
	b := newBench(t)
	b.say(b.session(1), "one")
	b.start()
	b.until("the session", func() bool { return b.status().Captures.Built == 1 })
	s := b.status()
	if !s.Healthy || s.Sessions.Total != 1 || s.Sessions.Live != 1 || s.Captures.Built != 1 || s.PID != os.Getpid() {
		t.Errorf("%+v", s)
	}
	// A directory in the place of the session's makes builds fail.
	blocked := filepath.Join(b.store(), store.ProjectsDir, "p")
	if os.Geteuid() == 0 {
		// Root may write anywhere: put a file where a directory belongs.
		blocked = filepath.Join(b.store(), store.ProjectsDir, "q")
		if err := os.WriteFile(blocked, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		appendRaw(t, b.session(2), strings.ReplaceAll(prompt(b.session(2)), `"/p"`, `"/q"`))
	} else {
		if err := os.Chmod(blocked, 0o500); err != nil {
			t.Fatal(err)
		}
		b.say(b.session(2), "cannot be stored")
	}
	b.until("the fault", func() bool { s := b.status(); return !s.Healthy && len(s.Errors) == 1 })
	b.until("the event", func() bool { return eventOf(b, control.EventDegraded) })
	if os.Geteuid() == 0 {
		if err := os.Remove(blocked); err != nil {
			t.Fatal(err)
		}
	} else if err := os.Chmod(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	b.until("the mending", func() bool { s := b.status(); return s.Healthy && s.Sessions.Total == 2 })
	b.until("the event", func() bool { return eventOf(b, control.EventRecovered) })
	if err := b.signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if n := strings.Count(b.log.String(), `"cannot capture"`); n != 1 {
		t.Errorf("one failure is logged %d times", n)
	}
}

func prompt(path string) string {
	return fmt.Sprintf(`{"type":"user","uuid":"%s-0","sessionId":%q,"cwd":"/p","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"x"}}`+"\n", id(path), id(path))
}

func appendRaw(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func eventOf(b *bench, typ string) bool {
	b.t.Helper()
	stream, err := b.client.Open(b.t.Context(), control.Events, "follow=false", control.ContentStream)
	if err != nil {
		b.t.Fatal(err)
	}
	defer stream.Close()
	var buf bytes.Buffer
	_, _ = buf.ReadFrom(stream)
	return strings.Contains(buf.String(), `"type":"`+typ+`"`)
}

// Years of transcripts are captured newest first, with a poke in between.
func TestFirstScanIsNewestFirst(t *testing.T) {
	b := newBench(t)
	b.settings = func(c *configs.Daemon) { c.Workers = 1 }
	const n = 60
	for i := 1; i <= n; i++ {
		b.say(b.session(i), "x")
		old := time.Now().Add(-time.Duration(i) * time.Hour)
		if err := os.Chtimes(b.session(i), old, old); err != nil {
			t.Fatal(err)
		}
	}
	b.start()
	if err := b.call(control.Poke, control.PokeRequest{Source: b.session(n), Wait: true}, nil); err != nil {
		t.Fatal(err)
	}
	b.until("the scan", func() bool { s := b.status(); return s.Sessions.Total == n && !s.Scan.Initial && s.Scan.Todo >= n-1 })
	if err := b.signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	var order []int
	for line := range strings.Lines(b.log.String()) {
		if _, rest, ok := strings.Cut(line, `"msg":"captured","session":"`); ok {
			var i int
			_, _ = fmt.Sscanf(rest[:8], "%08d", &i)
			if i != n { // the one that was poked
				order = append(order, i)
			}
		}
	}
	if !slices.IsSorted(order) || len(order) != n-1 {
		t.Errorf("captured in the order %v", order)
	}
}

// Bad clients cost themselves and nobody else.
func TestClientOfAnotherStoreIsSentAway(t *testing.T) {
	b := newBench(t)
	b.start()
	env := map[string]string{"HANDOFFS_ROOT": filepath.Join(b.dir, "mine"), "HANDOFFD_SOCKET": b.socket()}
	c := client.New(client.Options{CWD: b.dir, Home: b.home(), Getenv: func(k string) string { return env[k] }})
	defer c.Close()
	b.say(b.session(1), "x")
	var a control.BuildAnswer
	if _, err := c.Call(t.Context(), control.Build, control.BuildRequest{Source: b.session(1)}, &a); err != nil || !strings.HasPrefix(a.Dir, env["HANDOFFS_ROOT"]) {
		t.Errorf("%v %+v", err, a)
	}
	if err := b.signal(os.Interrupt); err != nil {
		t.Error(err)
	}
}
