package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// tree describes a directory: a name that ends in a slash is a directory, any
// other a file with its text.
type tree map[string]string

func (tr tree) plant(t *testing.T, top string) {
	t.Helper()
	for name, text := range tr {
		if strings.HasSuffix(name, "/") {
			mkdir(t, top, name)
		} else {
			write(t, text, top, name)
		}
	}
}

func TestResolveRoot(t *testing.T) {
	const cfg = StoreFile
	deep := func(n int) string { return strings.Repeat("d/", n) }
	for _, c := range []struct {
		name   string
		tree   tree
		cwd    string
		flag   string
		env    []string
		root   string
		source RootSource
		file   string
	}{
		{name: "nothing", cwd: "p", root: "home/.local/share/handoff", source: RootDefault},
		{name: "data home", cwd: "p", env: []string{"XDG_DATA_HOME=TOP/data"}, root: "data/handoff", source: RootDefault},
		{name: "relative data home is ignored", cwd: "p", env: []string{"XDG_DATA_HOME=data"}, root: "home/.local/share/handoff", source: RootDefault},
		{name: "discover", tree: tree{"p/handoffs/": ""}, cwd: "p/q/r", root: "p/handoffs", source: RootDiscover},
		{name: "handoffs is a file", tree: tree{"p/handoffs": ""}, cwd: "p", root: "home/.local/share/handoff", source: RootDefault},
		{name: "handoff_dir is relative to the file", tree: tree{"p/" + cfg: `{"handoff_dir":"h"}`}, cwd: "p/q", root: "p/h", source: RootConfig, file: "p/" + cfg},
		{name: "storage.path beats handoff_dir", tree: tree{"p/" + cfg: `{"handoff_dir":"h","storage":{"path":"s"}}`}, cwd: "p", root: "p/s", source: RootConfig, file: "p/" + cfg},
		{name: "absolute path", tree: tree{"p/" + cfg: `{"handoff_dir":"TOP/x"}`}, cwd: "p", root: "x", source: RootConfig, file: "p/" + cfg},
		{name: "path upwards", tree: tree{"p/" + cfg: `{"handoff_dir":"../x/"}`}, cwd: "p", root: "x", source: RootConfig, file: "p/" + cfg},
		{name: "home in a file", tree: tree{"p/" + cfg: `{"handoff_dir":"~/x"}`}, cwd: "p", root: "home/x", source: RootConfig, file: "p/" + cfg},
		{name: "another's home is a name", tree: tree{"p/" + cfg: `{"handoff_dir":"~bob/x"}`}, cwd: "p", root: "p/~bob/x", source: RootConfig, file: "p/" + cfg},
		{name: "file before directory", tree: tree{"p/" + cfg: `{"handoff_dir":"h"}`, "p/handoffs/": ""}, cwd: "p", root: "p/h", source: RootConfig, file: "p/" + cfg},
		{name: "file without a directory", tree: tree{"p/" + cfg: `{"project_name":"n"}`, "p/handoffs/": ""}, cwd: "p", root: "p/handoffs", source: RootDiscover, file: "p/" + cfg},
		{name: "nearer directory beats farther file", tree: tree{"p/" + cfg: `{"handoff_dir":"h"}`, "p/q/handoffs/": ""}, cwd: "p/q", root: "p/q/handoffs", source: RootDiscover, file: "p/" + cfg},
		{name: "nearer file beats farther", tree: tree{"p/" + cfg: `{"handoff_dir":"out"}`, "p/q/" + cfg: `{"handoff_dir":"in"}`}, cwd: "p/q", root: "p/q/in", source: RootConfig, file: "p/q/" + cfg},
		{name: "nearer handoff_dir beats farther storage.path", tree: tree{"p/" + cfg: `{"storage":{"path":"out"}}`, "p/q/" + cfg: `{"handoff_dir":"in"}`}, cwd: "p/q", root: "p/q/in", source: RootConfig, file: "p/q/" + cfg},
		{name: "farther file supplies the directory", tree: tree{"p/" + cfg: `{"handoff_dir":"out"}`, "p/q/" + cfg: `{"project_name":"in"}`}, cwd: "p/q", root: "p/out", source: RootConfig, file: "p/q/" + cfg},
		{name: "ten levels up", tree: tree{cfg: `{"handoff_dir":"h"}`}, cwd: deep(10), root: "h", source: RootConfig, file: cfg},
		{name: "eleven levels up", tree: tree{cfg: `{"handoff_dir":"h"}`}, cwd: deep(11), root: "home/.local/share/handoff", source: RootDefault},
		{name: "env", tree: tree{"p/" + cfg: `{"handoff_dir":"h"}`}, cwd: "p", env: []string{"HANDOFFS_ROOT=TOP/e"}, root: "e", source: RootEnv, file: "p/" + cfg},
		{name: "relative env", cwd: "p", env: []string{"HANDOFFS_ROOT=../e"}, root: "e", source: RootEnv},
		{name: "home in env", cwd: "p", env: []string{"HANDOFFS_ROOT=~/e"}, root: "home/e", source: RootEnv},
		{name: "flag beats env", cwd: "p", flag: "f", env: []string{"HANDOFFS_ROOT=TOP/e"}, root: "p/f", source: RootFlag},
		{name: "flag is the home", cwd: "p", flag: "~", root: "home", source: RootFlag},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := scratch(t)
			put := func(s string) string { return strings.ReplaceAll(s, "TOP", top) }
			for name, text := range c.tree {
				c.tree[name] = put(text)
			}
			c.tree.plant(t, top)
			for i := range c.env {
				c.env[i] = put(c.env[i])
			}
			got, err := Resolve(Input{CWD: mkdir(t, top, c.cwd), RootFlag: c.flag, Getenv: env(c.env...), HomeDir: filepath.Join(top, "home")})
			if err != nil {
				t.Fatal(err)
			}
			file := c.file
			if file != "" {
				file = filepath.Join(top, file)
			}
			if got.Root != filepath.Join(top, c.root) || got.RootSource != c.source || got.File != file {
				t.Errorf("root %s (%s) file %q; want %s (%s) file %q", got.Root, got.RootSource, got.File, c.root, c.source, c.file)
			}
			if _, err := os.Stat(filepath.Join(top, "home")); err == nil {
				t.Error("something was created below the home directory")
			}
		})
	}
}

func TestResolveMergesKeyByKey(t *testing.T) {
	top := scratch(t)
	outer := write(t, `{"project_name":"outer","max_brief_tokens":5000,"linking":{"enabled":false,"min_overlap_score":1},
		"capture":{"include_tool_outputs":false,"exclude_patterns":["x/"]},"auto_capture":true,"handoff_dir":"h",
		"integrity":{"verify_on_read":true},"gate":{"mode":"advise","enforce":true},"exclude_from_handoff":["a"]}`, top, StoreFile)
	inner := write(t, `{"project_name":" inner ","linking":{"enabled":true},"capture":{"truncate_tool_outputs":true,"max_tool_output_length":7},"exclude_from_handoff":[],"gate":{"mode":"enforce"}}`, top, "p", StoreFile)
	r, err := Resolve(Input{CWD: mkdir(t, top, "p/q"), Getenv: env("HANDOFFS_ROOT=" + top), HomeDir: top})
	if err != nil {
		t.Fatal(err)
	}
	origin := r.Origin
	r.Origin = nil
	want := Resolved{
		Root: top, RootSource: RootEnv, File: inner, Schema: StoreSchemaFile,
		ProjectName: "inner", AutoCapture: true, MaxBriefTokens: 5000, ExcludeFromHandoff: Patterns{},
		Capture:        Capture{ExcludePatterns: Patterns{"x/"}, TruncateToolOutputs: true, MaxToolOutputLength: 7},
		LinkingEnabled: true, MinOverlap: 1, VerifyOnRead: true, Gate: Gate{Enforce: true, Mode: GateEnforce},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got\n%+v\nwant\n%+v", r, want)
	}
	for key, file := range map[string]string{
		"project_name": inner, "linking.enabled": inner, "linking.min_overlap_score": outer, "handoff_dir": outer,
		"capture.include_tool_outputs": outer, "capture.truncate_tool_outputs": inner, "gate.mode": inner,
		"gate.enforce": outer, "storage.path": OriginDefault, "version": OriginDefault,
	} {
		if origin[key] != file {
			t.Errorf("%s comes from %s, want %s", key, origin[key], file)
		}
	}
}

func TestResolveNullIsAValue(t *testing.T) {
	top := scratch(t)
	write(t, `{"project_name":"outer"}`, top, StoreFile)
	inner := write(t, `{"project_name":null}`, top, "p", StoreFile)
	r, err := Resolve(Input{CWD: filepath.Join(top, "p"), Getenv: noEnv, HomeDir: top})
	if err != nil || r.ProjectName != "" || r.Origin["project_name"] != inner {
		t.Errorf("project %q from %s, %v", r.ProjectName, r.Origin["project_name"], err)
	}
}

func TestResolveFollowsTheCurrentDirectory(t *testing.T) {
	top := scratch(t)
	write(t, `{"handoff_dir":"h"}`, top, "real", StoreFile)
	link := filepath.Join(mkdir(t, top, "elsewhere"), "link")
	if err := os.Symlink(mkdir(t, top, "real/sub"), link); err != nil {
		t.Fatal(err)
	}
	r, err := Resolve(Input{CWD: link, Getenv: noEnv, HomeDir: top})
	if err != nil || r.Root != filepath.Join(top, "real", "h") {
		t.Errorf("root %s, %v", r.Root, err)
	}
}

func TestResolveWithoutDirectories(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Input
		err  string
	}{
		{"no home", Input{CWD: "/"}, "home directory is not known"},
		{"relative home", Input{CWD: "/", HomeDir: "h"}, "home directory is not known"},
		{"no directory", Input{RootFlag: "x", HomeDir: "/h"}, "x is relative"},
		{"home for a flag", Input{CWD: "/", RootFlag: "~/x"}, "home directory is not known"},
		{"removed directory", Input{CWD: "/nowhere/at/all", HomeDir: "/h"}, ""},
		{"nothing needed", Input{RootFlag: "/x"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Getenv = noEnv
			_, err := Resolve(c.in)
			if c.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, c.err)
		})
	}
}

func TestResolveUnusableFiles(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(t *testing.T, path string)
		err   string
	}{
		{"directory", func(t *testing.T, p string) { mkdir(t, p) }, "is not a regular file"},
		{"dangling link", func(t *testing.T, p string) { symlink(t, "nowhere", p) }, "cannot read"},
		{"loop", func(t *testing.T, p string) { symlink(t, p, p) }, "cannot read"},
		{"too large", func(t *testing.T, p string) { write(t, "{}"+strings.Repeat(" ", FileMax), p) }, "is larger than 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := scratch(t)
			path := filepath.Join(top, StoreFile)
			c.plant(t, path)
			_, err := Resolve(Input{CWD: top, Getenv: env("HANDOFFS_ROOT=" + top), HomeDir: top})
			refused(t, err, path, c.err)
		})
	}
	t.Run("largest", func(t *testing.T) {
		top := scratch(t)
		write(t, "{}"+strings.Repeat(" ", FileMax-2), top, StoreFile)
		if _, err := Resolve(Input{CWD: top, Getenv: noEnv, HomeDir: top}); err != nil {
			t.Error(err)
		}
	})
}

func symlink(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

func TestResolveNamesEveryFault(t *testing.T) {
	top := scratch(t)
	var b strings.Builder
	for _, text := range append(wrongs,
		`[]`, `null`, `{`, "{\n  \"version\": 1,\n}", `{} {}`, "\xff", `{"version":1,"version":1}`,
		`{"integrity":{"sha256_manifest":false},"storage":{"type":"sqlite"},"version":2}`,
		`{"handoff_dir":"a\u0000b"}`, `{"exclude_from_handoff":["[","ok"],"capture":{"exclude_patterns":["a/[/b"]}}`,
		`{"\u001b]0;x\u0007":1}`, `{"a\nb":1}`, `{"version":"`+strings.Repeat("x", 200)+`"}`,
		`{"exclude_from_handoff":[`+strings.Repeat("1,", 60)+`1]}`,
	) {
		write(t, text, top, StoreFile)
		_, err := Resolve(Input{CWD: top, Getenv: noEnv, HomeDir: top})
		if len(text) > 300 {
			text = text[:300] + "..."
		}
		b.WriteString("# " + strings.ToValidUTF8(text, "?") + "\n")
		if err == nil {
			b.WriteString("ok\n")
			continue
		}
		refused(t, err)
		b.WriteString(err.Error() + "\n")
	}
	golden(t, "store-faults.golden", b.String(), map[string]string{"TOP": top})
}

func TestResolveNamesEveryFile(t *testing.T) {
	top := scratch(t)
	write(t, `{"version":2}`, top, StoreFile)
	write(t, `{"nope":1}`, top, "p", StoreFile)
	_, err := Resolve(Input{CWD: filepath.Join(top, "p"), RootFlag: top, Getenv: noEnv, HomeDir: top})
	refused(t, err,
		filepath.Join(top, "p", StoreFile)+" is invalid against handoff.config.schema.json:\n  - handoff.config.json: unknown key \"nope\"\n",
		filepath.Join(top, StoreFile)+" is invalid against handoff.config.schema.json:\n  - handoff.config.json.version: must be one of [1], got 2")
}

func TestResolveIsCheap(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage counters slow the code down")
	}
	top := scratch(t)
	cwd := mkdir(t, top, strings.Repeat("d/", 10))
	in := Input{CWD: cwd, Getenv: noEnv, HomeDir: top}
	best := time.Hour
	for range 20 {
		start := time.Now()
		if _, err := Resolve(in); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	if best > 2*time.Millisecond {
		t.Errorf("%v to resolve without a file", best)
	}
}

func BenchmarkResolve(b *testing.B) {
	dir := b.TempDir()
	for name, text := range map[string]string{"none": "", "file": `{"handoff_dir":"h","linking":{"enabled":false}}`} {
		b.Run(name, func(b *testing.B) {
			cwd := filepath.Join(dir, name, "a", "b", "c")
			if err := os.MkdirAll(cwd, 0o755); err != nil {
				b.Fatal(err)
			}
			if text != "" {
				if err := os.WriteFile(filepath.Join(dir, name, StoreFile), []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := Resolve(Input{CWD: cwd, Getenv: noEnv, HomeDir: dir}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("schema", func(b *testing.B) {
		for b.Loop() {
			mustCompile(storeSchemaText)
		}
	})
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.log", "a/b.log", true},
		{"*.log", "a.log/b", false},
		{".env", "x/.env", true},
		{".env", "x/.env.d", false},
		{"node_modules/", "a/node_modules/b/c.js", true},
		{"node_modules/", "node_modules/c.js", true},
		{"node_modules/", "a/node_modules", false},
		{"build/", "rebuild/x", false},
		{"a/b/", "x/a/b/c", true},
		{"a/b/", "a/x/b/c", false},
		{"a/*.md", "a/b.md", true},
		{"a/*.md", "x/a/b.md", false},
		{"**/a/*.md", "x/y/a/b.md", true},
		{"a/**/z", "a/z", true},
		{"a/**/z", "a/b/c/z", true},
		{"a/**/z", "a/b/c/y", false},
		{"a/**", "a/b/c", true},
		{"**/x/**/y", "x/a/x/b/y", true},
		{"/a/b", "a/b", true},
		{"[", "[", false},
		{"", "x", false},
	} {
		if got := (Patterns{c.pattern}).Match(c.name); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.name, got)
		}
	}
	long := strings.Repeat("**/a/", 200) + "b"
	if (Patterns{long}).Match(strings.Repeat("a/", 5000) + "c") {
		t.Error("matched")
	}
}

func TestSudoDoesNotWriteToTheUsersHome(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() != 0 {
		t.Skip("only root can be told from the owner of a home directory")
	}
	top := scratch(t)
	home := mkdir(t, top, "home")
	if err := os.Chown(home, 12345, 12345); err != nil {
		t.Skip("this root may not change owners:", err)
	}
	in := Input{CWD: top, Getenv: env("SUDO_UID=12345"), HomeDir: home}
	_, err := Resolve(in)
	refused(t, err, "running as root with the home directory")
	in.RootFlag = top
	if _, err := Resolve(in); err != nil {
		t.Errorf("a named store: %v", err)
	}
	in.RootFlag, in.Getenv = "", noEnv
	if _, err := Resolve(in); err != nil {
		t.Errorf("a container's home: %v", err)
	}
}
