// Package demo shows the daemon at work on a bundled transcript that grows
// record by record, in a home and a store of its own. It touches nothing of
// the user's, reads no configuration, and leaves nothing behind unless it is
// asked to.
package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"handoffd/configs"
	"handoffd/daemon"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/sanitize"
	"handoffd/engine/store"
)

// sample is a small session of Claude Code: a prompt, a thought, tool calls of
// which one fails, a prompt that was queued meanwhile, an answer.
//
//go:embed sample.jsonl
var sample []byte

// Options says how to show it.
type Options struct {
	Out     io.Writer
	Formats []harness.Format
	// Pace is the time between two records; 0 is the usual.
	Pace time.Duration
	// Keep leaves the home and the store behind and says where they are.
	Keep bool
	// Signals takes the place of the process's signals.
	Signals chan os.Signal
}

const (
	pace = 700 * time.Millisecond
	// headLines is how much of the brief is shown at the end.
	headLines = 24
	// settleWait is how long the end waits for the last capture.
	settleWait = 15 * time.Second
)

// Run shows the daemon until the sample is captured or a signal comes.
func Run(ctx context.Context, o Options) (err error) {
	if o.Pace == 0 {
		o.Pace = pace
	}
	if o.Signals == nil {
		o.Signals = make(chan os.Signal, 4)
		signal.Notify(o.Signals, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(o.Signals)
	}
	dir, err := os.MkdirTemp("", "handoffd-demo-")
	if err != nil {
		return fault.New(fault.Internal, "make a directory for the demonstration: %w", err)
	}
	if !o.Keep {
		defer os.RemoveAll(dir)
	}
	// A link in the path of the temporary directory would be a second name.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fault.New(fault.Internal, "find the demonstration's directory: %w", err)
	}
	s := &show{Options: o, dir: dir, captured: make(chan control.Event, 64)}
	// The path of a socket has little room, and temporary directories can be
	// deep.
	if s.run, err = runDir(dir); err != nil {
		return err
	}
	defer os.RemoveAll(s.run)
	return s.play(ctx)
}

// maxRunDir leaves room for the socket's name on every system.
const maxRunDir = 80

// runDir makes the directory of the socket: in dir, or where that is too long
// in the system's own directory for temporary files.
func runDir(dir string) (string, error) {
	run := filepath.Join(dir, "run")
	if len(run) <= maxRunDir {
		return run, nil
	}
	run, err := os.MkdirTemp("/tmp", "handoffd-demo-")
	if err != nil {
		return "", fault.New(fault.Internal, "make a directory for the demonstration's socket: %w", err)
	}
	return run, nil
}

// show is one demonstration.
type show struct {
	Options
	dir      string
	run      string // directory of the socket
	captured chan control.Event
}

func (s *show) transcript() string {
	return filepath.Join(s.dir, "home", ".claude", "projects", "-home-ada-greeter", "5d0f3a52-7c1e-4b7a-9a64-0e6d1c2b9f11.jsonl")
}

func (s *show) storeRoot() string { return filepath.Join(s.dir, "store") }

func (s *show) play(ctx context.Context) error {
	path := s.transcript()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.New(fault.Internal, "make the demonstration's home: %w", err)
	}
	s.say("handoffd demonstration: an agent's transcript grows, the daemon captures it")
	s.say("watching %s", filepath.Join(s.dir, "home", ".claude", "projects"))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { ended <- s.daemon(ctx) })
	last, interrupted, err := s.write(ctx, path, ended)
	cancel()
	if err == nil {
		err = <-ended
	}
	if err != nil {
		return err
	}
	if interrupted {
		s.say("interrupted; the daemon ended in order")
	}
	if last.Dir != "" {
		s.brief(last)
	}
	if s.Keep {
		s.say("kept in %s", s.dir)
	}
	return nil
}

// daemon runs the real daemon on the demonstration's own home and store.
func (s *show) daemon(ctx context.Context) error {
	home := filepath.Join(s.dir, "home")
	return daemon.Run(ctx, daemon.Config{
		Input:     configs.DaemonInput{HomeDir: home, CWD: s.dir, Getenv: func(string) string { return "" }},
		Socket:    filepath.Join(s.run, "handoffd.sock"),
		AllowRoot: true, Formats: s.Formats, Stderr: io.Discard,
		Signals: make(chan os.Signal), Notify: func(string) {},
		Load: func() (configs.Daemon, error) {
			c, err := configs.LoadDaemon(configs.DaemonInput{
				HomeDir: home, CWD: s.dir, RootFlag: s.storeRoot(), Getenv: func(string) string { return "" },
			})
			// Every record is to be seen by itself.
			c.Quiet, c.MinFresh, c.Sweep = s.Pace/4, 0, 10*time.Second
			return c, err
		},
		Emit: func(e control.Event) {
			select {
			case s.captured <- e:
			default:
			}
		},
	})
}

// write appends the records one by one and tells of what is captured
// meanwhile. It returns the last capture.
func (s *show) write(ctx context.Context, path string, ended chan error) (last control.Event, interrupted bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return last, false, fault.New(fault.Internal, "write the transcript: %w", err)
	}
	defer f.Close()
	tick := time.NewTicker(s.Pace)
	defer tick.Stop()
	lines := bytes.SplitAfter(bytes.TrimSuffix(sample, []byte("\n")), []byte("\n"))
	enough := time.NewTimer(time.Hour)
	defer enough.Stop()
	for {
		select {
		case e := <-s.captured:
			if e.Type != control.EventCaptured {
				break
			}
			last = e
			s.say("captured %2d turns (%d new), revision %d", e.Turns, e.New, e.Revision)
			if len(lines) == 0 {
				enough.Reset(4 * s.Pace)
			}
		case <-tick.C:
			if len(lines) == 0 {
				break
			}
			line := bytes.TrimSuffix(lines[0], []byte("\n"))
			if lines = lines[1:]; len(lines) == 0 {
				enough.Reset(settleWait)
			}
			if _, err := f.Write(append(bytes.Clone(line), '\n')); err != nil {
				return last, false, fault.New(fault.Internal, "write the transcript: %w", err)
			}
		case <-enough.C:
			return last, false, nil
		case <-s.Signals:
			return last, true, nil
		case err := <-ended:
			ended <- nil
			if err == nil {
				err = fault.New(fault.Internal, "the daemon ended early")
			}
			return last, false, err
		case <-ctx.Done():
			return last, true, nil
		}
	}
}

// brief shows the start of what came of it.
func (s *show) brief(e control.Event) {
	path := filepath.Join(e.Dir, store.BriefName)
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	s.say("")
	s.say("the handoff: %s", path)
	s.say("")
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i, l := range lines {
		if i == headLines {
			s.say("  ... %d more lines", len(lines)-i)
			break
		}
		s.say("  %s", l)
	}
	if !s.Keep {
		s.say("")
		s.say("all of it is removed now; --keep leaves it")
	}
}

func (s *show) say(format string, args ...any) {
	fmt.Fprintln(s.Out, sanitize.Line(fmt.Sprintf(format, args...)))
}
