package execute

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is a child in a job object, which everything that it starts is in too.
// The child is put there as soon as it runs: what it starts before that
// instant is not held.
type tree struct {
	job     windows.Handle
	endOnce sync.Once
}

func newTree(c *child) *tree {
	c.cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true}
	return &tree{}
}

func (t *tree) begin(p *os.Process) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("make a job object: %w", err)
	}
	t.job = job
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		return fmt.Errorf("set the limits of a job object: %w", err)
	}
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		return fmt.Errorf("open the child: %w", err)
	}
	defer windows.CloseHandle(h)
	if err := windows.AssignProcessToJobObject(job, h); err != nil {
		return fmt.Errorf("put the child into a job object: %w", err)
	}
	return nil
}

func (t *tree) end() {
	t.endOnce.Do(func() { _ = windows.TerminateJobObject(t.job, 1) })
}

func (t *tree) release() {
	if t.job != 0 {
		_ = windows.CloseHandle(t.job)
	}
}
