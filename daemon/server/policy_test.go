package server

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"handoffd/daemon/control"
)

// A daemon runs nothing for whoever reaches its socket: it refuses every verb
// of the gateway and leaves no trace.
func TestDaemonExecutesNothing(t *testing.T) {
	b := newBench(t, nil)
	t.Chdir(b.dir)
	for verb, q := range map[string]any{
		control.RuntimeEvaluate: control.EvaluateRequest{Risk: "R0", Target: "x"},
		control.RuntimeRun:      control.RunRequest{Risk: "R1", Op: "spawn", Args: "-e 1"},
		control.RuntimePolicy:   control.PolicyRequest{},
		control.RuntimeJob:      control.JobRequest{Session: "s", Steps: 2},
		control.RuntimeResume:   control.JobRequest{Session: "s", Steps: 2},
		control.RuntimeStatus:   control.JobStatusRequest{Session: "s"},
	} {
		var p control.Problem
		if w := b.post(verb, q, &p); w.Code != http.StatusForbidden || p.Kind != "denied" || p.Exit != 3 {
			t.Errorf("%s: %d %+v", verb, w.Code, p)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, "*")); len(left) != 0 {
		t.Errorf("%v", left)
	}
}

// The answers on the wire, in the process of the user.
func TestGateway(t *testing.T) {
	b := newBench(t, nil)
	ws := filepath.Join(b.dir, "home", "ws")
	if err := os.MkdirAll(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "file"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.s.Gateway = &Gateway{CWD: ws, Home: filepath.Join(b.dir, "home"), Getenv: func(string) string { return "" }}
	for _, c := range []struct {
		what, verb string
		q          any
		status     int
		exit       int
	}{
		{"allowed", control.RuntimeEvaluate, control.EvaluateRequest{Risk: "R0", Target: "file"}, 200, 0},
		{"denied", control.RuntimeEvaluate, control.EvaluateRequest{Risk: "R0", Target: ".."}, 403, 3},
		{"needs an authorization", control.RuntimeEvaluate, control.EvaluateRequest{Risk: "R2"}, 403, 4},
		{"no risk", control.RuntimeEvaluate, control.EvaluateRequest{}, 400, 2},
		{"no such policy", control.RuntimeEvaluate, control.EvaluateRequest{Risk: "R0", Policy: "none.json"}, 400, 2},
		{"read", control.RuntimeRun, control.RunRequest{Risk: "R0", Op: "read", Target: "file"}, 200, 0},
		{"read nothing", control.RuntimeRun, control.RunRequest{Risk: "R0", Op: "read", Target: "none"}, 500, 1},
		{"read what?", control.RuntimeRun, control.RunRequest{Risk: "R0", Op: "read"}, 400, 2},
		{"read with arguments", control.RuntimeRun, control.RunRequest{Risk: "R0", Op: "read", Target: "file", Args: "x"}, 400, 2},
		{"spawn what?", control.RuntimeRun, control.RunRequest{Risk: "R1", Op: "spawn"}, 400, 2},
		{"spawn on a target", control.RuntimeRun, control.RunRequest{Risk: "R1", Op: "spawn", Args: "x", Target: "file"}, 400, 2},
		{"spawn unallowed", control.RuntimeRun, control.RunRequest{Risk: "R3", Op: "spawn", Args: "x"}, 403, 4},
		{"spawn without a program", control.RuntimeRun, control.RunRequest{Risk: "R1", Op: "spawn", Args: "x"}, 500, 1},
		{"no such op", control.RuntimeRun, control.RunRequest{Risk: "R1", Op: "write", Target: "file"}, 400, 2},
		{"policy", control.RuntimePolicy, control.PolicyRequest{}, 200, 0},
		{"job", control.RuntimeJob, control.JobRequest{Session: "s", Steps: 3, FailAt: 2}, 200, 0},
		{"job again", control.RuntimeJob, control.JobRequest{Session: "s", Steps: 3}, 400, 2},
		{"job of no steps", control.RuntimeJob, control.JobRequest{Session: "t"}, 400, 2},
		{"job killed too early", control.RuntimeJob, control.JobRequest{Session: "t", Steps: 3, FailAt: 1}, 400, 2},
		{"job killed too late", control.RuntimeJob, control.JobRequest{Session: "t", Steps: 3, FailAt: 4}, 400, 2},
		{"job of nobody", control.RuntimeJob, control.JobRequest{Steps: 3}, 400, 2},
		{"status", control.RuntimeStatus, control.JobStatusRequest{Session: "s"}, 200, 0},
		{"status of none", control.RuntimeStatus, control.JobStatusRequest{Session: "t"}, 404, 4},
		{"status of nobody", control.RuntimeStatus, control.JobStatusRequest{}, 400, 2},
		{"resume", control.RuntimeResume, control.JobRequest{Session: "s", Steps: 3}, 200, 0},
		{"resume what is done", control.RuntimeResume, control.JobRequest{Session: "s", Steps: 3}, 200, 0},
		{"resume none", control.RuntimeResume, control.JobRequest{Session: "t", Steps: 3}, 404, 4},
		{"resume and be killed", control.RuntimeResume, control.JobRequest{Session: "s", Steps: 3, FailAt: 2}, 400, 2},
	} {
		var p control.Problem
		if w := b.post(c.verb, c.q, &p); w.Code != c.status || p.Exit != c.exit {
			t.Errorf("%s: %d %+v %s", c.what, w.Code, p, w.Body)
		}
	}
}
