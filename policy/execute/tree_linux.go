package execute

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tree is a child with everything that descends from it. Orphans of the tree
// become our children, so that none gets away by losing its parents.
type tree struct {
	c       *child
	root    int
	ours    map[int]bool   // children of this process before the child
	known   map[int]string // members that were found, and when they were born
	endOnce sync.Once
}

// reaping counts the trees for which this process takes orphans.
var reaping struct {
	sync.Mutex
	trees int
}

func newTree(c *child) *tree {
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	reaping.Lock()
	defer reaping.Unlock()
	if reaping.trees++; reaping.trees == 1 {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	t := &tree{c: c, ours: map[int]bool{}, known: map[int]string{}}
	for _, p := range processes() {
		if p.parent == os.Getpid() {
			t.ours[p.pid] = true
		}
	}
	return t
}

func (t *tree) begin(p *os.Process) error {
	t.root = p.Pid
	return nil
}

func (t *tree) release() {
	reaping.Lock()
	defer reaping.Unlock()
	if reaping.trees--; reaping.trees == 0 {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	}
}

// end kills the tree, again and again while there is something left of it:
// what forks while it is looked for is found the next time.
func (t *tree) end() {
	t.endOnce.Do(func() {
		deadline := time.Now().Add(endPatience)
		for time.Now().Before(deadline) {
			left := 0
			for _, p := range t.members() {
				if p.dead {
					if p.parent == os.Getpid() && p.pid != t.root {
						_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
					}
					continue
				}
				left++
				p.kill()
			}
			if left == 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// members are the processes of the tree: the child, its session, whatever
// descends from one of them, and orphans that were given to us.
func (t *tree) members() []process {
	all := processes()
	in := map[int]bool{}
	var out []process
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.pid] || p.pid == os.Getpid() || t.ours[p.pid] {
				continue
			}
			if p.pid == t.root || p.session == t.root || in[p.parent] || t.known[p.pid] == p.born || p.parent == os.Getpid() && t.adopted(p) {
				in[p.pid], grown = true, true
				t.known[p.pid] = p.born // a dead one shows no environment any more
				out = append(out, p)
			}
		}
	}
	return out
}

// adopted reports whether a child of ours is an orphan of the tree.
func (t *tree) adopted(p process) bool {
	if t.c.sole {
		return true
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+t.c.mark+"\x00"))
}

// process is a line of the process table.
type process struct {
	pid, parent, session int
	born                 string // in clock ticks since the boot
	dead                 bool   // but not yet waited for
}

func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := processOf(pid); ok {
				out = append(out, p)
			}
		}
	}
	return out
}

// processOf reads /proc/PID/stat, see proc(5): the name in parentheses may
// hold anything, so what follows is counted from the last one.
func processOf(pid int) (process, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	_, rest, ok := strings.Cut(string(raw[max(0, bytes.LastIndexByte(raw, ')')):]), " ")
	f := strings.Fields(rest)
	const state, parent, session, born = 0, 1, 3, 19
	if !ok || len(f) <= born {
		return process{}, false
	}
	p := process{pid: pid, born: f[born], dead: f[state] == "Z" || f[state] == "X"}
	p.parent, _ = strconv.Atoi(f[parent])
	p.session, _ = strconv.Atoi(f[session])
	return p, true
}

// kill ends exactly the process that was looked at: a number may have been
// given to another one since.
func (p process) kill() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		_ = unix.Kill(p.pid, unix.SIGKILL)
		return
	}
	if err != nil {
		return // it has gone
	}
	defer unix.Close(fd)
	if now, ok := processOf(p.pid); ok && now.born == p.born {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
