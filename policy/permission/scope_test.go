package permission

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"handoffd/engine/fault"
)

// yard is a home with a workspace in it, on the real disk.
type yard struct {
	t                    *testing.T
	dir, home, workspace string
	env                  map[string]string
	policy               string // for Resolve
	cwd                  string // "" is the workspace
}

func newYard(t *testing.T) *yard {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{t: t, dir: dir, home: filepath.Join(dir, "home"), workspace: filepath.Join(dir, "home", "ws"), env: map[string]string{}}
	y.write("home/ws/file", "in the workspace")
	y.write("home/ws/.git/HEAD", "")
	y.write("home/private", "personal")
	y.write("outside/file", "outside")
	return y
}

func (y *yard) path(name string) string { return filepath.Join(y.dir, filepath.FromSlash(name)) }

func (y *yard) write(name, text string) {
	y.t.Helper()
	if err := os.MkdirAll(filepath.Dir(y.path(name)), 0o700); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(y.path(name), []byte(text), 0o600); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) link(target, name string) {
	y.t.Helper()
	if err := os.Symlink(filepath.FromSlash(target), y.path(name)); err != nil {
		y.t.Skipf("symbolic links cannot be made here: %v", err)
	}
}

func (y *yard) resolve() (Scope, error) {
	cwd := y.cwd
	if cwd == "" {
		cwd = y.workspace
	}
	return Resolve(Input{Policy: y.policy, CWD: cwd, Home: y.home, Getenv: func(k string) string { return y.env[k] }})
}

func (y *yard) scope() Scope {
	y.t.Helper()
	s, err := y.resolve()
	if err != nil {
		y.t.Fatal(err)
	}
	return s
}

func TestClassify(t *testing.T) {
	y := newYard(t)
	y.write("home/ws/..dots/x", "")
	y.link("../private", "home/ws/out")
	y.link("../../outside", "home/ws/away")
	y.link("file", "home/ws/in")
	y.link("home/ws", "entry")
	y.link("nowhere", "home/ws/dangling")
	y.link("../private-to-be", "home/ws/dangling-out")
	s := y.scope()
	if s.Source != "" || s.Workspace != y.workspace || s.StateDir != filepath.Join(y.workspace, StateDirName) {
		t.Fatalf("%+v", s)
	}
	system := "/usr/bin"
	switch runtime.GOOS {
	case "windows":
		system = `C:\Windows\System32`
	case "darwin":
		system = "/System/x"
	}
	for target, want := range map[string]Class{
		"file":                        ApprovedWorkspace,
		".":                           ApprovedWorkspace,
		"new/deep/file":               ApprovedWorkspace,
		"..dots/x":                    ApprovedWorkspace,
		"..new":                       ApprovedWorkspace,
		"in":                          ApprovedWorkspace,
		"dangling":                    ApprovedWorkspace,
		y.workspace:                   ApprovedWorkspace,
		y.path("entry/file"):          ApprovedWorkspace,
		".agents-handoff/jobs/x":      ApprovedWorkspace,
		"out":                         PersonalDataPath,
		"dangling-out":                PersonalDataPath,
		"..":                          PersonalDataPath,
		"../private":                  PersonalDataPath,
		"new/../../private":           PersonalDataPath,
		y.home:                        PersonalDataPath,
		y.home + "/ws/../private":     PersonalDataPath,
		y.home + "x":                  ExternalPath,
		"away":                        ExternalPath,
		"away/file":                   ExternalPath,
		"away/../home/ws/file":        ApprovedWorkspace,
		y.path("outside/file"):        ExternalPath,
		y.path("outside"):             ExternalPath,
		"/":                           ExternalPath,
		"a\x00b":                      ExternalPath,
		system:                        SystemPath,
		strings.Repeat("x/", 3000):    ExternalPath,
		strings.Repeat("x", 300):      ExternalPath,
		strings.Repeat("../", 50):     ExternalPath,
		"file/../file":                ApprovedWorkspace,
		"file/x":                      ApprovedWorkspace,
		y.workspace + "-sibling/file": PersonalDataPath,
	} {
		if got := s.Classify(target); got != want {
			if want == ExternalPath && got == ApprovedWorkspace && len(target) > 200 {
				continue // where names of that length exist, it is in the workspace
			}
			t.Errorf("%.80q is %s, want %s", target, got, want)
		}
	}
	if d := s.Evaluate(R2, ""); d.Verdict != NeedsAuth || d.Classification != ApprovedWorkspace {
		t.Errorf("no target: %+v", d)
	}
}

// Denied roots win over everything, wherever their names lead, and are meant
// from the workspace or from home.
func TestDeniedRoots(t *testing.T) {
	y := newYard(t)
	y.write("home/ws/secret/key", "")
	y.write("home/.ssh/id", "")
	y.link("secret", "home/ws/alias")
	y.write("home/ws/"+FileName, `{"approved_workspaces":[".","~/.ssh"],"denied_roots":["alias","~/.ssh","later",".agents-handoff/jobs"],"grants":{"READ_ONLY":"allow","WORKSPACE_WRITE":"allow"},"risk_to_level":{"R0":"READ_ONLY","R1":"WORKSPACE_WRITE"}}`)
	s := y.scope()
	if s.Source != filepath.Join(y.workspace, FileName) {
		t.Errorf("the workspace's policy is not used: %q", s.Source)
	}
	for target, want := range map[string]Class{
		"secret": DeniedRoot, "secret/key": DeniedRoot, "alias/key": DeniedRoot, "secret/new": DeniedRoot,
		"../.ssh/id": DeniedRoot, "later/x": DeniedRoot, "later": DeniedRoot, ".agents-handoff/jobs/j/work.log": DeniedRoot,
		"file": ApprovedWorkspace, "laterx": ApprovedWorkspace, ".agents-handoff/executions": ApprovedWorkspace,
	} {
		if got := s.Classify(target); got != want {
			t.Errorf("%s is %s, want %s", target, got, want)
		}
	}
	if s.Named("secret/key").Classify("secret/key") != DeniedRoot {
		t.Error("naming a target outweighs a denied root")
	}
	// Nobody can say what lies in a root that leads in a circle.
	y.link("circle", "home/ws/circle")
	y.write("home/ws/"+FileName, `{"denied_roots":["circle/x"],"approved_workspaces":["."],"grants":{"READ_ONLY":"allow"},"risk_to_level":{"R0":"READ_ONLY"}}`)
	if got := y.scope().Classify("file"); got != DeniedRoot {
		t.Errorf("with an unresolvable denied root a file is %s", got)
	}
}

func TestNamedTargets(t *testing.T) {
	y := newYard(t)
	s := y.scope()
	if s.Classify(y.path("home/private")) != PersonalDataPath {
		t.Fatal("not personal")
	}
	named := s.Named(y.path("home/private"))
	if named.Classify(y.path("home/private")) != ApprovedWorkspace || named.Classify(y.path("home/other")) != PersonalDataPath {
		t.Error("the built-in policy approves what was named, and that alone")
	}
	if s.Classify(y.path("home/private")) != PersonalDataPath {
		t.Error("naming changed the scope that it began with")
	}
	y.write("home/ws/"+FileName, published)
	written := y.scope().Named(y.path("home/private"))
	if got := written.Classify(y.path("home/private")); got != ExternalPath {
		t.Errorf("a written policy is overruled by a name: %s", got)
	}
}

func TestWhichPolicy(t *testing.T) {
	y := newYard(t)
	y.write("home/ws/sub/x", "")
	y.write("home/ws/sub/local.json", published)
	y.write("home/ws/top.json", published)
	for _, c := range []struct{ cwd, policy, source, workspace string }{
		{"home/ws/sub", "", "", "home/ws"},
		{"home/ws/sub", "local.json", "home/ws/sub/local.json", "home/ws/sub"},
		{"home/ws/sub", "top.json", "home/ws/top.json", "home/ws"},
		{"home/ws", "sub/local.json", "home/ws/sub/local.json", "home/ws/sub"},
		{"outside", y.path("home/ws/top.json"), "home/ws/top.json", "home/ws"},
		{"outside", "", "", "outside"},
	} {
		y.cwd, y.policy = y.path(c.cwd), c.policy
		s := y.scope()
		source := ""
		if c.source != "" {
			source = y.path(c.source)
		}
		if s.Source != source || s.Workspace != y.path(c.workspace) {
			t.Errorf("%+v: %s in %s", c, s.Source, s.Workspace)
		}
	}
	y.cwd, y.policy = y.workspace, "none.json"
	if _, err := y.resolve(); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "policy not found") {
		t.Error(err)
	}
	y.policy = ""
	y.write("home/ws/"+FileName, `{`)
	if _, err := y.resolve(); !fault.Is(err, fault.Config) {
		t.Errorf("a broken policy of the workspace is passed over: %v", err)
	}
}

// A home directory is a workspace only for who is in it, its checkout of
// dotfiles never; around a home the home stays personal, and the root of the
// disk is no workspace.
func TestWideWorkspaces(t *testing.T) {
	y := newYard(t)
	y.write("home/.git/HEAD", "") // dotfiles
	y.write("home/work/x", "")
	y.write("beside", "")
	for cwd, want := range map[string]struct{ private, beside Class }{
		"home":      {ApprovedWorkspace, ExternalPath},
		"":          {PersonalDataPath, ApprovedWorkspace},
		"home/work": {PersonalDataPath, ExternalPath},
		"home/ws":   {PersonalDataPath, ExternalPath},
	} {
		y.cwd = y.path(cwd)
		s := y.scope()
		if s.Workspace != y.cwd || len(s.Policy.ApprovedWorkspaces) != 1 {
			t.Errorf("in %s: %s, %v", y.cwd, s.Workspace, s.Policy.ApprovedWorkspaces)
		}
		if got := s.Classify(y.path("home/private")); got != want.private {
			t.Errorf("in %s a private file is %s", y.cwd, got)
		}
		if got := s.Classify(y.path("beside")); got != want.beside {
			t.Errorf("in %s a file beside the home is %s", y.cwd, got)
		}
		if got := s.Named(y.path("home/private")).Classify(y.path("home/private")); got != ApprovedWorkspace {
			t.Errorf("in %s a named file is %s", y.cwd, got)
		}
	}
	s, err := Resolve(Input{CWD: filepath.VolumeName(y.dir) + string(filepath.Separator), Home: y.home, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Policy.ApprovedWorkspaces) != 0 || s.Classify(y.path("outside")) == ApprovedWorkspace {
		t.Errorf("the root is a workspace: %v", s.Policy.ApprovedWorkspaces)
	}
	if runtime.GOOS == "linux" {
		for dir, wide := range map[string]bool{"/": true, "/usr": true, "/home": true, "/tmp": true, "/var": true, "/root": true, "/usr/share": false, y.home: false} {
			if got := everything(System{}, dir, y.home); got != wide {
				t.Errorf("approving %s approves everything: %t", dir, got)
			}
		}
		if everything(System{}, "/root", "/root") {
			t.Error("root's home is no workspace for root")
		}
	}
}

func TestStateDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the table has Unix paths")
	}
	y := newYard(t)
	y.link("/", "everything")
	y.link("home", "toHome")
	y.link("state", "toState")
	if err := os.Mkdir(y.path("state"), 0o700); err != nil {
		t.Fatal(err)
	}
	for state, ok := range map[string]bool{
		"/": false, "//": false, "/..": false, y.home: false, y.home + "/.": false, y.dir: false, "/usr": false, "/etc": false, "/tmp": false,
		"/home": false, "/root": false, "/var": false, "/dev/shm": false,
		y.path("everything"): false, y.path("toHome"): false, y.path("toHome") + "/": false,
		filepath.Join(y.home, "ws", ".."): false, "..": false, "../..": false, "../../../../../../../..": false,
		y.path("state"): true, y.path("toState"): true, y.path("new/deep"): true, y.home + "/state": true, "st": true, y.workspace: true,
	} {
		y.env[EnvStateDir] = state
		s, err := y.resolve()
		if (err == nil) != ok || err != nil && !fault.Is(err, fault.Config) {
			t.Errorf("%s: %v", state, err)
		}
		if ok && s.Classify(s.StateDir) != ApprovedWorkspace {
			t.Errorf("%s is %s", state, s.Classify(s.StateDir))
		}
	}
	// What lies around a state directory stays what it is.
	y.env[EnvStateDir] = y.path("outside/state")
	if got := y.scope().Classify(y.path("outside/file")); got != ExternalPath {
		t.Errorf("beside the state directory: %s", got)
	}
	// A policy's own roots are not to be approved by the way.
	y.env[EnvStateDir] = y.path("outside")
	y.write("home/ws/"+FileName, `{"personal_data_roots":["`+y.path("outside/people")+`"],"grants":{},"risk_to_level":{}}`)
	if _, err := y.resolve(); !fault.Is(err, fault.Config) {
		t.Errorf("a state directory around personal data: %v", err)
	}
}

// A checkout may bring a link in the place of the default state directory.
func TestPlantedStateDir(t *testing.T) {
	y := newYard(t)
	y.write("home/.ssh/id", "")
	y.link("../.ssh", "home/ws/"+StateDirName)
	if _, err := y.resolve(); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "link") {
		t.Errorf("a planted link makes ~/.ssh the state directory: %v", err)
	}
}

func TestHomeless(t *testing.T) {
	y := newYard(t)
	for _, home := range []string{"", "/", "relative"} {
		s, err := Resolve(Input{CWD: y.workspace, Home: home, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		if s.Classify("file") != ApprovedWorkspace || s.Classify(y.path("outside")) != ExternalPath {
			t.Errorf("home %q: %s, %s", home, s.Classify("file"), s.Classify(y.path("outside")))
		}
	}
}
