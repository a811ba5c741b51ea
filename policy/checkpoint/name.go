package checkpoint

import (
	"regexp"
	"runtime"
	"strings"

	"handoffd/engine/seal"
)

const (
	nameLength   = 96 // bytes of a session that a file name keeps
	digestLength = 16 // hex digits that keep changed names apart
)

var (
	unsafe   = regexp.MustCompile(`[^\w.-]`)
	reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$`)
)

// fileName is the name of a session's files. A session that is a plain name
// keeps it, as in the published engine. Any other gets a digest behind a
// character that no plain name has, so that no two sessions share a file and
// none is a path.
func fileName(session string) string { return fileNameOn(runtime.GOOS, session) }

func fileNameOn(goos, session string) string {
	folds := goos == "windows" || goos == "darwin"
	name := unsafe.ReplaceAllString(session, "_")
	if name == session && len(name) <= nameLength && name != "" && name[0] != '.' && !strings.HasSuffix(name, ".") &&
		!reserved.MatchString(name) && !(folds && strings.ToLower(name) != name) {
		return name
	}
	name = strings.Trim(name, ".")
	return name[:min(len(name), nameLength)] + "~" + seal.Sum([]byte(session))[:digestLength]
}
