package verify

import (
	"path/filepath"

	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// A commit renames its files one after the other, the manifest last. Where it
// was cut short between two of them, the manifest that was to follow still
// lies beside the old one, complete and sealed, and says what the files are
// that went before it. They are whole, and the next build or verb goes on from
// there.
const interrupted = "belongs to a revision whose commit was cut short; the next build completes it"

// staged returns the manifest of a commit that was cut short, nil if there is
// none.
func staged(dir string, m *session.Manifest) *session.Manifest {
	raw, err := safefile.ReadSmall(safefile.TempName(filepath.Join(dir, store.ManifestName)), store.MaxRender)
	if err != nil || session.Sealed(raw) != nil {
		return nil
	}
	next, err := session.Decode(raw)
	if err != nil || next.Session != m.Session || next.Revisions != m.Revisions+1 || next.Schema == 0 {
		return nil
	}
	return next
}

// ahead reports whether an appended file is already that of the commit that
// was cut short.
func (r *Report) ahead(dir, name string) bool {
	if r.next == nil {
		return false
	}
	a, ok := r.next.Artifact(name)
	if !ok {
		return false
	}
	got, n, err := hashFile(filepath.Join(dir, name), a.Bytes)
	return err == nil && n == a.Bytes && got == a.SHA256
}
