package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checkout is the tree that this test stands in.
type checkout struct {
	dir     string
	fsys    fs.FS
	module  string
	names   []string // every file that is or would be committed
	sources []source
}

func open(t *testing.T) checkout {
	t.Helper()
	var mod struct{ Path, Dir string }
	if err := json.Unmarshal(run(t, "", "go", "list", "-m", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	c := checkout{dir: mod.Dir, fsys: os.DirFS(mod.Dir), module: mod.Path}
	c.names = files(t, mod.Dir)
	var err error
	if c.sources, err = parse(c.fsys, c.names); err != nil {
		t.Fatal(err)
	}
	if len(c.sources) == 0 {
		t.Fatal("no Go file found")
	}
	return c
}

// files asks git, which knows what is ignored; a copy without git is judged by
// what lies in it.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		// A checkout that belongs to somebody else is only listed here.
		list := run(t, dir, "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		for _, name := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
			if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
				out = append(out, filepath.ToSlash(name))
			}
		}
	} else {
		t.Log("not a git checkout: everything in the directory is judged")
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				var rel string
				rel, err = filepath.Rel(dir, name)
				out = append(out, filepath.ToSlash(rel))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func run(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, exit.Stderr)
		}
		t.Fatal(err)
	}
	return out
}

func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

func TestTopLevel(t *testing.T) { report(t, checkTop(open(t).names)) }

func TestImports(t *testing.T) {
	c := open(t)
	report(t, checkImports(c.sources, c.module))
}

func TestShape(t *testing.T) { report(t, checkShape(open(t).sources)) }

func TestNoBuildMachine(t *testing.T) {
	c := open(t)
	findings, err := checkMachines(c.fsys, c.names)
	if err != nil {
		t.Fatal(err)
	}
	report(t, findings)
}

// The go command must see the packages that the law was applied to.
func TestGoListAgrees(t *testing.T) {
	c := open(t)
	want := map[string]bool{}
	for _, s := range c.sources {
		want[s.folder()] = true
	}
	for _, line := range strings.Fields(string(run(t, c.dir, "go", "list", "-e", "./..."))) {
		if folder := strings.TrimPrefix(line, c.module+"/"); !want[folder] {
			t.Errorf("the go command builds %s, of which no file was judged", folder)
		}
	}
}

func TestWhatBinariesHold(t *testing.T) {
	c := open(t)
	if _, err := os.Stat(filepath.Join(c.dir, "cmd")); err != nil {
		t.Skip("there is no cmd yet")
	}
	out := run(t, c.dir, "go", "list", "-e", "-deps", "-json=ImportPath", "./cmd/...")
	report(t, checkLinked(t, out))
}

func checkLinked(t *testing.T, list []byte) []string {
	t.Helper()
	var out []string
	for d := json.NewDecoder(bytes.NewReader(list)); d.More(); {
		var p struct{ ImportPath string }
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		for _, b := range unlinked {
			if covers(b.path, p.ImportPath) {
				out = append(out, p.ImportPath+" is linked into a binary: "+b.reason)
			}
		}
	}
	return out
}
