package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// locate finds the working directory, which no record names: the directory of
// the project holds it in .project_root, and projects.json lists it by the
// name of that directory; before, and in every session still, the project is
// known by the SHA-256 of its path.
func (d *decoder) locate(r *record) {
	if d.Looked || d.Meta.CWD != "" {
		return
	}
	d.Looked = true
	up, project := projectOf(d.env.Path)
	if up == "" {
		return
	}
	if dir := strings.TrimSpace(plain.Text(string(d.env.Near(up + ".project_root")))); dir != "" && !strings.Contains(dir, "\n") {
		d.Meta.CWD = dir
		return
	}
	d.Meta.CWD = listed(d.env.Near(up+"../../projects.json"), func(dir, slug string) bool {
		sum := sha256.Sum256([]byte(dir))
		hash := hex.EncodeToString(sum[:])
		return slug == project || hash == project || hash == r.project
	})
}

// projectOf is the name of the project's directory in the path of a session,
// and the way there from the session's own; "" when it is stored elsewhere.
func projectOf(p string) (up, project string) {
	dir := path.Dir(filepath.ToSlash(p))
	for _, up := range []string{"../", "../../"} { // a subagent's is deeper
		if path.Base(dir) == "chats" {
			return up, path.Base(path.Dir(dir))
		}
		dir = path.Dir(dir)
	}
	return "", ""
}

// listed finds the project in projects.json that is asked for.
func listed(raw []byte, is func(dir, slug string) bool) (found string) {
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		found = ""
		v.Fields(func(name string) {
			if name != "projects" {
				return
			}
			v.Fields(func(dir string) {
				if slug := v.Text(); found == "" && is(dir, slug) {
					found = plain.Text(dir)
				}
			})
		})
	})
	if err != nil {
		return "" // half written
	}
	return found
}
