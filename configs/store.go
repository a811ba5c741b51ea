package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"handoffd/configs/document"
	"handoffd/engine/fault"
)

// Input is what the process knows before it reads a file.
type Input struct {
	CWD      string // absolute; "" when unknown
	RootFlag string // --root; "" when not given
	Getenv   func(string) string
	HomeDir  string // absolute; "" when unknown
}

// RootSource says what decided the store root.
type RootSource string

// The root sources, the strongest first.
const (
	RootFlag     RootSource = "flag"     // --root
	RootEnv      RootSource = "env"      // HANDOFFS_ROOT
	RootConfig   RootSource = "config"   // storage.path or handoff_dir of a file
	RootDiscover RootSource = "discover" // a directory called handoffs
	RootDefault  RootSource = "default"  // the user's data directory
)

// Resolved is where handoffs are stored and what goes into them.
type Resolved struct {
	Root       string // absolute; need not exist
	RootSource RootSource
	File       string // the nearest handoff.config.json, "" when there is none
	Schema     string // name of the schema that files are held to
	// ProjectName is "" when the project is to be detected.
	ProjectName        string
	AutoCapture        bool
	MaxBriefTokens     int // tokens
	ExcludeFromHandoff Patterns
	Capture            Capture
	LinkingEnabled     bool
	MinOverlap         float64 // 0 to 1
	VerifyOnRead       bool
	Gate               Gate
	// Origin gives for every key of the schema the file that set it, or
	// OriginDefault.
	Origin map[string]string
}

// Capture is what is taken from a transcript.
type Capture struct {
	ExcludePatterns     Patterns
	IncludeToolOutputs  bool
	TruncateToolOutputs bool
	MaxToolOutputLength int // characters
}

// GateMode is what a hook does with the context gate's decision.
type GateMode string

// The gate modes.
const (
	GateOff     GateMode = "off"
	GateAdvise  GateMode = "advise"
	GateEnforce GateMode = "enforce"
)

// Gate is the key "gate" of a project.
type Gate struct {
	Enforce bool // a rejected session is not promoted
	Mode    GateMode
}

// Defaults of handoff.config.json.
const (
	DefaultMaxBriefTokens      = 30000 // tokens
	DefaultMaxToolOutputLength = 100000
	DefaultMinOverlap          = 0.06
)

func defaultExclude() Patterns {
	return Patterns{"node_modules/", ".git/", "dist/", "build/", "*.token", "*.key", "*.pem", ".env", "*.log"}
}

const (
	// discoverDir is the store that is looked for beside or above the current
	// directory.
	discoverDir = "handoffs"
	// walkMax is the number of directories that are looked into: the current
	// one and ten above it.
	walkMax = 11
)

var storeFormat = format{
	name:       StoreFile,
	schemaName: StoreSchemaFile,
	schema:     func() *document.Schema { return storeSchema() },
	further:    storeFaults,
}

// storeFaults refuses what the schema of the ancestor allows and no store of
// ours can do.
func storeFaults(l layer) []document.Fault {
	var out []document.Fault
	add := func(key, msg string) { out = append(out, document.Fault{Path: key, Msg: msg}) }
	if l.text("storage.type") == "sqlite" {
		add("storage.type", `only "filesystem" is supported, got "sqlite"`)
	}
	if sealed, ok := l.values["integrity.sha256_manifest"].(bool); ok && !sealed {
		add("integrity.sha256_manifest", "must be true: a store without manifest hashes is not supported")
	}
	for _, key := range []string{"handoff_dir", "storage.path"} {
		if strings.ContainsRune(l.text(key), 0) {
			add(key, "must not contain a NUL byte")
		}
	}
	for _, key := range []string{"exclude_from_handoff", "capture.exclude_patterns"} {
		out = append(out, patternFaults(key, l.texts(key))...)
	}
	return out
}

func patternFaults(key string, patterns []string) []document.Fault {
	var out []document.Fault
	for i, p := range patterns {
		if malformed(p) {
			out = append(out, document.Fault{Path: fmt.Sprintf("%s[%d]", key, i), Msg: fmt.Sprintf("malformed pattern %q", p)})
		}
	}
	return out
}

// Resolve decides the store root and reads the configuration of the project
// that in.CWD is in.
//
// The root is the first of: --root, HANDOFFS_ROOT, the user's data directory
// when the walk finds nothing, and what the walk finds. The walk goes from the
// current directory (its physical path) up ten levels and in each looks first
// for a handoff.config.json that names a directory and then for a directory
// called handoffs; the nearest wins. Within a file storage.path beats
// handoff_dir, and both are relative to the file. Unlike the ancestor, a
// leading "~/" is the home directory, in files as in --root and HANDOFFS_ROOT.
//
// Every handoff.config.json on the walk is read, also when --root or
// HANDOFFS_ROOT decides the root. For each key the nearest file that sets it
// wins, so a farther file supplies only what the nearer ones leave open. The
// error is a fault.Config that names every fault of every file.
func Resolve(in Input) (Resolved, error) {
	w, err := walk(in)
	if err != nil {
		return Resolved{}, err
	}
	r := w.resolved()
	r.Root, r.RootSource, err = w.decide(in)
	if err != nil {
		return Resolved{}, err
	}
	return r, nil
}

// found is what the walk came across.
type found struct {
	layers []layer // the nearest first
	root   string  // "" when nothing names one
	source RootSource
}

func walk(in Input) (found, error) {
	var w found
	if !filepath.IsAbs(in.CWD) {
		return w, nil
	}
	// What is above a directory must not depend on how a shell spelled it.
	dir, err := filepath.EvalSymlinks(in.CWD)
	if err != nil {
		dir = filepath.Clean(in.CWD)
	}
	var broken []string
	for range walkMax {
		l, err := readStore(filepath.Join(dir, StoreFile))
		switch {
		case err == nil:
			w.layers = append(w.layers, l)
			if name := declared(l); name != "" && w.root == "" {
				if w.root, err = absolute(name, dir, in.HomeDir); err != nil {
					broken = append(broken, l.file+": "+err.Error())
				}
				w.source = RootConfig
			}
		case errors.Is(err, errUnsearchable), errors.Is(err, errAbsent):
			// A directory above that we may not search holds nothing for us.
		default:
			broken = append(broken, err.Error())
		}
		if w.root == "" {
			if info, err := os.Stat(filepath.Join(dir, discoverDir)); err == nil && info.IsDir() {
				w.root, w.source = filepath.Join(dir, discoverDir), RootDiscover
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	if len(broken) > 0 {
		return found{}, fault.New(fault.Config, "%s", strings.Join(broken, "\n"))
	}
	return w, nil
}

func readStore(path string) (layer, error) {
	text, _, err := readFile(path)
	if err != nil {
		return layer{}, err
	}
	return storeFormat.parse(path, text)
}

// declared returns the directory that a file names. Both keys are one decision:
// a farther storage.path does not overrule a nearer handoff_dir.
func declared(l layer) string {
	if p := l.text("storage.path"); p != "" {
		return p
	}
	return l.text("handoff_dir")
}

func (w found) decide(in Input) (string, RootSource, error) {
	if in.RootFlag != "" {
		root, err := absolute(in.RootFlag, in.CWD, in.HomeDir)
		return root, RootFlag, err
	}
	if env := in.Getenv("HANDOFFS_ROOT"); env != "" {
		root, err := absolute(env, in.CWD, in.HomeDir)
		return root, RootEnv, err
	}
	if w.root != "" {
		return w.root, w.source, nil
	}
	root, err := dataDir(in.Getenv, in.HomeDir)
	return root, RootDefault, err
}

// StoreDefaults are the values of a handoff.config.json that sets nothing.
func StoreDefaults() Resolved { return found{}.resolved() }

func (w found) resolved() Resolved {
	s := &settings{layers: w.layers, origin: map[string]string{}}
	r := Resolved{
		Schema:             StoreSchemaFile,
		ProjectName:        strings.TrimSpace(lookup(s, "project_name", "")),
		AutoCapture:        lookup(s, "auto_capture", false),
		MaxBriefTokens:     lookup(s, "max_brief_tokens", DefaultMaxBriefTokens),
		ExcludeFromHandoff: lookup(s, "exclude_from_handoff", defaultExclude()),
		Capture: Capture{
			ExcludePatterns:     lookup(s, "capture.exclude_patterns", Patterns{}),
			IncludeToolOutputs:  lookup(s, "capture.include_tool_outputs", true),
			TruncateToolOutputs: lookup(s, "capture.truncate_tool_outputs", false),
			MaxToolOutputLength: lookup(s, "capture.max_tool_output_length", DefaultMaxToolOutputLength),
		},
		LinkingEnabled: lookup(s, "linking.enabled", true),
		MinOverlap:     lookup(s, "linking.min_overlap_score", DefaultMinOverlap),
		VerifyOnRead:   lookup(s, "integrity.verify_on_read", false),
		Gate: Gate{
			Enforce: lookup(s, "gate.enforce", false),
			Mode:    GateMode(lookup(s, "gate.mode", string(GateOff))),
		},
	}
	// These have one possible value or are part of the root; their origin is
	// of use to whoever explains it.
	for _, key := range []string{"$schema", "version", "handoff_dir", "storage.path", "storage.type"} {
		lookup(s, key, "")
	}
	lookup(s, "integrity.sha256_manifest", true)
	r.Origin = s.origin
	if len(w.layers) > 0 {
		r.File = w.layers[0].file
	}
	return r
}
