package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
)

// source is one Go file. Files of every platform are read alike, so that the
// law does not depend on where the test runs.
type source struct {
	name    string // slash-separated, from the top of the tree
	pkg     string // of the package clause
	lines   int
	imports []string
	file    *ast.File
	fset    *token.FileSet
}

func (s source) folder() string     { return path.Dir(s.name) }
func (s source) isTest() bool       { return strings.HasSuffix(s.name, "_test.go") }
func (s source) isExternal() bool   { return s.isTest() && strings.HasSuffix(s.pkg, "_test") }
func (s source) at(p token.Pos) int { return s.fset.Position(p).Line }

// parse reads the Go files among names.
func parse(fsys fs.FS, names []string) ([]source, error) {
	var out []source
	for _, name := range names {
		if !strings.HasSuffix(name, ".go") || hidden(name) {
			continue
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		s := source{name: name, lines: strings.Count(string(text), "\n"), fset: token.NewFileSet()}
		s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		s.pkg = s.file.Name.Name
		for _, i := range s.file.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			s.imports = append(s.imports, p)
		}
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out, nil
}

// hidden reports whether the go command leaves name out.
func hidden(name string) bool {
	for _, part := range strings.Split(path.Dir(name), "/") {
		if part == "testdata" || part == "vendor" || part != "." && strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") {
			return true
		}
	}
	base := path.Base(name)
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

// covers reports whether pattern, "x" or "x/...", takes in name.
func covers(pattern, name string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == dir || strings.HasPrefix(name, dir+"/")
	}
	return name == pattern
}
