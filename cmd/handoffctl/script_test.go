package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"handoffd/engine/safefile"
	"handoffd/engine/store"
)

// patience bounds every wait of a script.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"handoffctl": main,
		"rawsock":    rawsock,
		"holdlock":   holdlock,
	})
}

// TestScript runs both programs, as a user would.
func TestScript(t *testing.T) {
	bin := t.TempDir()
	daemon := filepath.Join(bin, "handoffd")
	if out, err := exec.Command("go", "build", "-o", daemon, "handoffd/cmd/handoffd").CombinedOutput(); err != nil {
		t.Fatalf("build handoffd: %v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			// The socket's default place must not be the developer's own.
			run, home := filepath.Join(e.WorkDir, "run"), filepath.Join(e.WorkDir, "home")
			for _, dir := range []string{run, home} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					return err
				}
			}
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", home)
			e.Setenv("XDG_RUNTIME_DIR", run)
			e.Setenv("SOCK", filepath.Join(run, "handoff", "handoffd.sock"))
			e.Setenv("SESSIONS", filepath.Join(home, ".claude", "projects", "-home-ada-greeter"))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "superuser" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"until": until, "exits": exitStatus, "append": appendLines, "sample": sample,
			"lockof": lockOf, "database": database,
		},
	})
}

// until runs a command until it succeeds; "! until" until it fails.
func until(ts *testscript.TestScript, neg bool, args []string) {
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ts.Exec(args[0], args[1:]...)
		if (err != nil) == neg {
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("waited in vain for %v: %v", args, err)
		case <-tick.C:
		}
	}
}

// exitStatus runs a command and holds its exit status: exits STATUS COMMAND...
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("exits says which status; it cannot be negated")
	}
	status := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || status != want {
		ts.Fatalf("exit status %d, want %s", status, args[0])
	}
}

// sample writes lines FROM to TO (counted from 1) of the bundled transcript:
// sample FILE FROM TO. It appends if the file exists.
func sample(ts *testscript.TestScript, _ bool, args []string) {
	raw, err := os.ReadFile(filepath.Join(sampleDir, "sample.jsonl"))
	ts.Check(err)
	var from, to int
	_, err = fmt.Sscan(args[1]+" "+args[2], &from, &to)
	ts.Check(err)
	lines := bytes.SplitAfter(raw, []byte("\n"))
	write(ts, args[0], bytes.Join(lines[from-1:to], nil))
}

var sampleDir = func() string {
	wd, _ := os.Getwd()
	return filepath.Join(wd, "..", "..", "daemon", "demo")
}()

// database runs a script of SQL as the owner of a database, which is made if
// there is none: database FILE SCRIPT.
func database(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0])+"?_pragma=journal_mode(WAL)")
	ts.Check(err)
	_, err = db.Exec(ts.ReadFile(args[1]))
	ts.Check(err)
	ts.Check(db.Close())
}

// lockOf sets LOCK to the lock file of a session of the default store.
func lockOf(ts *testscript.TestScript, _ bool, args []string) {
	s := store.Store{Root: filepath.Join(ts.Getenv("HOME"), ".local", "share", "handoff")}
	ts.Setenv("LOCK", s.SessionLock(args[0]))
}

// appendLines appends a file to another: append TO FROM.
func appendLines(ts *testscript.TestScript, _ bool, args []string) {
	raw, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	write(ts, args[0], raw)
}

func write(ts *testscript.TestScript, name string, data []byte) {
	path := ts.MkAbs(name)
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	ts.Check(err)
	_, err = f.Write(data)
	ts.Check(err)
	ts.Check(f.Close())
}

// rawsock sends stdin to a Unix socket as it is and prints the answer up to
// the end of the connection.
func rawsock() {
	c, err := net.Dial("unix", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = io.Copy(c, os.Stdin)
	_, _ = io.Copy(os.Stdout, c)
}

// holdlock holds a lock file until it is killed, and says when it has it.
func holdlock() {
	lock, err := safefile.Acquire(context.Background(), os.Args[1], patience)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = os.WriteFile(os.Args[2], nil, 0o600)
	// Until it is killed. Waiting for nothing would be a deadlock, which ends
	// the process, and a lock that nobody knows can be collected.
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt)
	<-end
	runtime.KeepAlive(lock)
}
