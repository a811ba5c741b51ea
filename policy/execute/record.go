package execute

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/policy/permission"
)

// RecordsDir is where decision records are in a state directory.
const RecordsDir = "executions"

// pruneEvery is after how many records of one process the old ones are looked
// for again, so that a record costs the same however many there are.
const pruneEvery = 128

// Records writes decision records: one file each, never written to again but
// by its own operation. It is for one goroutine at a time.
type Records struct {
	dir    string
	show   func(path string) string
	keep   permission.Retention
	now    func() time.Time
	unswep int // written since the last look for old ones
	// unsynced are records that a power cut could still take.
	unsynced []string
}

// OpenRecords returns the records of a scope's state directory, which is made
// if it is not there. Failures are fault.Config where somebody put something
// else in its place.
func OpenRecords(s permission.Scope, now func() time.Time) (*Records, error) {
	dir, err := StateRoom(s, RecordsDir)
	if err != nil {
		return nil, err
	}
	show := func(path string) string {
		if rel, err := filepath.Rel(s.Workspace, path); err == nil {
			return rel
		}
		return path
	}
	return &Records{dir: dir, show: show, keep: s.Policy.Retention, now: now}, nil
}

// StateRoom makes a private directory of the state directory and returns its
// path. It refuses one that is a link: whoever wrote it decides where it leads.
func StateRoom(s permission.Scope, name string) (string, error) {
	dir := filepath.Join(s.StateDir, name)
	// Root keeps its state where it is told to, whose directory that is.
	if top, err := os.Stat(s.StateDir); err == nil && os.Geteuid() != 0 && !safefile.OwnedByUs(top) {
		return "", fault.New(fault.Config, "the state directory %s belongs to somebody else", s.StateDir).
			WithHint("name one of your own with %s", permission.EnvStateDir)
	}
	if err := safefile.MakeDir(dir); err != nil {
		return "", fault.New(fault.Config, "make the state directory: %w", err).WithHint("name another with %s", permission.EnvStateDir)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fault.New(fault.Config, "look at the state directory: %w", err)
	}
	if !info.IsDir() {
		return "", fault.New(fault.Config, "%s is not a directory of its own", dir).WithHint("move it away")
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != safefile.DirMode {
		if err := os.Chmod(dir, safefile.DirMode); err != nil {
			return "", fault.New(fault.Config, "make %s private: %w", dir, err)
		}
	}
	return dir, nil
}

// Record is a decision record in the making: members in the order in which
// they were set.
type Record struct {
	in      *Records
	id      string
	names   []string
	values  map[string]any
	written bool
}

// New begins a record. The members that every record has come first, as in
// the published engine (github.com/Alot1z/agent-handoff, tools/runtime-engine.mjs).
func (r *Records) New(op string, d permission.Decision) *Record {
	rec := &Record{in: r, id: r.id(), values: map[string]any{}}
	rec.Set("id", rec.id)
	rec.Set("enforced_before_execution", true)
	rec.Set("op", op)
	rec.Set("risk", string(d.Risk))
	rec.Set("verdict", string(d.Verdict))
	rec.Set("reason", d.Reason)
	return rec
}

// describe adds what the published records do not say of a decision.
func (r *Records) describe(rec *Record, d permission.Decision) {
	rec.Set("level", orNull(string(d.Level)))
	rec.Set("classification", orNull(string(d.Classification)))
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// id is the time, this process, and chance.
func (r *Records) id() string {
	stamp := r.now().UTC().Format("2006-01-02T15-04-05.000Z")
	return strings.Replace(stamp, ".", "-", 1) + "-" + strconv.Itoa(os.Getpid()) + "-" + chance()
}

// chance is six digits of base 36.
func chance() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	const digits = 6
	s := strconv.FormatUint(binary.LittleEndian.Uint64(b[:]), 36)
	return strings.Repeat("0", max(0, digits-len(s))) + s[max(0, len(s)-digits):]
}

// Set sets a member; one that is there keeps its place.
func (rec *Record) Set(name string, value any) {
	if _, ok := rec.values[name]; !ok {
		rec.names = append(rec.names, name)
	}
	rec.values[name] = value
}

// bytes is the record as pretty JSON with a newline.
func (rec *Record) bytes() ([]byte, error) {
	var out bytes.Buffer
	e := jsontext.NewEncoder(&out, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true), jsontext.EscapeForHTML(false))
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return nil, err
	}
	for _, name := range rec.names {
		if err := e.WriteToken(jsontext.String(name)); err != nil {
			return nil, err
		}
		if err := json.MarshalEncode(e, rec.values[name]); err != nil {
			return nil, err
		}
	}
	err := e.WriteToken(jsontext.EndObject)
	return out.Bytes(), err
}

// Write publishes the record durably, or replaces what an earlier Write of it
// did, and returns its path as it is shown: relative to the workspace.
func (rec *Record) Write() (string, error) { return rec.publish(safefile.Replace) }

// Note publishes the record as Write does, but leaves it to Close to make it
// durable: for one of many decisions whose effects are made durable by
// themselves.
func (rec *Record) Note() (string, error) {
	return rec.publish(func(path string, data []byte) error {
		f, err := safefile.CreateTemp(path)
		if err != nil {
			return err
		}
		_, err = safefile.Write(f, data)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err == nil {
			err = safefile.Rename(f.Name(), path)
		}
		if err != nil {
			_ = os.Remove(f.Name())
			return err
		}
		rec.in.unsynced = append(rec.in.unsynced, path)
		return nil
	})
}

func (rec *Record) publish(replace func(path string, data []byte) error) (string, error) {
	path := filepath.Join(rec.in.dir, rec.id+".json")
	for !rec.written {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", fault.New(fault.Internal, "write a decision record: %w", err)
		}
		rec.id = rec.in.id()
		rec.Set("id", rec.id)
		path = filepath.Join(rec.in.dir, rec.id+".json")
	}
	raw, err := rec.bytes()
	if err == nil {
		err = replace(path, raw)
	}
	if err != nil {
		return "", fault.New(fault.Internal, "write a decision record: %w", err)
	}
	if !rec.written {
		rec.written = true
		rec.in.unswep++
		if rec.in.unswep >= pruneEvery {
			rec.in.sync()
			rec.in.prune()
		}
	}
	return rec.in.show(path), nil
}

// Close makes durable what is not yet, and prunes what the retention no longer
// keeps.
func (r *Records) Close() {
	r.sync()
	if r.unswep > 0 {
		r.prune()
	}
}

// sync makes noted records durable. What cannot be synced is there all the
// same; that a power cut may take it is nothing that a caller could act on.
func (r *Records) sync() {
	for _, path := range r.unsynced {
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			_ = f.Sync()
			_ = f.Close()
		}
	}
	if len(r.unsynced) > 0 {
		_ = safefile.SyncDir(r.dir)
	}
	r.unsynced = nil
}

// recordName is what a record is called; nothing else is ever deleted.
var recordName = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z)-\d+-[0-9a-z]{6}\.json$`)

// staleTemp is when the temporary of a writer that was killed may go.
const staleTemp = time.Hour

// prune deletes what is too old or too many. A record that cannot be deleted
// stays until the next time: it is in nobody's way.
func (r *Records) prune() {
	r.unswep = 0
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return
	}
	now := r.now()
	oldest := now.UTC().AddDate(0, 0, -r.keep.Days).Format("2006-01-02T15-04-05-000Z")
	var names []string
	for _, e := range entries {
		if recordName.MatchString(e.Name()) {
			names = append(names, e.Name())
		} else if info, err := e.Info(); err == nil && safefile.IsTemp(e.Name()) && now.Sub(info.ModTime()) > staleTemp {
			_ = safefile.Remove(filepath.Join(r.dir, e.Name()))
		}
	}
	slices.Sort(names) // the time comes first
	for i, name := range names {
		if len(names)-i > r.keep.Records || name < oldest {
			_ = safefile.Remove(filepath.Join(r.dir, name))
		}
	}
}
