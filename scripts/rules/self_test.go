package rules

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// A law that cannot be broken holds nothing: here it is broken in every way on
// trees that do not exist.

const doc = "// Package p is made up.\n"

// plant turns name -> text into a tree.
func plant(files map[string]string) (fstest.MapFS, []string) {
	fsys := fstest.MapFS{}
	var names []string
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
		names = append(names, name)
	}
	slices.Sort(names)
	return fsys, names
}

// importing is a file of folder/name that imports paths.
func importing(pkg string, paths ...string) string {
	var b strings.Builder
	b.WriteString(doc + "package " + pkg + "\n")
	for _, p := range paths {
		b.WriteString("import _ \"" + p + "\"\n")
	}
	return b.String()
}

func TestLawIsWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range law {
		if seen[r.folder] || r.reason == "" {
			t.Errorf("%s: listed twice, or without a reason", r.folder)
		}
		seen[r.folder] = true
		top, _, _ := strings.Cut(r.folder, "/")
		if _, ok := topLevel[top]; !ok {
			t.Errorf("%s is not below a folder of the top", r.folder)
		}
	}
	for _, r := range law {
		for _, m := range r.may {
			if folder := strings.TrimSuffix(m, "/..."); !seen[folder] && folder != "engine" {
				t.Errorf("%s may import %s, which is no room", r.folder, m)
			}
		}
	}
	// Earlier stages stand earlier in the table, so the law has no cycle.
	order := map[string]int{}
	for i, r := range law {
		order[r.folder] = i
	}
	for i, r := range law {
		for _, m := range r.may {
			if j, ok := order[m]; ok && strings.HasPrefix(r.folder, "engine/") && j >= i {
				t.Errorf("%s may import %s, a later stage", r.folder, m)
			}
		}
	}
}

func TestImportLawCanFail(t *testing.T) {
	for _, c := range []struct {
		file, pkg string
		imports   []string
		broken    string // part of the finding; "" keeps the law
	}{
		{"cmd/handoffd/main.go", "main", []string{"m/daemon/server", "m/policy/deny", "m/engine/verb", "m/configs", "os"}, ""},
		{"cmd/handoffd/main.go", "main", []string{"m/watch"}, "imports watch"},
		{"cmd/handoffd/main.go", "main", []string{"m/deploy"}, "imports deploy"},
		{"daemon/server/a.go", "server", []string{"m/daemon/control", "m/watch", "m/deploy", "m/engine/pipeline"}, ""},
		{"daemon/a.go", "daemon", []string{"m/cmd/handoffd"}, "imports cmd/handoffd"},
		{"daemon/control/a.go", "control", []string{"m/engine/fault"}, ""},
		{"daemon/control/a.go", "control", []string{"m/daemon/server"}, "imports daemon/server"},
		{"daemon/schedule/a.go", "schedule", []string{"m/engine/store"}, "imports engine/store"},
		{"watch/a.go", "watch", []string{"m/watch/poll", "github.com/fsnotify/fsnotify"}, ""},
		{"watch/a.go", "watch", []string{"m/engine/fault"}, "nothing of ours"},
		{"policy/deny/a.go", "deny", []string{"m/policy/mutation", "m/engine/store", "m/engine/render"}, ""},
		{"policy/deny/a.go", "deny", []string{"m/engine/pipeline"}, "imports engine/pipeline"},
		{"policy/deny/a.go", "deny", []string{"m/engine/verb"}, "imports engine/verb"},
		{"policy/deny/a.go", "deny", []string{"m/configs"}, "imports configs"},
		{"configs/a.go", "configs", []string{"m/engine/fault", "m/configs/document"}, ""},
		{"configs/a.go", "configs", []string{"m/engine/store"}, "imports engine/store"},
		{"deploy/a.go", "deploy", []string{"m/configs"}, "imports configs"},
		{"scripts/x/a.go", "x", []string{"m/engine/fault"}, "imports engine/fault"},
		{"engine/turn/a.go", "turn", []string{"m/engine/fault"}, "imports engine/fault"},
		{"engine/sanitize/a.go", "sanitize", []string{"m/engine/turn"}, "imports engine/turn"},
		{"engine/session/a.go", "session", []string{"m/engine/turn", "m/engine/seal", "m/engine/fault"}, ""},
		{"engine/session/a.go", "session", []string{"m/engine/safefile"}, "imports engine/safefile"},
		{"engine/harness/a.go", "harness", []string{"m/engine/safefile", "m/engine/sanitize"}, ""},
		{"engine/harness/a.go", "harness", []string{"m/engine/harness/codex"}, "imports engine/harness/codex"},
		{"engine/harness/a.go", "harness", []string{"m/engine/harness/all"}, "imports engine/harness/all"},
		{"engine/harness/codex/a.go", "codex", []string{"m/engine/harness", "m/engine/turn", "m/engine/harness/codex/rollout"}, ""},
		{"engine/harness/codex/rollout/a.go", "rollout", []string{"m/engine/harness"}, ""},
		{"engine/harness/codex/a.go", "codex", []string{"m/engine/harness/claude"}, "imports engine/harness/claude"},
		{"engine/harness/codex/a.go", "codex", []string{"m/engine/store"}, "imports engine/store"},
		{"engine/harness/codex/a.go", "codex", []string{"m/engine/safefile"}, "imports engine/safefile"},
		{"engine/harness/codex/a.go", "codex", []string{"m/engine/harness/harnesstest"}, "imports engine/harness/harnesstest"},
		{"engine/harness/codex/a_test.go", "codex", []string{"m/engine/harness/harnesstest"}, ""},
		{"engine/harness/codex/a_test.go", "codex", []string{"m/engine/store"}, "imports engine/store"},
		{"engine/harness/codex/a_test.go", "codex_test", []string{"m/engine/store", "m/engine/harness/all", "m/engine/harness/claude"}, ""},
		{"engine/harness/codex/a_test.go", "codex_test", []string{"m/daemon"}, "imports daemon"},
		{"engine/store/a.go", "store", []string{"m/engine/safefile", "m/engine/session"}, ""},
		{"engine/store/a.go", "store", []string{"m/engine/harness"}, "imports engine/harness"},
		{"engine/store/a_test.go", "store_test", []string{"m/engine/pipeline"}, ""},
		{"engine/store/a_test.go", "store_test", []string{"m/policy/deny"}, "imports policy/deny"},
		{"engine/ingest/a.go", "ingest", []string{"m/engine/harness", "m/engine/store"}, ""},
		{"engine/ingest/a.go", "ingest", []string{"m/engine/render"}, "imports engine/render"},
		{"engine/render/a.go", "render", []string{"m/engine/sanitize", "bytes"}, ""},
		{"engine/render/a.go", "render", []string{"m/engine/store"}, "imports engine/store"},
		{"engine/render/a.go", "render", []string{"os"}, "imports os: the package is pure"},
		{"engine/render/a.go", "render", []string{"io/fs"}, "imports io/fs"},
		{"engine/render/a.go", "render", []string{"net/netip"}, "imports net/netip"},
		{"engine/render/a_test.go", "render", []string{"os", "flag"}, ""},
		{"engine/index/a.go", "index", []string{"m/engine/render"}, "imports engine/render"},
		{"engine/pipeline/a.go", "pipeline", []string{"m/engine/index", "m/engine/harness/all"}, ""},
		{"engine/pipeline/a.go", "pipeline", []string{"m/engine/verify"}, "imports engine/verify"},
		{"engine/verify/a.go", "verify", []string{"m/engine/pipeline"}, "imports engine/pipeline"},
		{"engine/verb/a.go", "verb", []string{"m/engine/pipeline", "m/engine/verify"}, ""},
		{"engine/verb/a.go", "verb", []string{"m/daemon/control"}, "imports daemon/control"},
		{"engine/verb/a.go", "verb", []string{"net"}, "imports net"},
		{"engine/verb/a.go", "verb", []string{"net/http/httputil"}, "imports net/http/httputil"},
		{"engine/verb/a.go", "verb", []string{"log/slog"}, "imports log/slog"},
		{"engine/verb/a.go", "verb", []string{"log"}, "imports log:"},
		{"engine/verb/a.go", "verb", []string{"flag"}, "imports flag"},
		{"engine/verb/a.go", "verb", []string{"net/url", "go/version"}, ""},
		{"engine/verb/a_windows.go", "verb", []string{"log"}, "a_windows.go imports log"},
		{"engine/extra/a.go", "extra", nil, "not in the law"},
		{"util/a.go", "util", nil, "not in the law"},
		{"a.go", "m", nil, "not in the law"},
	} {
		fsys, names := plant(map[string]string{c.file: importing(c.pkg, c.imports...)})
		sources, err := parse(fsys, names)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(checkImports(sources, "m"), "\n")
		if c.broken == "" && got != "" || c.broken != "" && !strings.Contains(got, c.broken) {
			t.Errorf("%s (package %s) imports %v: findings %q, want %q", c.file, c.pkg, c.imports, got, c.broken)
		}
	}
}

func TestFormatListCanFail(t *testing.T) {
	files := map[string]string{
		"engine/harness/claude/a.go": importing("claude"),
		"engine/harness/codex/a.go":  importing("codex"),
		"engine/harness/all/a.go":    importing("all", "m/engine/harness/claude"),
		"daemon/a.go":                importing("daemon", "m/engine/harness/claude"),
		"daemon/b.go":                importing("daemon", "m/engine/harness/codex"),
		"daemon/a_test.go":           importing("daemon", "m/engine/harness/claude", "m/engine/harness/codex"),
		"watch/a.go":                 importing("watch"),
	}
	fsys, names := plant(files)
	sources, err := parse(fsys, names)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, checkImports(sources, "m"),
		"daemon imports engine/harness/claude, engine/harness/codex: only engine/harness/all",
		"engine/harness/all does not import engine/harness/codex")
}

func TestShapeCanFail(t *testing.T) {
	many := map[string]string{}
	for i := range packageFiles + 1 {
		many["engine/verb/f"+strings.Repeat("x", i)+".go"] = "package verb\n"
	}
	many["engine/verb/f.go"] = doc + "package verb\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"clean", map[string]string{
			"watch/a.go":      doc + "package watch\n\nfunc (x T) init() {}\n\ntype T int\n",
			"watch/b.go":      "//go:build linux\n\npackage watch\n",
			"watch/a_test.go": "package watch\nfunc f(t T, d D) { t.Skip(\"why\"); d.Skip() }\n",
			"cmd/x/main.go":   doc + "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(1) }\n",
			"watch/c.go":      "package watch\n" + strings.Repeat("\n", fileLines-1),
		}, nil},
		{"no comment", map[string]string{"watch/a.go": "package watch\n"}, []string{"watch has no package comment"}},
		{"two comments", map[string]string{"watch/a.go": doc + "package watch\n", "watch/b.go": doc + "package watch\n"}, []string{"in each of watch/a.go, watch/b.go"}},
		{"init", map[string]string{"watch/a.go": doc + "package watch\n\nfunc init() {}\n"}, []string{"watch/a.go:4: init"}},
		{"init in main", map[string]string{"cmd/x/a.go": doc + "package main\n\nfunc init() {}\n"}, []string{"cmd/x/a.go:4: init"}},
		{"exit", map[string]string{"watch/a.go": doc + "package watch\n\nimport \"os\"\n\nfunc f() { os.Exit(1) }\n"}, []string{"watch/a.go:6: os.Exit"}},
		{"long file", map[string]string{"watch/a.go": doc + "package watch\n" + strings.Repeat("\n", fileLines)}, []string{"watch/a.go has 502 lines"}},
		{"long test", map[string]string{"watch/a.go": doc + "package watch\n", "watch/a_test.go": "package watch\n" + strings.Repeat("\n", fileLines)}, nil},
		{"large package", many, []string{"engine/verb has 13 files"}},
		{"sleep", map[string]string{"watch/a_test.go": "package watch\nfunc f() { time.Sleep(1) }\n"}, []string{"watch/a_test.go:2: time.Sleep"}},
		{"silent skips", map[string]string{"watch/a_test.go": "package watch\nfunc f() {\n t.Skip()\n b.SkipNow()\n}\n"}, []string{"watch/a_test.go:3: a test is skipped", "watch/a_test.go:4: a test is skipped"}},
		{"hidden", map[string]string{"watch/testdata/a.go": "package x\n", "watch/_old/a.go": "package x\n", ".ci/a.go": "package x\n"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys, names := plant(c.files)
			sources, err := parse(fsys, names)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, checkShape(sources), c.want...)
		})
	}
}

func TestOthersCanFail(t *testing.T) {
	expect(t, checkTop([]string{".ci/run", ".gitignore", "LICENSE", "cmd/x", "go.mod", "internal/a.go", "internal/b.go", "Makefile"}),
		"internal does not belong", "Makefile does not belong")

	fsys, names := plant(map[string]string{"a": "x\ncd " + machines[0] + "\n", "b": "work/main"})
	got, err := checkMachines(fsys, names)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, got, "a:2: names "+machines[0])

	expect(t, checkLinked(t, []byte(`{"ImportPath":"os"} {"ImportPath":"testing"} {"ImportPath":"github.com/santhosh-tekuri/jsonschema/v6/kind"}`)),
		"testing is linked", "jsonschema/v6/kind is linked")

	if _, err := parse(fstest.MapFS{"a.go": {Data: []byte("package")}}, []string{"a.go"}); err == nil {
		t.Error("a file that is no Go was judged")
	}
}

// expect asserts one finding for each part, in order.
func expect(t *testing.T, got []string, parts ...string) {
	t.Helper()
	if len(got) != len(parts) {
		t.Fatalf("%d findings, want %d:\n%s", len(got), len(parts), strings.Join(got, "\n"))
	}
	for i, p := range parts {
		if !strings.Contains(got[i], p) {
			t.Errorf("finding %q, want %q in it", got[i], p)
		}
	}
}
