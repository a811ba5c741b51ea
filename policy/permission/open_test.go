package permission

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"handoffd/engine/fault"
)

func TestOpenRead(t *testing.T) {
	y := newYard(t)
	y.link("../private", "home/ws/out")
	y.link("file", "home/ws/in")
	s := y.scope()
	for target, want := range map[string]string{
		"file": "in the workspace", "in": "in the workspace", "../ws/file": "in the workspace",
		"out": "DENIED", "../private": "DENIED", y.path("outside/file"): "DENIED",
		"none": "error", ".": "error", "file/x": "error",
	} {
		f, d, err := s.OpenRead(R0, target)
		got := string(d.Verdict)
		switch {
		case err != nil:
			got = "error"
			if !d.Allowed() {
				t.Errorf("%s: an error with %+v", target, d)
			}
		case f != nil:
			raw, err := io.ReadAll(f)
			if err != nil || !d.Allowed() {
				t.Errorf("%s: %v, %+v", target, err, d)
			}
			got = string(raw)
		}
		if f != nil {
			_ = f.Close()
		}
		if got != want {
			t.Errorf("%s: %s (%v), want %s", target, got, err, want)
		}
	}
}

// However a path is changed while it is opened, no byte from outside is ever
// read: the window between judging and opening is closed.
func TestNoWindow(t *testing.T) {
	y := newYard(t)
	y.write("home/ws/d/file", "inside")
	y.write("outside/d/file", "OUTSIDE")
	y.link("d", "home/ws/link")
	s := y.scope()
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Add(2)
	go func() { // a link, now here, now there
		defer swaps.Done()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			target := "d"
			if i%2 == 0 {
				target = y.path("outside/d")
			}
			next := y.path("home/ws/next")
			_ = os.Symlink(target, next)
			_ = os.Rename(next, y.path("home/ws/link"))
		}
	}()
	go func() { // a directory that becomes a link and a directory again
		defer swaps.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(y.path("home/ws/d"), y.path("home/ws/d2"))
			_ = os.Symlink(y.path("outside/d"), y.path("home/ws/d"))
			_ = os.Remove(y.path("home/ws/d"))
			_ = os.Rename(y.path("home/ws/d2"), y.path("home/ws/d"))
		}
	}()
	read := 0
	for range 1500 {
		for _, target := range []string{"link/file", "d/file"} {
			f, _, err := s.OpenRead(R0, target)
			if err != nil || f == nil {
				continue
			}
			raw, err := io.ReadAll(f)
			_ = f.Close()
			if err == nil && string(raw) != "inside" {
				t.Errorf("%s gave %q", target, raw)
			}
			read++
		}
	}
	close(stop)
	swaps.Wait()
	if read == 0 {
		t.Error("nothing could be read in the meantime: the test says nothing")
	}
}

func TestGuard(t *testing.T) {
	y := newYard(t)
	broker := y.path("home/bin/broker")
	y.write("home/bin/broker", "")
	y.write("home/ws/tool", "")
	y.write("home/.claude/settings.json", "{}")
	settings := y.path("home/.claude/settings.json")
	s := y.scope()
	var seen []string
	observe := func(op, target string, d Decision) error {
		seen = append(seen, op+" "+filepath.Base(target)+" "+string(d.Verdict))
		return nil
	}
	g := s.Guard(observe)
	for _, c := range []struct {
		what string
		err  error
		kind fault.Kind // Internal is none
	}{
		{"read in the workspace", g.Read("file"), fault.Internal},
		{"write in the workspace", g.Write("new"), fault.Internal},
		{"run in the workspace", g.Execute("tool"), fault.Internal},
		{"read a private file", g.Read(y.path("home/private")), fault.Denied},
		{"write the settings", g.Write(settings), fault.Denied},
		{"run a program at home", g.Execute(broker), fault.Denied},
		{"connect", g.Connect("example.org"), fault.NeedsAuth},
		{"delete", g.Allow("delete", R3, "file"), fault.NeedsAuth},
		{"an unknown risk", g.Allow("x", "R9", "file"), fault.Denied},
	} {
		if (c.err == nil) != (c.kind == fault.Internal) || c.err != nil && !fault.Is(c.err, c.kind) {
			t.Errorf("%s: %v", c.what, c.err)
		}
	}
	if len(seen) != 9 || seen[0] != "read file ALLOWED" || seen[4] != "write settings.json DENIED" {
		t.Errorf("%q", seen)
	}
	// Named on the command line, the same is normal use.
	g = s.Guard(nil, broker, settings, "example.org")
	for what, err := range map[string]error{
		"write the settings": g.Write(settings), "run a program at home": g.Execute(broker), "connect": g.Connect("example.org"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := g.Connect("example.com"); !fault.Is(err, fault.NeedsAuth) {
		t.Errorf("another host: %v", err)
	}
	if err := g.Read(y.path("home/private")); !fault.Is(err, fault.Denied) {
		t.Errorf("what was not named: %v", err)
	}
	// What cannot be recorded is not done.
	full := fault.New(fault.Internal, "the disk is full")
	if err := s.Guard(func(string, string, Decision) error { return full }).Read("file"); err != full {
		t.Errorf("unrecorded: %v", err)
	}
}

func TestGuardRunsTheSystemsPrograms(t *testing.T) {
	s := newYard(t).scope()
	system := s.Places(s.Policy.SystemReadOnlyRoots)
	if len(system) == 0 {
		t.Skip("no system directory of the built-in policy exists here")
	}
	program := filepath.Join(system[0], "bin", "program")
	if err := s.Guard(nil).Execute(program); err != nil {
		t.Error(err)
	}
	if err := s.Guard(nil).Write(program); !fault.Is(err, fault.Denied) {
		t.Error(err)
	}
	s.Policy.Grants = map[Level]string{}
	if err := s.Guard(nil).Execute(program); !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "unknown grant") {
		t.Error(err)
	}
}
