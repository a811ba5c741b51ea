// Package daemon is the wiring of handoffd and the order in which it starts
// and ends: lock, signals, logger, state, workers, the old socket removed
// because the lock is held, listening, ready, one select. What it is made of
// is in the packages below it. It never parses a command line and never exits
// the process.
package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"handoffd/configs"
	"handoffd/daemon/control"
	"handoffd/daemon/event"
	"handoffd/daemon/logging"
	"handoffd/daemon/server"
	"handoffd/daemon/socket"
	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
	"handoffd/watch"
)

// Config is what a main knows.
type Config struct {
	// Input says where the configuration is; it is read again on reload.
	Input  configs.DaemonInput
	Socket string // --socket, "" for the usual place
	// AllowRoot lets the daemon run as root.
	AllowRoot bool
	// Formats are the known transcript formats.
	Formats []harness.Format
	// Stderr gets the log unless the configuration names a file.
	Stderr io.Writer
	Color  bool

	// The rest is for the demonstration and for tests; zero is the usual.

	// Watch makes the watcher.
	Watch func(report func(watch.RootStatus)) watch.Source
	// Signals takes the place of the process's signals.
	Signals <-chan os.Signal
	// Load takes the place of configs.LoadDaemon.
	Load func() (configs.Daemon, error)
	// Notify takes the place of the message to the service manager.
	Notify func(state string)
	// Emit is told of every event as well.
	Emit func(control.Event)
}

const (
	// drainBudget is how long the first signal lets captures go on.
	drainBudget = 10 * time.Second
	// serveBudget is how long answers may still go out after that.
	serveBudget = time.Second
	// monitorEvery is how often the state is held against the one before.
	monitorEvery = time.Second
)

// Daemon is a running daemon.
type Daemon struct {
	conf    Config
	log     *slog.Logger
	level   *slog.LevelVar
	logFile *logging.Rotated // nil when the log goes to stderr
	store   store.Store
	socket  string
	started time.Time
	events  event.Ring
	metrics http.Handler

	stop    chan struct{} // closed by the verb stop
	stopped sync.Once
	reloads chan reload

	// retired are the generations that a reload replaced and that still
	// capture; they and the last one end at once when patience does.
	retired   sync.WaitGroup
	patience  context.Context
	impatient context.CancelFunc

	mu      sync.RWMutex // guards what follows
	present *generation
	broken  error             // of the last reload
	known   map[string]string // kind and text of each reason
}

// reload is a request to read the configuration again.
type reload struct{ done chan error }

// Run runs a daemon until it is told to end. The error is fault.Config or
// fault.Usage when it may not start, fault.Locked when another one runs, and
// says what was left undone when it could not end in order.
func Run(ctx context.Context, conf Config) error {
	if conf.Load == nil {
		conf.Load = func() (configs.Daemon, error) { return configs.LoadDaemon(conf.Input) }
	}
	if conf.Notify == nil {
		conf.Notify = func(state string) { _, _ = systemd.SdNotify(false, state) }
	}
	if !conf.AllowRoot && os.Geteuid() == 0 {
		return fault.New(fault.Usage, "handoffd does not run as root").
			WithHint("run it as the user whose sessions it captures; --allow-root insists")
	}
	settings, err := conf.Load()
	if err != nil {
		return err
	}
	if err := supported(settings); err != nil {
		return err
	}
	path, err := socket.Path(conf.Socket, conf.Input.Getenv, settings.Socket)
	if err != nil {
		return err
	}
	held, err := acquire(ctx, settings.Store, path)
	if errors.Is(err, context.Canceled) {
		return nil // told to end before it began
	}
	if err != nil {
		return err
	}
	defer held.release()

	signals := conf.Signals
	if signals == nil {
		c := make(chan os.Signal, 4)
		signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer signal.Stop(c)
		signals = c
	}
	d := &Daemon{
		conf: conf, store: store.Store{Root: settings.Store}, socket: path, started: time.Now(), level: new(slog.LevelVar),
		stop: make(chan struct{}), reloads: make(chan reload), known: map[string]string{},
	}
	d.patience, d.impatient = context.WithCancel(context.Background())
	defer d.impatient()
	if err := d.openLog(settings); err != nil {
		return err
	}
	defer d.closeLog()
	d.metrics = d.newMetrics()

	d.present = d.newGeneration(settings, nil)
	d.present.start()
	listener, err := socket.Listen(path)
	if err != nil {
		d.present.abandon()
		return err
	}
	err = d.serve(ctx, listener, signals)
	if err != nil {
		d.log.Error("ended out of order", logging.Err, err)
	} else {
		d.log.Info("ended")
	}
	return err
}

// serve answers and waits for what ends the daemon.
func (d *Daemon) serve(ctx context.Context, listener *socket.Listener, signals <-chan os.Signal) error {
	handler := server.New(server.Config{
		Program: "handoffd", Store: d.store, Builder: d.builder, DaemonSettings: d.settings, Daemon: d, Log: d.log,
		Settings: configs.Resolved{Root: d.store.Root, RootSource: configs.RootFlag, Schema: configs.StoreSchemaFile, LinkingEnabled: true},
	})
	h := handler.HTTPServer()
	h.ErrorLog = slog.NewLogLogger(d.log.Handler(), slog.LevelDebug)
	// Answers that wait, and streams, end with the daemon.
	base, endAnswers := context.WithCancel(context.WithoutCancel(ctx))
	defer endAnswers()
	h.BaseContext = func(net.Listener) context.Context { return base }
	door := openDoor(d.socket, h, listener, d.log)

	d.conf.Notify(systemd.SdNotifyReady)
	d.log.Info("ready", logging.Version, control.ThisRelease().Version, logging.Socket, d.socket, "store", d.store.Root, logging.PID, os.Getpid())
	cause := d.loop(ctx, signals, door)

	d.conf.Notify(systemd.SdNotifyStopping)
	d.log.Info("ending", "cause", cause)
	err := d.drain(signals)
	endAnswers()
	closing, cancel := context.WithTimeout(context.Background(), serveBudget)
	defer cancel()
	if h.Shutdown(closing) != nil {
		_ = h.Close()
	}
	if served := door.close(); err == nil && served != nil && !errors.Is(served, http.ErrServerClosed) {
		err = fault.New(fault.Internal, "serve the socket: %w", served)
	}
	return err
}

// loop is the one select. It returns why the daemon ends.
func (d *Daemon) loop(ctx context.Context, signals <-chan os.Signal, door *door) string {
	tend := time.NewTicker(tendEvery)
	defer tend.Stop()
	monitor := time.NewTicker(monitorEvery)
	defer monitor.Stop()
	var watchdog <-chan time.Time
	if every, err := systemd.SdWatchdogEnabled(false); err == nil && every > 0 {
		t := time.NewTicker(every / 2)
		defer t.Stop()
		watchdog = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return "context"
		case <-d.stop:
			return "stop"
		case err := <-door.failed:
			door.failed <- err
			return "server"
		case s := <-signals:
			if s != syscall.SIGHUP {
				return s.String()
			}
			_ = d.apply()
		case r := <-d.reloads:
			r.done <- d.apply()
		case <-tend.C:
			door.tend()
		case <-monitor.C:
			d.compare()
		case <-watchdog:
			d.conf.Notify(systemd.SdNotifyWatchdog)
		}
	}
}

// drain captures what changed, within the budget or until a second signal.
func (d *Daemon) drain(signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(d.patience, drainBudget)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := d.current().end(ctx)
		d.retired.Wait()
		done <- err
	}()
	for {
		select {
		case err := <-done:
			return err
		case s := <-signals:
			if s == syscall.SIGHUP {
				continue
			}
			d.log.Warn("not waiting any longer", logging.Signal, s.String())
			d.impatient()
			return <-done
		}
	}
}

func (d *Daemon) current() *generation {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.present
}

func (d *Daemon) builder() *pipeline.Builder        { return d.current().builder }
func (d *Daemon) settings() (configs.Daemon, error) { return d.current().settings, nil }
