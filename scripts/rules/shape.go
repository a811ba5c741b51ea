package rules

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"regexp"
	"sort"
	"strings"
)

// checkTop holds the names at the top of the tree to topLevel.
func checkTop(names []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, name := range names {
		top, _, _ := strings.Cut(name, "/")
		if _, ok := topLevel[top]; ok || strings.HasPrefix(top, ".") || seen[top] {
			continue
		}
		seen[top] = true
		out = append(out, top+" does not belong at the top of the tree")
	}
	return out
}

// checkShape holds files and packages to their size and to what they must and
// must not contain.
func checkShape(sources []source) []string {
	var out []string
	files, comments := map[string]map[string]bool{}, map[string][]string{}
	for _, s := range sources {
		if s.isTest() {
			out = append(out, checkTestFile(s)...)
			continue
		}
		if files[s.folder()] == nil {
			files[s.folder()] = map[string]bool{}
		}
		files[s.folder()][noun(s.name)] = true
		if s.file.Doc != nil {
			comments[s.folder()] = append(comments[s.folder()], s.name)
		}
		if s.lines > fileLines {
			out = append(out, fmt.Sprintf("%s has %d lines: a file above %d is two things, split it by noun", s.name, s.lines, fileLines))
		}
		out = append(out, checkFile(s)...)
	}
	for folder, nouns := range files {
		if n := len(nouns); n > packageFiles {
			out = append(out, fmt.Sprintf("%s has %d files: a package above %d is two things, split it by noun", folder, n, packageFiles))
		}
		switch c := comments[folder]; len(c) {
		case 0:
			out = append(out, folder+" has no package comment: say what it is and what it never does")
		case 1:
		default:
			out = append(out, fmt.Sprintf("%s has a package comment in each of %s", folder, strings.Join(c, ", ")))
		}
	}
	sort.Strings(out)
	return out
}

func checkFile(s source) []string {
	var out []string
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			out = append(out, fmt.Sprintf("%s:%d: init: whoever imports the package cannot decide whether and when it runs", s.name, s.at(f.Pos())))
		}
	}
	if s.pkg == "main" {
		return out
	}
	calls(s, func(on, method string, c *ast.CallExpr) {
		if on == "os" && method == "Exit" {
			out = append(out, fmt.Sprintf("%s:%d: os.Exit outside a main package: return an error", s.name, s.at(c.Pos())))
		}
	})
	return out
}

func checkTestFile(s source) []string {
	var out []string
	calls(s, func(on, method string, c *ast.CallExpr) {
		switch {
		case on == "time" && method == "Sleep":
			out = append(out, fmt.Sprintf("%s:%d: time.Sleep in a test: wait for what is meant, or use testing/synctest", s.name, s.at(c.Pos())))
		case on != "t" && on != "b" && on != "tb" && on != "f" && on != "m":
		case method == "SkipNow", method == "Skip" && len(c.Args) == 0:
			out = append(out, fmt.Sprintf("%s:%d: a test is skipped without a word", s.name, s.at(c.Pos())))
		}
	})
	return out
}

// calls visits every call of the form on.method(...).
func calls(s source, visit func(on, method string, c *ast.CallExpr)) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if sel, ok := c.Fun.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok {
					visit(x.Name, sel.Sel.Name, c)
				}
			}
		}
		return true
	})
}

// machines are paths of the machines that the product is made on, cut in two
// so that this file passes its own test.
var machines = []string{"/work" + "/main", "/work" + "/shared", "/root" + "/go/", "/root" + "/.cache"}

// checkMachines finds files that name a path of a build machine.
func checkMachines(fsys fs.FS, names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		for _, m := range machines {
			if i := bytes.Index(text, []byte(m)); i >= 0 {
				out = append(out, fmt.Sprintf("%s:%d: names %s, a path of a build machine", name, bytes.Count(text[:i], []byte("\n"))+1, m))
			}
		}
	}
	return out, nil
}

// platform is the end of a file's name that says where it is built. A file has
// one noun however many platforms it is written for.
var platform = regexp.MustCompile(`_(linux|darwin|windows|bsd|kqueue|unix|other)\.go$`)

func noun(name string) string { return platform.ReplaceAllString(name, ".go") }
