package execute

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"handoffd/policy/permission"
)

func needLandlock(t *testing.T) int {
	t.Helper()
	abi, why := landlockABI()
	if why != "" {
		t.Skip("nothing confines a child here: " + why)
	}
	return abi
}

// What a child can do, asked of the child.
func TestConfined(t *testing.T) {
	abi := needLandlock(t)
	r := shell(t, nil)
	ws, home := r.Scope.Workspace, r.Scope.Home
	outside := filepath.Dir(home)
	for name, text := range map[string]string{
		filepath.Join(ws, "file"): "w", filepath.Join(home, "private"): "p", filepath.Join(outside, "near"): "o",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(home, "private"), filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		script string
		risk   permission.Risk
		works  bool
	}{
		{"cat file", "R1", true},
		{"echo x > new", "R1", true},
		{"mkdir -p d && echo x > d/y && mv d/y z && rm z && ln -s file l2", "R1", true},
		{"cat /etc/passwd > /dev/null", "R1", true},
		{"ls /usr > /dev/null", "R1", true},
		{"cat /proc/self/status > /dev/null", "R1", true},
		{"cat " + home + "/private", "R1", false},
		{"cat link", "R1", false},
		{"cat ../private", "R1", false},
		{"ls " + home, "R1", false},
		{"cat " + outside + "/near", "R1", false},
		{"echo x > " + outside + "/new", "R1", false},
		{"echo x > " + home + "/new", "R1", false},
		{"echo x > /tmp/handoff-escape", "R1", false},
		{"mkdir /tmp/handoff-escape", "R1", false},
		{"echo x > /etc/handoff-escape", "R1", false},
		{"rm " + outside + "/near", "R1", false},
		{"mv " + outside + "/near stolen", "R1", false},
		{"ln " + outside + "/near stolen", "R1", false},
		{"kill -0 " + strconv.Itoa(os.Getpid()), "R1", abi < 6},
		{"cat /proc/" + strconv.Itoa(os.Getpid()) + "/environ", "R1", false},
		// Reading is all that a risk of reading gives.
		{"cat file", "R0", true},
		{"echo x > new0", "R0", false},
		{"rm file", "R0", false},
		{`echo x > "$TMPDIR/x"`, "R0", true},
	} {
		out, rec := spawned(t, r, c.risk, c.script)
		if out.ExitCode == nil || (*out.ExitCode == 0) != c.works {
			t.Errorf("%s at %s: %v, works should be %t", c.script, c.risk, rec["exit_code"], c.works)
		}
		if rec["confined_by"] != "landlock v"+strconv.Itoa(abi) {
			t.Errorf("confined by %v", rec["confined_by"])
		}
	}
	for _, name := range []string{outside + "/new", home + "/new", "/tmp/handoff-escape", "/etc/handoff-escape", ws + "/stolen", ws + "/new0"} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s was made", name)
			_ = os.RemoveAll(name)
		}
	}
	// Only the child was confined.
	if err := os.WriteFile(outside+"/ours", nil, 0o600); err != nil {
		t.Errorf("we are confined ourselves: %v", err)
	}
}

// A denied root is out of reach, even inside the workspace.
func TestConfinedToWhatIsNotDenied(t *testing.T) {
	needLandlock(t)
	r := shell(t, func(p *permission.Policy) { p.DeniedRoots = []string{"a/secret", "/etc/hostname"} })
	for _, name := range []string{"a/secret/key", "a/open/file", "b/file"} {
		path := filepath.Join(r.Scope.Workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for script, works := range map[string]bool{
		"cat a/open/file b/file": true, "echo x > b/new": true, "echo x > a/open/new": true, "cat /etc/passwd": true,
		"cat a/secret/key": false, "ls a/secret": false, "echo x > a/secret/new": false, "mv a/secret b/": false, "cat /etc/hostname": false,
	} {
		out, _ := spawned(t, r, "R1", script)
		if out.ExitCode == nil || (*out.ExitCode == 0) != works {
			t.Errorf("%s: %v, works should be %t", script, out, works)
		}
	}
}

// The network is an external effect, which no risk of the workspace covers.
func TestConfinedOffline(t *testing.T) {
	if abi := needLandlock(t); abi < 4 {
		t.Skipf("Landlock v%d leaves the network alone", abi)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback here: %v", err)
	}
	defer l.Close()
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	for _, c := range []struct {
		risk  permission.Risk
		works bool
	}{{"R1", false}, {"R2", true}} {
		r := newRunner(t, func(p *permission.Policy) {
			p.Program = "bash"
			p.Grants[permission.ExternalEffect] = permission.GrantAllow
		})
		out, err := r.Spawn(t.Context(), c.risk, `-c "exec 3<>/dev/tcp/127.0.0.1/`+port+`"`)
		if err != nil {
			t.Fatal(err)
		}
		if out.Err != nil {
			t.Skipf("no bash here: %v", out.Err)
		}
		if out.ExitCode == nil || (*out.ExitCode == 0) != c.works {
			t.Errorf("at %s: %+v, works should be %t", c.risk, out, c.works)
		}
	}
}
