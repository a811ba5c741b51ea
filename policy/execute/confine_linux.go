package execute

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights of Landlock, see landlock(7) and linux/landlock.h.
const (
	rightsRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsExec  = rightsRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsWrite = rightsExec | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	rightsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// rightsOfFiles are those that a rule for a single file may have.
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// handled are the rights that a version of the interface can withhold.
func handled(abi int) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1}
	for _, v := range []struct {
		abi   int
		right uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}} {
		if abi >= v.abi {
			a.Handled_access_fs |= v.right
		}
	}
	if abi >= 4 {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// attrSize is how much of the attributes a version knows, in bytes.
func attrSize(abi int) uintptr {
	switch {
	case abi >= 6:
		return 24
	case abi >= 4:
		return 16
	}
	return 8
}

// landlockABI returns the version of Landlock, or why there is none.
func landlockABI() (int, string) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errors.Is(errno, unix.ENOSYS):
		return 0, "the kernel has no Landlock"
	case errors.Is(errno, unix.EOPNOTSUPP):
		return 0, "Landlock is disabled"
	case errno != 0:
		return 0, "Landlock: " + errno.Error()
	}
	return int(v), ""
}

// confine confines the calling thread, and with it what it starts, to a cage.
// Where the kernel cannot, it says so; any other failure is an error, because
// a child that could be confined must be.
func confine(c cage) (confinement, error) {
	dropCapabilities()
	abi, why := landlockABI()
	if why != "" {
		return confinement{by: "none", why: why}, nil
	}
	attr := handled(abi)
	if c.online {
		attr.Handled_access_net = 0
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), attrSize(abi), 0)
	if errno != 0 {
		return confinement{}, fmt.Errorf("make a Landlock ruleset: %w", errno)
	}
	rules := ruleset{fd: int(fd), handled: attr.Handled_access_fs, denied: c.denied}
	defer unix.Close(rules.fd)
	for _, g := range []struct {
		paths  []string
		rights uint64
	}{{c.read, rightsExec}, {c.look, rightsRead}, {c.write, rightsWrite}, {c.devs, rightsDevice}} {
		for _, path := range g.paths {
			if err := rules.grant(path, g.rights); err != nil {
				return confinement{}, err
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return confinement{}, fmt.Errorf("give up new privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules.fd), 0, 0); errno != 0 {
		return confinement{}, fmt.Errorf("restrict to a Landlock ruleset: %w", errno)
	}
	return confinement{by: "landlock v" + strconv.Itoa(abi)}, nil
}

// dropCapabilities takes from what the calling thread starts, if that is
// root's, every capability but those over files, which Landlock bounds: with
// CAP_PERFMON, for one, it could read the memory of any process. Nobody else
// has any, and so cannot drop one.
func dropCapabilities() {
	const last = 63 // of a capability set, see capabilities(7)
	for c := range uintptr(last + 1) {
		switch c {
		case unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID:
			continue
		}
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
}

// ruleset is a Landlock ruleset in the making.
type ruleset struct {
	fd      int
	handled uint64
	denied  []string
}

// grant gives rights beneath a path, but for what is denied. A rule covers all
// that is below it, so around a denied root each neighbour gets its own, and
// nothing can be made beside it. What does not exist is passed over.
func (r ruleset) grant(path string, rights uint64) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	holds := false
	for _, d := range r.denied {
		if beneath(real, d) {
			return nil
		}
		holds = holds || beneath(d, real)
	}
	if !holds {
		return r.add(real, rights)
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil // nor can the child then
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			continue // where it leads is granted there, or not
		}
		if err := r.grant(filepath.Join(real, e.Name()), rights); err != nil {
			return err
		}
	}
	return nil
}

// beneath reports whether path is root or below it; both are real.
func beneath(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

func (r ruleset) add(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s for a Landlock rule: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s for a Landlock rule: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	if rights &= r.handled; rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("add %s to a Landlock ruleset: %w", path, errno)
	}
	return nil
}
