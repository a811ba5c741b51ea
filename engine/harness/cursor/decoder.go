package cursor

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// state is what a decoder keeps between passes.
type state struct {
	// TS is the newest time that a prompt told: records after it have none.
	TS string `json:"ts,omitempty"`
	// Chain names everything handed out so far.
	Chain uint64 `json:"chain,string,omitempty"`
	// Placed says that the working directory was found in a way that no later
	// record is better than.
	Placed bool `json:"placed,omitempty"`
}

// log hands out turns and names them.
type log struct {
	state
	journal.Page
	env   harness.Env
	fresh bool // the time is the record's own, and exact
}

// redacted is what Cursor leaves of a thought.
const redacted = "[REDACTED]"

// ready readies the log for what the page at hand says.
func (l *log) ready() {
	l.fresh = false
	if l.Chain == 0 {
		l.Chain = plain.Hash(label, l.Meta.ID)
	}
}

// emit hands a turn out, named after all before it and itself.
func (l *log) emit(t turn.Turn) {
	if strings.TrimSpace(t.Text) == "" {
		return
	}
	call := ""
	if t.Tool != nil {
		call = string(t.Tool.Phase) + t.Tool.CallID
	}
	l.Chain = plain.Hash(fmt.Sprintf("%016x", l.Chain), string(t.Class), t.Text, call)
	t.ID = fmt.Sprintf("%016x", l.Chain)
	if t.TS = l.TS; t.TS != "" && !l.fresh {
		t.Mark = journal.Approximate
	}
	l.Add(t)
}

// said takes the text of the user's.
func (l *log) said(text string) {
	list, stamp := prompt(text)
	if ts, zoned := clock(stamp); ts != "" {
		l.TS, l.fresh = ts, zoned
		journal.Note(l.Meta, ts)
	}
	for _, s := range list {
		if s.class == turn.Other {
			if dir := workspace(s.text); dir != "" && !l.Placed {
				l.Meta.CWD, l.Placed = dir, true
			}
		}
		l.emit(turn.Turn{Class: s.class, Text: s.text})
	}
}

// answered takes a text of the agent's. A thought is kept as a mark behind the
// text, or alone.
func (l *log) answered(text string) {
	text = strings.TrimRight(text, " \t\r\n")
	for strings.HasSuffix(text, redacted) && (text == redacted || strings.HasSuffix(strings.TrimSuffix(text, redacted), "\n")) {
		text = strings.TrimRight(strings.TrimSuffix(text, redacted), " \t\r\n")
	}
	l.emit(turn.Turn{Class: turn.Agent, Text: text})
}

// call takes the call of a tool.
func (l *log) call(p part) {
	name, text := plain.Call(p.name, p.args)
	t := &turn.Tool{Phase: turn.Call, Name: name, CallID: p.id}
	switch strings.ToLower(name) {
	case "shell", "bash", "run_terminal_cmd", "run_terminal_command":
		t.Command = p.command
	case "write", "strreplace", "str_replace", "search_replace", "edit", "edit_file", "multiedit", "delete", "editnotebook", "edit_notebook", "delete_file":
		t.Edits = p.paths
	}
	l.locate(p)
	l.emit(turn.Turn{Class: turn.ToolUse, Text: text, Tool: t})
}

// locate finds the working directory. The directory of the transcripts is
// named after it in a way that cannot be undone, but a path that a call names
// can be held against it; else what a shell is told will have to do.
func (l *log) locate(p part) {
	if l.Placed {
		return
	}
	slug := projectDir(l.env.Path)
	for _, s := range append(p.paths, p.cwd) {
		for dir := strings.ReplaceAll(s, `\`, "/"); slug != "" && strings.Contains(dir, "/"); dir = path.Dir(dir) {
			if strings.EqualFold(slugOf(dir), slug) {
				l.Meta.CWD, l.Placed = dir, true
				return
			}
			if dir == path.Dir(dir) {
				break
			}
		}
	}
	if l.Meta.CWD == "" && absolute(p.cwd) {
		l.Meta.CWD = p.cwd
	}
}

func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && strings.ContainsAny(p[2:3], `\/`)
}

// projectDir is the name of the workspace's directory in the path of a
// transcript, or "".
func projectDir(p string) string {
	dir, _, ok := strings.Cut(filepath.ToSlash(p), "/"+transcripts+"/")
	if !ok {
		return ""
	}
	return path.Base(dir)
}

var unsafe = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9]+`) })

// slugOf is how Cursor names the directory of a workspace: everything but
// letters and digits becomes a hyphen, and none is at an end.
func slugOf(dir string) string { return strings.Trim(unsafe().ReplaceAllString(dir, "-"), "-") }

// decoder reads the JSONL format.
type decoder struct {
	log
	rec record
}

func newDecoder(saved []byte, env harness.Env) (*decoder, error) {
	d := &decoder{log: log{env: env}}
	return d, journal.Restore("cursor", saved, &d.state)
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.rec.read, d.take)
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// take reads a record and returns its type if that is unknown.
func (d *decoder) take() (unknown string) {
	d.ready()
	r := &d.rec
	if !r.message() {
		switch {
		case r.kind == "turn_ended":
		case r.kind != "":
			return plain.Clip(plain.Text(r.kind), 64)
		case r.role != "":
			return plain.Clip(plain.Text("role/"+r.role), 64)
		default:
			return "(none)"
		}
		return ""
	}
	if r.model != "" {
		d.Meta.Model = plain.Text(r.model)
	}
	for _, p := range r.parts {
		switch {
		case p.kind == "tool_use":
			d.call(p)
		case p.kind == "tool_result":
			text := plain.FirstOf(p.text, plain.Empty)
			d.emit(turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{Phase: turn.Result, CallID: p.id, Error: p.failed}})
		case p.kind == "thinking":
			if strings.TrimSpace(p.text) != redacted {
				d.emit(turn.Turn{Class: turn.Thought, Text: p.text})
			}
		case r.role == "user":
			d.said(p.text)
		default:
			d.answered(p.text)
		}
	}
	return ""
}
