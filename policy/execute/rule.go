package execute

import (
	"bytes"
	"os"
	"path/filepath"

	"handoffd/engine/safefile"
	"handoffd/policy/permission"
)

// ruleSuffix names what a child wrote in the place of the policy.
const ruleSuffix = ".written-by-child"

// rule is the policy's file as it was before a child ran. The file lies in the
// workspace, which the child may write to; what it makes of it must not rule
// over the next one.
type rule struct {
	path string
	data []byte
	had  bool
}

func (r *Runner) rule() rule {
	f := rule{path: r.Scope.Source}
	if f.path == "" {
		f.path = filepath.Join(r.Scope.Workspace, permission.FileName)
	}
	data, err := safefile.ReadSmall(f.path, maxRule)
	f.data, f.had = data, err == nil
	return f
}

// maxRule bounds a policy's file, in bytes.
const maxRule = 4 << 20

// restore puts the policy back if it is not as it was, and returns where what
// stood in its place is now, "" when nothing had changed.
func (f rule) restore() (aside string) {
	data, err := safefile.ReadSmall(f.path, maxRule)
	if f.had && err == nil && bytes.Equal(data, f.data) {
		return ""
	}
	if _, err := os.Lstat(f.path); !f.had && err != nil {
		return ""
	}
	aside = f.path + ruleSuffix
	if err := os.Rename(f.path, aside); err != nil && !os.IsNotExist(err) {
		aside = f.path
	}
	if f.had {
		_ = safefile.Replace(f.path, f.data)
	}
	return aside
}
