package safefile_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
)

// TestMain lets the test binary hold a lock as another process.
func TestMain(m *testing.M) {
	if path := os.Getenv("SAFEFILE_HOLD"); path != "" {
		lock, err := safefile.Acquire(context.Background(), path, time.Second)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		// Until it is killed. Waiting for nothing would be a deadlock, which ends
		// the process, and a lock that nobody knows can be collected.
		end := make(chan os.Signal, 1)
		signal.Notify(end, os.Interrupt)
		<-end
		runtime.KeepAlive(lock)
	}
	os.Exit(m.Run())
}

// hold takes the lock in another process and returns how to kill it.
func hold(t *testing.T, path string) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SAFEFILE_HOLD="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	if _, err := out.Read(buf); err != nil || string(buf) != "held" {
		t.Fatalf("%q %v", buf, err)
	}
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
}

func TestLockBetweenProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks", "x.lock")
	kill := hold(t, path)
	_, err := safefile.Acquire(context.Background(), path, 0)
	if !fault.Is(err, fault.Locked) || safefile.Holder(path) == "" {
		t.Fatalf("%v, holder %q", err, safefile.Holder(path))
	}
	kill()
	l, err := safefile.Acquire(context.Background(), path, time.Second)
	if err != nil {
		t.Fatalf("a dead process still holds it: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestLockBetweenGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	var inside, worst atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 20 {
				l, err := safefile.Acquire(context.Background(), path, 30*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				worst.Store(max(worst.Load(), inside.Add(1)))
				inside.Add(-1)
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	if worst.Load() != 1 {
		t.Fatalf("%d holders at once", worst.Load())
	}
}

func TestLockOverSomethingElse(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	link := filepath.Join(dir, "link.lock")
	if err := os.Symlink(victim, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	for _, path := range []string{link, dir} {
		if _, err := safefile.Acquire(context.Background(), path, 0); err == nil {
			t.Errorf("%s is a lock", path)
		}
	}
	if _, err := os.Lstat(victim); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a lock followed a link")
	}
}

// TestReplaceFails makes each effect of a replacement fail: the old file stays
// whole, and no temporary is left.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := safefile.Replace(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	broken := errors.New("broken")
	for n := 1; ; n++ {
		count := 0
		undo := safefile.Intercept(func(op, _ string) error {
			if count++; count == n && op != "syncdir" {
				return broken
			}
			return nil
		})
		err := safefile.Replace(path, []byte("new"))
		undo()
		raw, readErr := os.ReadFile(path)
		if readErr != nil || string(raw) != "old" && string(raw) != "new" || err != nil && string(raw) != "old" {
			t.Fatalf("effect %d: %v, %q", n, err, raw)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Fatalf("effect %d: left behind %v", n, entries)
		}
		if err == nil {
			break
		}
	}
}

func TestOpenSource(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file.jsonl")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.jsonl")
	if err := os.Symlink(file, link); err == nil {
		f, real, err := safefile.OpenSource(link)
		if err != nil || filepath.Base(real) != "file.jsonl" {
			t.Errorf("%s %v", real, err)
		} else if err := f.Close(); err != nil {
			t.Error(err)
		}
		_ = os.Remove(file)
		if _, _, err := safefile.OpenSource(link); !fault.Is(err, fault.SourceMissing) {
			t.Errorf("dangling link: %v", err)
		}
	}
	if _, _, err := safefile.OpenSource(dir); !fault.Is(err, fault.SourceMissing) {
		t.Errorf("directory: %v", err)
	}
	if _, _, err := safefile.OpenSource(filepath.Join(dir, "none")); !fault.Is(err, fault.SourceMissing) {
		t.Errorf("missing: %v", err)
	}
}
