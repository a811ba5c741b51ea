//go:build unix && !linux

package execute

import (
	"os"
	"sync"
	"syscall"
)

// tree is a child with its process group. What leaves the group leaves the
// tree: there is no way to follow it on these systems.
type tree struct {
	root    int
	endOnce sync.Once
}

func newTree(c *child) *tree {
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return &tree{}
}

func (t *tree) begin(p *os.Process) error {
	t.root = p.Pid
	return nil
}

func (t *tree) end() {
	t.endOnce.Do(func() { _ = syscall.Kill(-t.root, syscall.SIGKILL) })
}

func (t *tree) release() {}
