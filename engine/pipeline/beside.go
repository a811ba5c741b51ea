package pipeline

import (
	"fmt"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/ingest"
	"handoffd/engine/safefile"
)

const (
	// besideBytes bounds a file that is read beside a source.
	besideBytes = 1 << 20
	// besideSteps is how far up from the source's directory one may be: the
	// list of projects of Kimi CLI is five above a subagent's context.
	besideSteps = 5
)

// env is what the decoder of a source may ask.
func (b *Builder) env(f *ingest.File) harness.Env {
	return harness.Env{Session: b.turnsOf, Path: f.Name(), Beside: beside(f.Name())}
}

// beside reads small files near the source at path. The names come from the
// formats, never from a transcript.
func beside(path string) func(rel string) ([]byte, error) {
	dir := filepath.Dir(path)
	return func(rel string) ([]byte, error) {
		local := filepath.FromSlash(rel)
		if filepath.IsAbs(local) || filepath.VolumeName(local) != "" || strings.ContainsRune(rel, 0) {
			return nil, fmt.Errorf("read beside %s: %q is not relative", path, rel)
		}
		local = filepath.Clean(local)
		if strings.Count(local, ".."+string(filepath.Separator)) > besideSteps {
			return nil, fmt.Errorf("read beside %s: %q is too far away", path, rel)
		}
		return safefile.ReadSmall(filepath.Join(dir, local), besideBytes)
	}
}
