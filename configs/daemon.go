package configs

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"handoffd/configs/document"
	"handoffd/engine/fault"
)

// DaemonInput is what the process knows before it reads handoffd.json.
type DaemonInput struct {
	CWD        string // absolute; what a relative flag or variable starts from
	ConfigFlag string // --config; "" when not given
	RootFlag   string // --root; "" when not given
	Getenv     func(string) string
	HomeDir    string // absolute; "" when unknown
	CPUs       int    // 0 asks the runtime
}

// Daemon is the configuration of the daemon. Every path is absolute.
type Daemon struct {
	File    string // "" when there is none and everything is a default
	Version int
	Store   string // need not exist
	// Sources is nil when no file lists any: then every known harness
	// directory below the home directory is watched. An empty list that is not
	// nil watches nothing.
	Sources   []Source
	MinFresh  time.Duration // least time between two builds of a session
	Quiet     time.Duration // rest before a build
	Sweep     time.Duration // time between two scans, before jitter
	Workers   int           // at least 1
	Socket    string        // "" when the file names none
	Log       Log
	Limits    Limits
	Redact    Redact
	Gate      DaemonGate
	Retention Retention
	// Origin gives for every key of the schema the file that set it, "--root",
	// "HANDOFFS_ROOT", or OriginDefault.
	Origin map[string]string

	home string
}

// Source is one directory to watch.
type Source struct {
	Harness string `json:"harness"`
	Root    string `json:"root"`
	// Include and Exclude are held against the path below Root. An empty
	// Include takes every file that the format takes; Exclude beats it.
	Include Patterns `json:"include"`
	Exclude Patterns `json:"exclude"`
}

// Log says how the daemon logs.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // auto, text or json
	File   string // "" is stderr
}

// Limits bound what a watched directory can cost.
type Limits struct {
	LineBytes        int64 // longest line that is read
	FileBytesPerPass int64 // read from one file before others have their turn
	Files            int   // directory entries below one root
	Depth            int   // directory levels below one root
}

// Redact says what becomes of secrets in the store.
type Redact struct {
	Enabled bool
	Allow   []string // exact texts that are no secrets
}

// DaemonGate is the key "gate" where no project says otherwise.
type DaemonGate struct {
	Mode    GateMode
	Signals []string // of pct, depth, bytes
	Enforce bool     // a rejected session is not promoted
}

// Retention says how long side products are kept.
type Retention struct {
	QuarantineDays int   // 0 keeps them
	LogBytes       int64 // 0 never replaces the log file
}

// Defaults of handoffd.json.
const (
	DefaultMinFresh         = 60 * time.Second
	DefaultQuiet            = 2 * time.Second
	DefaultSweep            = 60 * time.Second
	DefaultLineBytes        = 32 << 20
	DefaultFileBytesPerPass = 256 << 20
	DefaultFiles            = 100000
	DefaultDepth            = 32
	DefaultLogBytes         = 10 << 20
)

func defaultSignals() []string { return []string{"pct", "depth", "bytes"} }

var daemonFormat = format{
	name:       DaemonFile,
	schemaName: DaemonSchemaFile,
	schema:     func() *document.Schema { return daemonSchema() },
	further:    daemonFaults,
}

// daemonFaults refuses what the schema cannot say and no directory need be
// looked at for.
func daemonFaults(l layer) []document.Fault {
	var out []document.Fault
	add := func(key, format string, args ...any) {
		out = append(out, document.Fault{Path: key, Msg: fmt.Sprintf(format, args...)})
	}
	for _, key := range []string{"store", "socket", "log.file"} {
		if v, ok := l.values[key].(string); ok {
			if msg := unusablePath(v); msg != "" {
				add(key, "%s", msg)
			}
		}
	}
	list, _ := l.values["sources"].([]any)
	for i, e := range list {
		at := fmt.Sprintf("sources[%d]", i)
		o, _ := e.(*document.Object)
		if o == nil {
			continue
		}
		src := layer{values: o.Values}
		if msg := unusablePath(src.text("root")); msg != "" {
			add(at+".root", "%s", msg)
		}
		for _, key := range []string{"include", "exclude"} {
			out = append(out, patternFaults(at+"."+key, src.texts(key))...)
		}
	}
	s := settings{layers: []layer{l}, origin: map[string]string{}}
	line := lookup[int64](&s, "limits.line_bytes", DefaultLineBytes)
	// One that nobody set grows with the line.
	pass := lookup[int64](&s, "limits.file_bytes_per_pass", max(line, DefaultFileBytesPerPass))
	if pass < line {
		add("limits.file_bytes_per_pass", "%d is below limits.line_bytes %d", pass, line)
	}
	return out
}

// unusablePath says what is wrong with a path of handoffd.json; a daemon has
// no directory that a relative one could start from.
func unusablePath(p string) string {
	switch {
	case strings.ContainsRune(p, 0):
		return "must not contain a NUL byte"
	case p == "~", strings.HasPrefix(p, "~/"), filepath.IsAbs(p):
		return ""
	}
	return fmt.Sprintf("must be absolute or begin with ~/, got %q", p)
}

// LoadDaemon reads the file that --config names, else HANDOFFD_CONFIG, else
// handoff/handoffd.json in the user's configuration directory if it is there,
// else none. Every error is a fault.Config: a named file that is missing, a
// file with faults (all of them listed), a file that somebody else could have
// written, that lies below a directory it watches or in a git work tree that
// one belongs to, and a root that RefuseRoot refuses.
func LoadDaemon(in DaemonInput) (Daemon, error) {
	path, named, err := daemonPath(in)
	if err != nil {
		return Daemon{}, err
	}
	var layers []layer
	if path != "" {
		text, info, err := readFile(path)
		switch {
		case err == nil:
			if err := trusted(path, info); err != nil {
				return Daemon{}, err
			}
			l, err := daemonFormat.parse(path, text)
			if err != nil {
				return Daemon{}, err
			}
			layers = append(layers, l)
		case !errors.Is(err, errAbsent):
			return Daemon{}, err
		case named:
			return Daemon{}, fault.New(fault.Config, "%s does not exist", path).
				WithHint("without a named file the daemon watches every known harness directory")
		}
	}
	d, err := buildDaemon(in, layers)
	if err != nil {
		return Daemon{}, err
	}
	if err := d.checkRoots(); err != nil {
		return Daemon{}, err
	}
	return d, nil
}

// daemonPath returns where the file is, and whether somebody named it.
func daemonPath(in DaemonInput) (path string, named bool, err error) {
	for _, p := range []string{in.ConfigFlag, in.Getenv("HANDOFFD_CONFIG")} {
		if p != "" {
			path, err = absolute(p, in.CWD, in.HomeDir)
			return path, true, err
		}
	}
	if !filepath.IsAbs(in.HomeDir) && !filepath.IsAbs(in.Getenv("XDG_CONFIG_HOME")) {
		return "", false, nil
	}
	base, err := baseDir(in.Getenv, "XDG_CONFIG_HOME", in.HomeDir, ".config")
	if err != nil {
		return "", false, err
	}
	return filepath.Join(base, appDir, DaemonFile), false, nil
}

func buildDaemon(in DaemonInput, layers []layer) (Daemon, error) {
	s := &settings{layers: layers, origin: map[string]string{}}
	cpus := in.CPUs
	if cpus == 0 {
		cpus = runtime.NumCPU()
	}
	milliseconds := func(key string, d time.Duration) time.Duration {
		return time.Duration(lookup(s, key, d.Milliseconds())) * time.Millisecond
	}
	d := Daemon{
		Version:  lookup(s, "version", 1),
		MinFresh: milliseconds("min_fresh_ms", DefaultMinFresh),
		Quiet:    milliseconds("quiet_ms", DefaultQuiet),
		Sweep:    time.Duration(lookup(s, "sweep_seconds", int64(DefaultSweep/time.Second))) * time.Second,
		Workers:  max(1, lookup(s, "workers", cpus)),
		Log: Log{
			Level:  lookup(s, "log.level", "info"),
			Format: lookup(s, "log.format", "auto"),
		},
		Limits: Limits{
			LineBytes:        lookup[int64](s, "limits.line_bytes", DefaultLineBytes),
			FileBytesPerPass: lookup[int64](s, "limits.file_bytes_per_pass", DefaultFileBytesPerPass),
			Files:            lookup(s, "limits.files", DefaultFiles),
			Depth:            lookup(s, "limits.depth", DefaultDepth),
		},
		Redact: Redact{
			Enabled: lookup(s, "redact.enabled", false),
			Allow:   lookup(s, "redact.allow", []string{}),
		},
		Gate: DaemonGate{
			Mode:    GateMode(lookup(s, "gate.mode", string(GateOff))),
			Signals: lookup(s, "gate.signals", defaultSignals()),
			Enforce: lookup(s, "gate.enforce", false),
		},
		Retention: Retention{
			QuarantineDays: lookup(s, "retention.quarantine_days", 0),
			LogBytes:       lookup[int64](s, "retention.log_bytes", DefaultLogBytes),
		},
		Origin: s.origin,
		home:   in.HomeDir,
	}
	lookup(s, "$schema", "")
	if len(layers) > 0 {
		d.File = layers[0].file
	}
	var err error
	for _, p := range []struct {
		key  string
		into *string
	}{{"socket", &d.Socket}, {"log.file", &d.Log.File}} {
		if v := lookup(s, p.key, ""); v != "" {
			if *p.into, err = absolute(v, "", in.HomeDir); err != nil {
				return Daemon{}, err
			}
		}
	}
	if err := d.setStore(in, s); err != nil {
		return Daemon{}, err
	}
	if err := d.setSources(s); err != nil {
		return Daemon{}, err
	}
	return d, nil
}

func (d *Daemon) setStore(in DaemonInput, s *settings) (err error) {
	named := lookup(s, "store", "")
	switch env := in.Getenv("HANDOFFS_ROOT"); {
	case in.RootFlag != "":
		d.Origin["store"] = "--root"
		d.Store, err = absolute(in.RootFlag, in.CWD, in.HomeDir)
	case env != "":
		d.Origin["store"] = "HANDOFFS_ROOT"
		d.Store, err = absolute(env, in.CWD, in.HomeDir)
	case named != "":
		d.Store, err = absolute(named, "", in.HomeDir)
	default:
		d.Store, err = dataDir(in.Getenv, in.HomeDir)
	}
	return err
}

func (d *Daemon) setSources(s *settings) error {
	d.Origin["sources"] = OriginDefault
	for _, l := range s.layers {
		list, ok := l.values["sources"].([]any)
		if !ok {
			continue
		}
		d.Origin["sources"] = l.file
		d.Sources = make([]Source, 0, len(list))
		for _, e := range list {
			src := layer{values: e.(*document.Object).Values}
			root, err := absolute(src.text("root"), "", d.home)
			if err != nil {
				return err
			}
			d.Sources = append(d.Sources, Source{
				Harness: src.text("harness"),
				Root:    root,
				Include: src.texts("include"),
				Exclude: src.texts("exclude"),
			})
		}
		return nil
	}
	return nil
}
