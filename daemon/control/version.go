package control

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// version is set at link time: -ldflags "-X handoffd/daemon/control.version=1.2.3".
var version string

// Release is what this program is built from.
type Release struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitzero"` // the work tree had changes
	Go       string `json:"go"`
}

// ThisRelease returns the release of the running program.
var ThisRelease = sync.OnceValue(func() Release {
	r := Release{Version: version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		if r.Version == "" {
			r.Version = "unknown"
		}
		return r
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Revision = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	if r.Version == "" {
		r.Version = info.Main.Version
	}
	if r.Version == "" {
		r.Version = "(devel)"
	}
	return r
})
