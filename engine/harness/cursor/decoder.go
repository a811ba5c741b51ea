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
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
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
	env   harness.Env
	turns []turn.Turn
	meta  *session.Meta
	fresh bool // the time is the record's own, and exact
}

// markApproximate marks a time that is not the record's own.
const markApproximate = "approximate-time"

// redacted is what Cursor leaves of a thought.
const redacted = "[REDACTED]"

// begin readies the log for a unit.
func (l *log) begin(m *session.Meta) {
	l.turns, l.meta, l.fresh = l.turns[:0], m, false
	if l.Chain == 0 {
		l.Chain = plain.Hash(label, m.ID)
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
		t.Mark = markApproximate
	}
	l.turns = append(l.turns, t)
}

// said takes the text of the user's.
func (l *log) said(text string) {
	list, stamp := prompt(text)
	if ts, zoned := clock(stamp); ts != "" {
		l.TS, l.fresh = ts, zoned
		if l.meta.FirstTS == "" {
			l.meta.FirstTS = ts
		}
		if plain.Later(l.meta.LastTS, ts) {
			l.meta.LastTS = ts
		}
	}
	for _, s := range list {
		if s.class == turn.Other {
			if dir := workspace(s.text); dir != "" && !l.Placed {
				l.meta.CWD, l.Placed = dir, true
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
	name := p.name
	if name == "" {
		name = "unknown"
	}
	text := "tool_call " + name
	if p.args != "" {
		text += " " + p.args
	}
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
				l.meta.CWD, l.Placed = dir, true
				return
			}
			if dir == path.Dir(dir) {
				break
			}
		}
	}
	if l.meta.CWD == "" && absolute(p.cwd) {
		l.meta.CWD = p.cwd
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
	value harness.Value
	rec   record
}

func newDecoder(saved []byte, env harness.Env) (*decoder, error) {
	d := &decoder{log: log{env: env}}
	if len(saved) > 0 {
		if err := json.Unmarshal(saved, &d.state); err != nil {
			return nil, fmt.Errorf("cursor: %w", err)
		}
	}
	return d, nil
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	lenient, err := d.value.Object(unit, d.rec.read)
	if err != nil {
		return err
	}
	d.begin(out.Meta)
	out.Unknown = d.take(&d.rec)
	out.Turns = append(out.Turns, d.turns...)
	out.Flagged = out.Flagged || lenient
	d.meta = nil
	return nil
}

// Pending implements harness.Decoder.
func (d *decoder) Pending() bool { return false }

// Flush implements harness.Decoder.
func (d *decoder) Flush(*harness.Out) {}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// take reads a record and returns its type if that is unknown.
func (d *decoder) take(r *record) (unknown string) {
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
		d.meta.Model = plain.Text(r.model)
	}
	for _, p := range r.parts {
		switch {
		case p.kind == "tool_use":
			d.call(p)
		case p.kind == "tool_result":
			if strings.TrimSpace(p.text) == "" {
				p.text = plain.Empty
			}
			d.emit(turn.Turn{Class: turn.ToolUse, Text: p.text, Tool: &turn.Tool{Phase: turn.Result, CallID: p.id, Error: p.failed}})
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
