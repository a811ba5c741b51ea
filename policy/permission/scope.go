package permission

import (
	"path/filepath"
	"runtime"
	"strings"

	"handoffd/engine/fault"
)

// EnvStateDir names the environment variable that moves the state directory.
const EnvStateDir = "AGENT_HANDOFF_STATE_DIR"

// StateDirName is the state directory of a workspace.
const StateDirName = ".agents-handoff"

// Input is what a process knows when it asks which policy rules.
type Input struct {
	Policy string // the path that was named, "" for none
	CWD    string // absolute
	Home   string // "" when unknown
	Getenv func(string) string
}

// Scope is a policy in its place: what its relative roots mean and where
// decisions are kept. It is a value and safe for concurrent use.
type Scope struct {
	Policy Policy
	// Source is the policy's file, "" for the built-in one.
	Source    string
	Workspace string // absolute
	StateDir  string // absolute; it need not exist
	Home      string // "" when unknown
	disk      Disk
	// carved says that a home directory inside the workspace stays personal.
	// A workspace that is the home directory itself is one that the user
	// chose by being there.
	carved bool
	// named are the targets that the user named on the command line.
	named []string
}

// Resolve finds the policy that rules and its state directory. The policy is
// the one named, else the workspace's permission-policy.json, else the
// built-in one. A relative name is meant from the working directory or, if
// nothing is there, from the workspace. Nothing is written. Failures are
// fault.Config.
func Resolve(in Input) (Scope, error) {
	return resolve(in, System{}, runtime.GOOS)
}

func resolve(in Input, d Disk, goos string) (Scope, error) {
	if in.Home != "" && (!filepath.IsAbs(in.Home) || filepath.Dir(in.Home) == in.Home) {
		in.Home = "" // a service has none, and "/" is nobody's
	}
	s := Scope{Workspace: workspace(d, in.CWD, in.Home), Home: in.Home, disk: d}
	file := in.Policy
	switch {
	case file == "":
		file = filepath.Join(s.Workspace, FileName)
		if _, err := d.Look(file); missing(err) {
			file = ""
		}
	case !filepath.IsAbs(file):
		name := file
		file = filepath.Join(in.CWD, name)
		if _, err := d.Look(file); missing(err) {
			file = filepath.Join(s.Workspace, name)
		}
	}
	if file == "" {
		approved := s.Workspace
		if everything(d, approved, in.Home) {
			approved = ""
		}
		s.Policy, s.carved = Builtin(goos, approved, in.Home), true
	} else {
		var err error
		if s.Policy, err = Load(file); err != nil {
			return s, err
		}
		s.Source, s.Workspace = file, filepath.Dir(file)
	}
	return s, s.findState(in.Getenv(EnvStateDir), in.CWD)
}

// workspace is the top of the checkout that dir is in, else dir itself. A
// checkout that holds the home directory, like one of dotfiles, is none.
func workspace(d Disk, dir, home string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := d.Look(filepath.Join(at, ".git")); err == nil && !holds(d, at, home) && !everything(d, at, home) {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// holds reports whether dir is path or around it.
func holds(d Disk, dir, path string) bool {
	if path == "" {
		return false
	}
	at, err := locate(d, dir)
	if err != nil {
		return true
	}
	p, err := locate(d, path)
	return err == nil && inside(d, p, at)
}

// everything reports whether approving dir as a whole would approve the system
// or all users' files.
func everything(d Disk, dir, home string) bool {
	at, err := locate(d, dir)
	if err != nil || len(at.names) == 1 {
		return true
	}
	if home != "" && holds(d, dir, home) && holds(d, home, dir) {
		return false // of one user's, who is in it
	}
	for _, list := range [][]string{systemRoots(runtime.GOOS), homes(runtime.GOOS), shared} {
		for _, root := range list {
			if holds(d, dir, root) {
				return true
			}
		}
	}
	return false
}

// shared are directories that many things share: one of them as a state
// directory would approve what is not ours.
var shared = []string{
	"/boot", "/dev", "/dev/shm", "/media", "/mnt", "/proc", "/run", "/srv", "/sys", "/tmp", "/var", "/var/lib", "/var/tmp",
	"/private", "/private/tmp", "/private/var", "/Volumes",
}

// findState sets the state directory, which is approved wherever it is, and so
// is refused where it would approve what nobody meant.
func (s *Scope) findState(named, cwd string) error {
	s.StateDir = filepath.Join(s.Workspace, StateDirName)
	if named != "" {
		if s.StateDir = named; !filepath.IsAbs(named) {
			s.StateDir = filepath.Join(cwd, named)
		}
	}
	refuse := func(why string) error {
		return fault.New(fault.Config, "the state directory %s %s", s.StateDir, why).
			WithHint("name a directory of its own with %s", EnvStateDir)
	}
	at, err := locate(s.disk, s.StateDir)
	if err != nil {
		return refuse("cannot be resolved: " + err.Error())
	}
	if len(at.names) == 1 {
		return refuse("is the root of a file system: that would approve everything")
	}
	if named == "" {
		// A checkout may bring a link of that name, and the state directory
		// is approved wherever it leads.
		ws, err := locate(s.disk, s.Workspace)
		if err != nil || at.path() != (place{names: append(ws.names, StateDirName)}).path() {
			return refuse("is a link out of the workspace")
		}
	}
	above := func(list []string, what string) error {
		for _, dir := range list {
			r, err := s.root(dir)
			if err == nil && inside(s.disk, r, at) {
				return refuse("holds " + what + " " + dir + ": that would approve it")
			}
		}
		return nil
	}
	if s.Home != "" {
		if err := above([]string{s.Home}, "the home directory"); err != nil {
			return err
		}
	}
	if ws, err := locate(s.disk, s.Workspace); err == nil && inside(s.disk, ws, at) && len(ws.names) > len(at.names) {
		return refuse("holds the workspace " + s.Workspace + ": that would approve all around its files")
	}
	for _, l := range []struct {
		roots []string
		what  string
	}{
		{systemRoots(runtime.GOOS), "the system directory"}, {homes(runtime.GOOS), "the homes"},
		{s.Policy.SystemReadOnlyRoots, "the system directory"}, {s.Policy.PersonalDataRoots, "the personal data"}, {shared, "the shared directory"},
	} {
		if err := above(l.roots, l.what); err != nil {
			return err
		}
	}
	return nil
}

// absolute makes a target absolute from the workspace. It is not cleaned: what
// ".." means depends on where a link before it leads.
func (s Scope) absolute(target string) string {
	if filepath.IsAbs(target) {
		return target
	}
	return s.Workspace + string(filepath.Separator) + target
}

// root is where a root of the policy really is.
func (s Scope) root(text string) (place, error) {
	if rest, ok := strings.CutPrefix(text, "~"); ok && s.Home != "" && (rest == "" || isSeparator(rest[0])) {
		text = s.Home + rest
	}
	return locate(s.disk, s.absolute(text))
}

// Named returns the scope of a command on whose command line the user named
// these paths. Whether that approves them is the policy's to say.
func (s Scope) Named(paths ...string) Scope {
	s.named = append(append([]string{}, s.named...), paths...)
	return s
}

// Classify finds what kind of place a target is in, now. A target whose place
// cannot be found out is external.
func (s Scope) Classify(target string) Class {
	at, err := locate(s.disk, s.absolute(target))
	if err != nil {
		return ExternalPath
	}
	return s.classify(at)
}

func (s Scope) classify(at place) Class {
	in := func(list []string) bool {
		for _, text := range list {
			if r, err := s.root(text); err == nil && inside(s.disk, at, r) {
				return true
			}
		}
		return false
	}
	switch {
	case in(s.Policy.DeniedRoots) || s.unplacedDenial():
		return DeniedRoot
	case in([]string{s.StateDir}):
		return ApprovedWorkspace
	case s.Policy.NamedTargets == NamedAllow && in(s.named):
		return ApprovedWorkspace
	case s.carved && s.Home != "" && in([]string{s.Home}) && !holds(s.disk, s.Home, s.Workspace):
		return PersonalDataPath
	case in(s.Policy.ApprovedWorkspaces):
		return ApprovedWorkspace
	case in(s.Policy.PersonalDataRoots):
		return PersonalDataPath
	case in(s.Policy.SystemReadOnlyRoots):
		return SystemPath
	}
	return ExternalPath
}

// unplacedDenial reports a denied root of which it cannot be found out where it
// is. Then everything is denied: nobody can say what lies in it.
func (s Scope) unplacedDenial() bool {
	for _, text := range s.Policy.DeniedRoots {
		if _, err := s.root(text); err != nil {
			return true
		}
	}
	return false
}

// Evaluate decides about a target, or without one ("") about the risk alone.
func (s Scope) Evaluate(risk Risk, target string) Decision {
	if target == "" {
		return Decide(s.Policy, risk, Unplaced)
	}
	return Decide(s.Policy, risk, s.Classify(target))
}

// Absolute is the target as an absolute path, as it was named.
func (s Scope) Absolute(target string) string { return s.absolute(target) }

// Places returns where the existing ones of some of the policy's roots really
// are.
func (s Scope) Places(roots []string) []string {
	out := []string{}
	for _, text := range roots {
		if r, err := s.root(text); err == nil && r.exists() == len(r.names) {
			out = append(out, r.path())
		}
	}
	return out
}

// Real is where a target really is.
func (s Scope) Real(target string) (string, error) {
	p, err := locate(s.disk, s.absolute(target))
	if err != nil {
		return "", err
	}
	return p.path(), nil
}
