package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"handoffd/engine/fault"
)

// setup is a home directory with handoffd.json in its usual place.
type setup struct{ home, file string }

func newSetup(t *testing.T, text string) setup {
	t.Helper()
	home := mkdir(t, scratch(t), "home")
	return setup{home, write(t, strings.ReplaceAll(text, "HOME", home), home, ".config/handoff", DaemonFile)}
}

func (s setup) load(pairs ...string) (Daemon, error) {
	return LoadDaemon(DaemonInput{CWD: s.home, Getenv: env(pairs...), HomeDir: s.home, CPUs: 4})
}

func TestLoadDaemonFindsItsFile(t *testing.T) {
	s := newSetup(t, `{"version":1,"workers":1}`)
	write(t, `{"version":1,"workers":2}`, s.home, "xdg/handoff", DaemonFile)
	write(t, `{"version":1,"workers":3}`, s.home, "env.json")
	write(t, `{"version":1,"workers":5}`, s.home, "flag.json")
	xdg, variable := "XDG_CONFIG_HOME="+filepath.Join(s.home, "xdg"), "HANDOFFD_CONFIG=env.json"
	for _, c := range []struct {
		flag    string
		env     []string
		workers int
	}{
		{"", nil, 1},
		{"", []string{"XDG_CONFIG_HOME=xdg"}, 1},
		{"", []string{xdg}, 2},
		{"", []string{xdg, variable}, 3},
		{"flag.json", []string{xdg, variable}, 5},
		{"~/flag.json", nil, 5},
		{"", []string{"XDG_CONFIG_HOME=" + filepath.Join(s.home, "empty")}, 4},
	} {
		d, err := LoadDaemon(DaemonInput{CWD: s.home, ConfigFlag: c.flag, Getenv: env(c.env...), HomeDir: s.home, CPUs: 4})
		if err != nil || d.Workers != c.workers {
			t.Errorf("%q %v: %d workers, %v; want %d", c.flag, c.env, d.Workers, err, c.workers)
		}
	}
}

func TestLoadDaemonAbsentIsNotInvalid(t *testing.T) {
	s := newSetup(t, `{"version":1}`)
	if err := os.Remove(s.file); err != nil {
		t.Fatal(err)
	}
	d, err := s.load()
	if err != nil || d.File != "" || d.Sources != nil || d.Store != filepath.Join(s.home, ".local/share/handoff") {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = s.load("HANDOFFD_CONFIG=" + s.file)
	refused(t, err, s.file+" does not exist")
	symlink(t, "nowhere", s.file)
	_, err = s.load()
	refused(t, err, "cannot read "+s.file)

	if _, err := LoadDaemon(DaemonInput{Getenv: env("HANDOFFS_ROOT=/x")}); err != nil {
		t.Errorf("without a home directory: %v", err)
	}
	_, err = LoadDaemon(DaemonInput{Getenv: noEnv})
	refused(t, err, "home directory is not known")
}

func TestLoadDaemonValues(t *testing.T) {
	s := newSetup(t, `{"$schema":"x","version":1,"store":"~/store","sources":[{"harness":"codex","root":"~/.codex","include":["*.jsonl"],"exclude":["tmp/"]}],
		"min_fresh_ms":5,"quiet_ms":0,"sweep_seconds":7,"workers":2,"socket":"HOME/s.sock","log":{"level":"debug","format":"json","file":"~/l.log"},
		"limits":{"line_bytes":2048,"file_bytes_per_pass":4096,"files":9,"depth":3},"redact":{"enabled":true,"allow":["k"]},
		"gate":{"mode":"enforce","signals":["pct"],"enforce":true},"retention":{"quarantine_days":30,"log_bytes":0}}`)
	d, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	if d.MinFresh != 5*time.Millisecond || d.Quiet != 0 || d.Sweep != 7*time.Second {
		t.Errorf("%v %v %v", d.MinFresh, d.Quiet, d.Sweep)
	}
	golden(t, "daemon-explain.golden", explained(d), map[string]string{"HOME": s.home})

	d, err = s.load("HANDOFFS_ROOT=/env")
	if err != nil || d.Store != "/env" || d.Origin["store"] != "HANDOFFS_ROOT" {
		t.Errorf("%s from %s, %v", d.Store, d.Origin["store"], err)
	}
	d, err = LoadDaemon(DaemonInput{CWD: "/", RootFlag: "flag", Getenv: env("HANDOFFS_ROOT=/env"), HomeDir: s.home})
	if err != nil || d.Store != "/flag" || d.Origin["store"] != "--root" || d.Workers != 2 {
		t.Errorf("%s from %s, %v", d.Store, d.Origin["store"], err)
	}

	s = newSetup(t, `{"version":1,"sources":[]}`)
	if d, err = s.load(); err != nil || d.Sources == nil || len(d.Sources) != 0 {
		t.Errorf("an empty list is %#v, %v", d.Sources, err)
	}
	golden(t, "daemon-defaults.golden", explained(d), map[string]string{"HOME": s.home})
}

func explained(d Daemon) string {
	var b strings.Builder
	for _, v := range d.Explain() {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", v.Key, v.Text(), v.Origin)
	}
	return b.String()
}

func TestLoadDaemonNamesEveryFault(t *testing.T) {
	s := newSetup(t, "")
	var b strings.Builder
	for _, text := range append(wrongs,
		``, `[]`, `{"version":1} x`, `{"version":1,"version":1}`,
		`{"version":1,"store":"rel","socket":"./s","log":{"file":"a\u0000"},"sources":[{"harness":"codex","root":"x","include":["["]}]}`,
		`{"version":1,"limits":{"line_bytes":4096,"file_bytes_per_pass":2048}}`,
		`{"version":1,"sources":[{"harness":"codex","root":"~/a"},{"harness":"pi","root":"~/a"},{"harness":"codex","root":"~/a/b"},{"harness":"codex","root":"~/"},{"harness":"codex","root":"/"}]}`,
	) {
		write(t, text, s.file)
		_, err := s.load()
		if len(text) > 300 {
			text = text[:300] + "..."
		}
		b.WriteString("# " + text + "\n")
		if err == nil {
			b.WriteString("ok\n")
			continue
		}
		refused(t, err)
		b.WriteString(err.Error() + "\n")
	}
	golden(t, "daemon-faults.golden", b.String(), map[string]string{"HOME": s.home})
}

func TestLoadDaemonRoots(t *testing.T) {
	for _, c := range []struct {
		name, root string
		plant      func(t *testing.T, home string)
		err        string // "" is accepted
	}{
		{name: "missing", root: "~/.claude/projects"},
		{name: "root", root: "/", err: "is the root of the file system"},
		{name: "root by name", root: "/usr/..", err: "is the root of the file system"},
		{name: "home", root: "~", err: "is the home directory itself"},
		{name: "home by slash", root: "~/", err: "is the home directory itself"},
		{name: "home by link", root: "~/me", plant: func(t *testing.T, h string) { symlink(t, h, h+"/me") }, err: "is the home directory itself"},
		{name: "above home", root: "~/..", err: "holds the home directory"},
		{name: "store", root: "~/.local/share/handoff", err: "holds the store"},
		{name: "holds the store", root: "~/.local", err: "holds the store"},
		{name: "in the store", root: "~/.local/share/handoff/projects", err: "lies in the store"},
		{name: "store by link", root: "~/s", plant: func(t *testing.T, h string) { symlink(t, mkdir(t, h, ".local/share/handoff"), h+"/s") }, err: "holds the store"},
		{name: "name like the store's", root: "~/.local/share/handoff2"},
		{name: "loop", root: "~/loop", plant: func(t *testing.T, h string) { symlink(t, "loop", h+"/loop") }, err: "cannot be followed"},
		{name: "holds the log", root: "~/logs", err: "holds the log file"},
		{name: "holds the file", root: "~/.config/handoff", err: "holds the configuration"},
		{name: "far above the file", root: "~/.config", err: "holds the configuration"},
		{name: "its work tree holds the file", root: "~/.config/x/y", plant: func(t *testing.T, h string) { mkdir(t, h, ".config/.git") }, err: "belongs to the git work tree"},
		{name: "work tree with a .git file", root: "~/.config/x/y", plant: func(t *testing.T, h string) { write(t, "gitdir: x", h, ".config/.git") }, err: "belongs to the git work tree"},
		{name: "dotfiles", root: "~/.codex", plant: func(t *testing.T, h string) { mkdir(t, h, ".git") }},
		{name: "another work tree", root: "~/src/x/y", plant: func(t *testing.T, h string) { mkdir(t, h, "src/x/.git") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSetup(t, `{"version":1,"log":{"file":"~/logs/l"},"sources":[{"harness":"codex","root":"`+c.root+`"}]}`)
			if c.plant != nil {
				c.plant(t, s.home)
			}
			_, err := s.load()
			if c.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, s.file+" is invalid against handoffd.schema.json:\n  - handoffd.json.sources[0].root: ", c.err)
		})
	}
}

func TestLoadDaemonFileThroughALink(t *testing.T) {
	s := newSetup(t, `{"version":1}`)
	repo := write(t, `{"version":1,"sources":[{"harness":"pi","root":"~/repo/sessions"}]}`, s.home, "repo", DaemonFile)
	if err := os.Remove(s.file); err != nil {
		t.Fatal(err)
	}
	symlink(t, repo, s.file)
	if _, err := s.load(); err != nil {
		t.Errorf("a link out of the way: %v", err)
	}
	mkdir(t, s.home, "repo/.git")
	_, err := s.load()
	refused(t, err, "belongs to the git work tree")
	if h := fault.HintOf(err); h != "move the configuration to ~/.config/handoff/handoffd.json" {
		t.Errorf("hint %q", h)
	}
}

func TestLoadDaemonTrust(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing on Windows")
	}
	chmod := func(t *testing.T, mode os.FileMode, path string) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name            string
		file, directory os.FileMode
		err             string
	}{
		{"private", 0o600, 0o700, ""},
		{"readable", 0o644, 0o755, ""},
		{"group writes", 0o620, 0o700, "can be written by other users (mode 0620)"},
		{"others write", 0o602, 0o700, "can be written by other users (mode 0602)"},
		{"directory open", 0o600, 0o777, "is in a directory that everybody can write"},
		{"directory sticky", 0o600, 0o777 | os.ModeSticky, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSetup(t, `{"version":1}`)
			chmod(t, c.file, s.file)
			chmod(t, c.directory, filepath.Dir(s.file))
			_, err := s.load()
			if c.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, s.file, c.err)
			if fault.HintOf(err) == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestLoadDaemonForeignFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	for _, c := range []struct {
		name string
		path func(s setup) string
		err  string
	}{
		{"file", func(s setup) string { return s.file }, "belongs to user 12345"},
		{"directory", func(s setup) string { return filepath.Dir(s.file) }, "is in a directory of user 12345"},
	} {
		t.Run("foreign "+c.name, func(t *testing.T) {
			s := newSetup(t, `{"version":1}`)
			if err := os.Lchown(c.path(s), 12345, 12345); err != nil {
				t.Skip("this root may not change owners:", err)
			}
			_, err := s.load()
			refused(t, err, c.err)
		})
	}
}

// A program of another stage asks for the directories it found itself.
func TestRefuseRootWithoutAFile(t *testing.T) {
	home := scratch(t)
	d, err := LoadDaemon(DaemonInput{Getenv: env("HANDOFFS_ROOT=" + home + "/.claude/projects/p"), HomeDir: home})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, d.RefuseRoot(home+"/.claude/projects"), "holds the store")
	if err := d.RefuseRoot(home + "/.codex"); err != nil {
		t.Error(err)
	}
}
