//go:build unix

package execute

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"handoffd/engine/fault"
	"handoffd/engine/seal"
	"handoffd/policy/permission"
)

func shell(t *testing.T, change func(*permission.Policy)) *Runner {
	return newRunner(t, func(p *permission.Policy) {
		p.Program = "/bin/sh"
		if change != nil {
			change(p)
		}
	})
}

func spawned(t *testing.T, r *Runner, risk permission.Risk, script string) (Spawn, map[string]any) {
	t.Helper()
	out, err := r.Spawn(t.Context(), risk, quoted([]string{"-c", script}))
	if err != nil {
		t.Fatal(err)
	}
	return out, decode(t, filepath.Join(r.Scope.Workspace, out.Record))
}

func TestSpawn(t *testing.T) {
	r := shell(t, nil)
	for _, c := range []struct {
		script string
		exit   any
		signal any
		stdout string
		stderr string
	}{
		{`exit 0`, 0.0, nil, "", ""},
		{`exit 7`, 7.0, nil, "", ""},
		{`exit 137`, 137.0, nil, "", ""},
		{`kill -TERM $$`, nil, "SIGTERM", "", ""},
		{`printf '\377\376\000x'; printf err >&2; exit 1`, 1.0, nil, "\xff\xfe\x00x", "err"},
		{`pwd`, 0.0, nil, r.Scope.Workspace + "\n", ""},
		{`cat`, 0.0, nil, "", ""}, // no input
	} {
		out, rec := spawned(t, r, "R1", c.script)
		if !out.Executed || rec["exit_code"] != c.exit || rec["signal"] != c.signal || rec["timed_out"] != false {
			t.Errorf("%s: %+v, %v", c.script, out, rec)
		}
		for name, text := range map[string]string{"stdout": c.stdout, "stderr": c.stderr} {
			if rec[name+"_bytes"] != float64(len(text)) || rec[name+"_sha256"] != seal.Sum([]byte(text)) {
				t.Errorf("%s: %s %v %v", c.script, name, rec[name+"_bytes"], rec[name+"_sha256"])
			}
		}
	}
	out, _ := spawned(t, r, "R1", "exit 0")
	order := "id enforced_before_execution op risk verdict reason executed command args started ended exit_code signal " +
		"stdout_sha256 stderr_sha256 stdout_bytes stderr_bytes timed_out output_limited program confined_by"
	if got := keys(t, filepath.Join(r.Scope.Workspace, out.Record)); !strings.HasPrefix(got, order) {
		t.Error(got)
	}
}

func TestSpawnRefused(t *testing.T) {
	r := shell(t, nil)
	for risk, verdict := range map[permission.Risk]permission.Verdict{"R2": permission.NeedsAuth, "R4": permission.NeedsAuth, "R9": permission.Denied} {
		out, rec := spawned(t, r, risk, "echo > ran")
		if out.Executed || out.Decision.Verdict != verdict || rec["executed"] != false || rec["args"] != quoted([]string{"-c", "echo > ran"}) {
			t.Errorf("%s: %+v, %v", risk, out, rec)
		}
	}
	r.Scope.Policy.DeniedRoots = []string{"/bin/sh"}
	if out, _ := spawned(t, r, "R1", "echo > ran"); out.Executed || out.Decision.Verdict != permission.Denied {
		t.Errorf("a denied program ran: %+v", out)
	}
	if _, err := os.Stat(filepath.Join(r.Scope.Workspace, "ran")); err == nil {
		t.Error("it ran")
	}
	if _, err := r.Spawn(t.Context(), "R1", `"`); !fault.Is(err, fault.Usage) {
		t.Error(err)
	}
}

func TestNoProgram(t *testing.T) {
	for _, program := range []string{"no-such-program-at-all", "/no/such/program", "./none", "/etc", "./file"} {
		r := newRunner(t, func(p *permission.Policy) { p.Program = program })
		if err := os.WriteFile(filepath.Join(r.Scope.Workspace, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := r.Spawn(t.Context(), "R1", "x")
		if err != nil || out.Executed || out.Err == nil || !strings.Contains(out.Err.Error(), program) {
			t.Errorf("%s: %+v, %v", program, out, err)
		}
		if rec := records(t, r)[0]; rec["executed"] != false || rec["execution_error"] == nil {
			t.Errorf("%s: %v", program, rec)
		}
	}
	// A program is looked for where the user has programs, never in whatever
	// directory we are in.
	r := newRunner(t, func(p *permission.Policy) { p.Program = "planted" })
	if err := os.WriteFile(filepath.Join(r.Scope.Workspace, "planted"), []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(r.Scope.Workspace)
	r.Path = ":.:relative"
	if out, err := r.Spawn(t.Context(), "R1", "x"); err != nil || out.Executed {
		t.Errorf("%+v, %v", out, err)
	}
	r.Path = r.Scope.Workspace
	if out, err := r.Spawn(t.Context(), "R1", "x"); err != nil || !out.Executed {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "leak")
	t.Setenv("NODE_OPTIONS", "--require=evil")
	t.Setenv("LD_PRELOAD_X", "leak")
	r := shell(t, nil)
	_, _ = spawned(t, r, "R1", `env > seen; echo "$HOME" > home; [ -d "$TMPDIR" ] && echo x > "$TMPDIR/x" && echo works > tmp`)
	seen, err := os.ReadFile(filepath.Join(r.Scope.Workspace, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(seen)) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ", EnvExecution, "PWD", "SHLVL", "OLDPWD", "_":
		default:
			t.Errorf("a child sees %s", line)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(r.Scope.Workspace, "tmp")); err != nil || string(raw) != "works\n" {
		t.Errorf("the private directory: %q, %v", raw, err)
	}
	home, err := os.ReadFile(filepath.Join(r.Scope.Workspace, "home"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(strings.TrimSpace(string(home))); err == nil {
		t.Error("the private directory is left behind")
	}
}

// Much output is neither a time-out nor kept, and says so.
func TestOutputLimit(t *testing.T) {
	r := shell(t, func(p *permission.Policy) { p.MaxOutputBytes = 1000 })
	out, rec := spawned(t, r, "R1", `i=0; while [ $i -lt 5000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done; echo done >&2; exit 3`)
	if out.ExitCode == nil || *out.ExitCode != 3 || rec["timed_out"] != false || rec["output_limited"] != true || rec["stdout_bytes"] != 1000.0 {
		t.Errorf("%+v, %v", out, rec)
	}
	if text := strings.Repeat("0123456789012345678901234567890123456789\n", 30)[:1000]; rec["stdout_sha256"] != seal.Sum([]byte(text)) {
		t.Errorf("%v", rec["stdout_sha256"])
	}
	if rec["stderr_bytes"] != 5.0 {
		t.Errorf("%v", rec["stderr_bytes"])
	}
	r = shell(t, nil)
	if _, rec := spawned(t, r, "R1", `head -c 3000000 /dev/zero`); rec["stdout_bytes"] != 3000000.0 || rec["output_limited"] != false || rec["exit_code"] != 0.0 {
		t.Errorf("3 MB: %v", rec)
	}
}

// alive reports whether a process runs that wrote its number to a file.
func alive(t *testing.T, path string) bool {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return unix.Kill(pid, 0) == nil
}

// With the child its tree ends: children, those in the background, those in a
// session of their own, those whose parents have gone.
func TestTheTreeEnds(t *testing.T) {
	away := `sh -c 'echo $$ > stray; exec sleep 300' & `
	if runtime.GOOS == "linux" {
		away = `setsid sh -c 'setsid sh -c "echo \$\$ > stray; trap \"\" TERM HUP INT; sleep 300; sleep 300" & exit' & `
	}
	wait := `while [ ! -s stray ]; do :; done; `
	for _, c := range []struct {
		what, script string
		timedOut     bool
	}{
		{"too slow", away + wait + `sleep 300`, true},
		{"a parent that ends first", away + wait + `exit 0`, false},
		{"one that stops itself", away + wait + `kill -STOP $$`, true},
	} {
		r := shell(t, nil)
		r.Timeout = 1500 * time.Millisecond
		out, rec := spawned(t, r, "R1", c.script)
		if out.TimedOut != c.timedOut || rec["timed_out"] != c.timedOut {
			t.Errorf("%s: %+v, %v", c.what, out, rec)
		}
		if c.timedOut && (out.ExitCode != nil || out.Signal != "SIGKILL") {
			t.Errorf("%s: %+v", c.what, out)
		}
		if alive(t, filepath.Join(r.Scope.Workspace, "stray")) {
			t.Errorf("%s: something of the tree is alive", c.what)
		}
	}
}

// Who interrupts the caller ends the child, and it is on record.
func TestInterrupted(t *testing.T) {
	r := shell(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(r.Scope.Workspace, "up")); err == nil {
				cancel()
				return
			}
			runtime.Gosched()
		}
	}()
	_, err := r.Spawn(ctx, "R1", `-c "echo > up; sleep 300"`)
	if err != context.Canceled {
		t.Error(err)
	}
	if rec := records(t, r)[0]; rec["timed_out"] != false || rec["signal"] != "SIGKILL" {
		t.Errorf("%v", rec)
	}
}

// The record is there while the child runs: a caller that is killed cannot make
// it look as if nothing had been run.
func TestRecordedBeforeItRuns(t *testing.T) {
	r := shell(t, nil)
	_, _ = spawned(t, r, "R1", fmt.Sprintf(`cat %s/executions/*.json > copy`, r.Scope.StateDir))
	names, _ := filepath.Glob(filepath.Join(r.Scope.Workspace, "copy"))
	if len(names) != 1 {
		t.Fatal("no record was there")
	}
	raw, err := os.ReadFile(names[0])
	if err != nil || !strings.Contains(string(raw), `"executed": true`) || !strings.Contains(string(raw), `"exit_code": null`) {
		t.Errorf("%s, %v", raw, err)
	}
}
