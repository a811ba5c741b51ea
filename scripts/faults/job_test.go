//go:build unix

package faults

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// envKills is how many kills a test makes; a few unless it says more.
	envKills     = "HANDOFF_KILLS"
	defaultKills = 12
	// steps is the size of the jobs, and window how long one is given at
	// most before it is killed: about what the whole job takes.
	steps  = 400
	window = 700 * time.Millisecond
)

// handoffctl builds the client once.
var handoffctl = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "handoffctl")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "handoffd/cmd/handoffctl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := handoffctl(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// yard is a workspace with its state directory.
type yard struct {
	t   *testing.T
	dir string
	bin string
}

func newYard(t *testing.T) yard {
	bin, err := handoffctl()
	if err != nil {
		t.Fatal(err)
	}
	return yard{t, t.TempDir(), bin}
}

func (y yard) command(args ...string) *exec.Cmd {
	cmd := exec.Command(y.bin, append([]string{"runtime"}, args...)...)
	cmd.Dir = y.dir
	cmd.Env = []string{"HOME=" + filepath.Join(y.dir, "home"), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// run runs a verb to its end and returns its exit status.
func (y yard) run(args ...string) (int, string) {
	out, err := y.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		y.t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

// killed runs a verb and kills it after a while; it reports false if the verb
// had ended before.
func (y yard) killed(after time.Duration, args ...string) bool {
	cmd := y.command(args...)
	if err := cmd.Start(); err != nil {
		y.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return true
		}
		if exit.ExitCode() != 0 {
			y.t.Fatalf("%v ended with %d", args, exit.ExitCode())
		}
	}
	return false
}

// found is what lies on the disk.
type found struct {
	exists, done bool
	seq, lines   int
	torn         bool
}

// look judges the files of a job by themselves, without the product: the seal,
// the steps, and the work log.
func (y yard) look(session string) (found, error) {
	var f found
	raw, err := os.ReadFile(filepath.Join(y.dir, ".agents-handoff", "checkpoints", session+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	var c struct {
		Seq     int
		Steps   []struct{ Seq int }
		Omitted int    `json:"steps_omitted"`
		Total   int    `json:"steps_total"`
		Sum     string `json:"checkpoint_sha256"`
		Done    bool   `json:"completed"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return f, fmt.Errorf("the checkpoint is no JSON: %w", err)
	}
	var body bytes.Buffer
	sealed := strings.Replace(string(raw), "  \"checkpoint_sha256\": \""+c.Sum+"\",\n", "", 1)
	sealed = strings.Replace(sealed, ",\n  \"checkpoint_sha256\": \""+c.Sum+"\"", "", 1)
	if err := json.Compact(&body, []byte(sealed)); err != nil {
		return f, err
	}
	if sum := sha256.Sum256(body.Bytes()); hex.EncodeToString(sum[:]) != c.Sum {
		return f, errors.New("the seal does not match")
	}
	if c.Total != steps || c.Omitted+len(c.Steps) != c.Seq || c.Done != (c.Seq == steps) && c.Done {
		return f, fmt.Errorf("step %d of %d with %d listed", c.Seq, c.Total, len(c.Steps))
	}
	f.exists, f.done, f.seq = true, c.Done, c.Seq
	log, err := os.ReadFile(filepath.Join(y.dir, ".agents-handoff", "jobs", session, "work.log"))
	if err != nil {
		return f, err
	}
	whole := strings.SplitAfter(string(log), "\n")
	f.torn = whole[len(whole)-1] != ""
	for i, line := range whole[:len(whole)-1] {
		if !strings.HasPrefix(line, fmt.Sprintf("step %d at ", i+1)) {
			return f, fmt.Errorf("line %d of the work log is %q", i+1, line)
		}
		f.lines++
	}
	if f.lines < f.seq || f.lines > f.seq+1 {
		return f, fmt.Errorf("%d lines for checkpoint %d", f.lines, f.seq)
	}
	return f, nil
}

// A job that is killed again and again has a whole checkpoint and a work log in
// step with it after every kill, and in the end did each step once, in order.
func TestKilledJobs(t *testing.T) {
	kills := defaultKills
	if v := os.Getenv(envKills); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q", envKills, v)
		}
		kills = n
	}
	seed := rand.Uint64()
	chance := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	y := newYard(t)
	count := strconv.Itoa(steps)
	var done, corrupt, ahead, torn, before, jobs int
	for done < kills {
		jobs++
		session := "job" + strconv.Itoa(jobs)
		verb := "job"
		for {
			if !y.killed(time.Duration(chance.Int64N(int64(window))), verb, "--session", session, "--steps", count) {
				break
			}
			done++
			f, err := y.look(session)
			switch {
			case err != nil:
				corrupt++
				t.Errorf("kill %d: %v", done, err)
			case !f.exists:
				before++
				continue
			case f.lines > f.seq:
				ahead++
			}
			if f.torn {
				torn++
			}
			verb = "resume"
			if done >= kills {
				break
			}
		}
		if status, out := y.run("resume", "--session", session, "--steps", count); status == 4 && verb == "job" {
			status, out = y.run("job", "--session", session, "--steps", count)
			if status != 0 {
				t.Errorf("%s: %d %s", session, status, out)
			}
		} else if status != 0 {
			t.Errorf("%s: %d %s", session, status, out)
		}
		if f, err := y.look(session); err != nil || !f.done || f.lines != steps || f.torn {
			t.Errorf("%s in the end: %+v, %v", session, f, err)
		}
	}
	t.Logf("%d kills of %d jobs of %d steps: %d corrupt; %d before the first checkpoint, %d between log and checkpoint, %d in a line", done, jobs, steps, corrupt, before, ahead, torn)
}

// Eight resumes of one job at the same time: it is done once.
func TestConcurrentResumes(t *testing.T) {
	y := newYard(t)
	count := strconv.Itoa(steps)
	if status, out := y.run("job", "--session", "s", "--steps", count, "--fail-at", "2"); status != 137 {
		t.Fatal(status, out)
	}
	var wait sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wait.Go(func() {
			out, err := y.command("resume", "--session", "s", "--steps", count).CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				statuses[i] = exit.ExitCode()
			} else if err != nil {
				statuses[i] = -1
			}
			if statuses[i] != 0 && statuses[i] != 3 {
				t.Errorf("%d: %s", statuses[i], out)
			}
		})
	}
	wait.Wait()
	finished := 0
	for _, s := range statuses {
		if s == 0 {
			finished++
		}
	}
	f, err := y.look("s")
	if err != nil || !f.done || f.lines != steps || finished == 0 {
		t.Errorf("%+v, %v, %v", f, err, statuses)
	}
	t.Logf("exit statuses %v, %d steps logged", statuses, f.lines)
}
