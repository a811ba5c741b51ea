package copilot

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// maxOpen bounds the calls remembered until they are answered. Above it the
// oldest are forgotten, and one that starts after that is a turn again.
const maxOpen = 256

// state is what a decoder keeps between passes. It holds no turns: every event
// is decided when it is read.
type state struct {
	journal.Clock
	// Open are the calls that were handed out and not answered, oldest first.
	Open []open `json:"open,omitempty"`
	// Thought is the hash of the last reasoning event: the message after it
	// repeats its text.
	Thought uint64 `json:"thought,omitempty,string"`
	// Output are the tokens of the answers since the last shutdown, which
	// says them again.
	Output int64 `json:"output,omitempty"`
}

// open is a call without its result, which does not name the tool.
type open struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// decoder reads one session.
type decoder struct {
	state
	journal.Page
	env harness.Env
	ev  event
}

// markSummary is the mark of what stands for turns before it.
const markSummary = "summary"

func newDecoder(saved []byte, env harness.Env) (*decoder, error) {
	d := &decoder{env: env}
	return d, journal.Restore("copilot", saved, &d.state)
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.ev.read, d.take)
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// take reads an event and returns its type if that is unknown.
func (d *decoder) take() (unknown string) {
	e, x := &d.ev, &d.ev.data
	d.Mark = d.Tick(d.Meta, e.ts)
	if x.model != "" && x.parent == "" { // a subagent may have another
		d.Meta.Model = plain.Text(x.model)
	}
	switch e.kind {
	case "session.start", "session.resume", "session.context_changed":
		d.about(x)
	case "session.title_changed":
		if x.title != "" {
			d.Meta.Title = plain.Text(x.title)
		}
	case "session.info", "session.warning", "session.error":
		d.other(e, x.message, "")
	case "session.compaction_complete":
		d.compacted(e)
	case "session.truncation":
		d.truncated(e)
	case "session.snapshot_rewind":
		d.rewound(e)
	case "session.usage_info":
		d.filled(x)
	case "session.shutdown":
		d.shutdown(x)
	case "session.handoff":
		d.other(e, x.summary, markSummary)
	case "user.message":
		d.prompt(e)
	case "assistant.message":
		d.answer(e)
	case "assistant.reasoning":
		if plain.Said(x.content) {
			d.Thought = plain.Letters(x.content)
			d.emit(e, "", turn.Turn{Class: turn.Thought, Text: x.content})
		}
	case "tool.execution_start", "tool.user_requested":
		d.call(e, &x.call)
	case "tool.execution_complete":
		d.result(e)
	case "skill.invoked":
		d.other(e, "[skill "+x.name+"]", "")
	case "subagent.failed":
		d.other(e, "[subagent "+x.name+" failed: "+x.fault+"]", "")
	case "system.notification":
		d.other(e, x.content, "")
	case "abort":
		d.other(e, strings.TrimSuffix("[aborted: "+x.reason, ": ")+"]", "")
	case "":
		return "(none)"
	default:
		if !known(e.kind) {
			return plain.Clip(plain.Text(e.kind), 64)
		}
	}
	return ""
}

// about takes what a run of the CLI says of the session. A session has one
// start and any number of resumes, or starts (github/copilot-cli#2209).
func (d *decoder) about(x *data) {
	m := d.Meta
	if m.ID == "" {
		m.ID = plain.Text(x.sessionID)
	}
	if m.CWD == "" {
		m.CWD = plain.Text(x.cwd)
	}
	if x.branch != "" {
		m.Branch = plain.Text(x.branch)
	}
	if x.version != "" {
		m.Version = plain.Text(x.version)
	}
}

// prompt takes what the user sent: content is what was typed, and
// transformedContent, which is not read, what the CLI made of it.
func (d *decoder) prompt(e *event) {
	x := &e.data
	text := x.content
	for _, f := range x.files {
		text = strings.TrimPrefix(text+"\n"+f, "\n")
	}
	if !plain.Said(text) {
		return
	}
	class := turn.User
	if strings.HasPrefix(x.source, "skill-") || x.source == "system" || strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "<skill-context") {
		class = turn.Other
	}
	d.emit(e, "", turn.Turn{Class: class, Text: text})
	if title := titleIn(d.env.Near("workspace.yaml")); title != "" {
		d.Meta.Title = title
	}
}

// answer takes what the agent said.
func (d *decoder) answer(e *event) {
	x := &e.data
	if plain.Said(x.reasoning) && plain.Letters(x.reasoning) != d.Thought {
		d.emit(e, "thought", turn.Turn{Class: turn.Thought, Text: x.reasoning})
	}
	d.Thought = 0
	if plain.Said(x.content) {
		d.emit(e, "", turn.Turn{Class: turn.Agent, Text: x.content})
	}
	for i := range x.requests {
		d.call(e, &x.requests[i])
	}
	d.Output += x.output
	d.Meta.Tokens.Output += x.output
}

// call takes a call, unless it was announced before.
func (d *decoder) call(e *event, r *request) {
	if r.id != "" {
		for _, o := range d.Open {
			if o.ID == r.id {
				return
			}
		}
	}
	name, text := plain.Call(r.name, r.args)
	t := &turn.Tool{Phase: turn.Call, Name: name, CallID: r.id}
	switch name {
	case "bash", "powershell", "shell", "local_shell":
		t.Command = r.command
	case "create", "edit", "write", "str_replace_editor", "str_replace", "insert":
		t.Edits = r.edits
	}
	d.emitCall(e, t, text)
	if r.id == "" {
		return
	}
	if len(d.Open) >= maxOpen {
		d.Open = append(d.Open[:0], d.Open[1:]...)
	}
	d.Open = append(d.Open, open{r.id, name})
}

// result takes the outcome of a call.
func (d *decoder) result(e *event) {
	x := &e.data
	t := &turn.Tool{Phase: turn.Result, Name: x.call.name, CallID: x.call.id, Error: x.hasSuccess && !x.success || x.fault != ""}
	for i, o := range d.Open {
		if o.ID == t.CallID && t.CallID != "" {
			t.Name = o.Name
			d.Open = append(d.Open[:i], d.Open[i+1:]...)
			break
		}
	}
	if t.Name == "" {
		t.Name = "unknown"
	}
	text := plain.FirstOf(x.result, x.fault, x.detail, plain.Empty)
	if t.Name == "bash" || t.Name == "powershell" {
		t.Exit = exitIn(x.result)
	}
	d.emitCall(e, t, text)
}

// emitCall hands out a half of a call, which its id names and not the event's:
// the same call is told by several events.
func (d *decoder) emitCall(e *event, t *turn.Tool, text string) {
	id := ""
	if t.CallID != "" {
		id = string(t.Phase) + ":" + plain.Clip(t.CallID, 256)
	}
	d.hand(e, id, turn.Turn{Class: turn.ToolUse, Text: text, Tool: t})
}

// compacted takes the summary that stands for what was said before.
func (d *decoder) compacted(e *event) {
	x := &e.data
	if x.hasSuccess && !x.success {
		d.other(e, "[compaction failed: "+x.fault+"]", "")
		return
	}
	if !plain.Said(x.summary) {
		x.summary = "(context compacted)"
	}
	d.Meta.Compactions++
	d.other(e, x.summary, markSummary)
}

func (d *decoder) truncated(e *event) {
	text := "[context truncated]"
	if e.data.hasRemoved {
		text = fmt.Sprintf("[context truncated: %d messages removed from it]", e.data.removed)
	}
	d.filled(&e.data)
	d.other(e, text, "")
}

// rewound says what the user took back. The turns stay: this is an archive.
func (d *decoder) rewound(e *event) {
	text := "[rewound to before event " + e.data.upTo
	if e.data.hasRemoved {
		text += fmt.Sprintf(": %d events taken back", e.data.removed)
	}
	d.other(e, text+"]", "")
}

func (d *decoder) filled(x *data) {
	if x.context > 0 {
		d.Meta.Tokens.Context = x.context
	}
	if x.window > 0 {
		d.Meta.Tokens.Window = x.window
	}
}

// shutdown takes what a run used. Its answers were counted as they came.
func (d *decoder) shutdown(x *data) {
	t := &d.Meta.Tokens
	t.Input += x.usage.input
	t.CacheRead += x.usage.cached
	t.CacheWrite += x.usage.written
	t.Output += max(0, x.usage.output-d.Output)
	d.Output = 0
	d.filled(x)
}

// other emits an OTHER turn.
func (d *decoder) other(e *event, text, mark string) {
	if plain.Said(text) {
		d.emit(e, "", turn.Turn{Class: turn.Other, Text: text, Mark: mark})
	}
}

// emit hands out a turn named after the event, and its part if it has several.
func (d *decoder) emit(e *event, part string, t turn.Turn) {
	id := journal.ID(e.id)
	if id != "" && part != "" {
		id += "#" + part
	}
	d.hand(e, id, t)
}

func (d *decoder) hand(e *event, id string, t turn.Turn) {
	t.ID, t.TS, t.Agent = id, d.TS, journal.ID(e.data.parent)
	if t.Mark == "" {
		t.Mark = d.Mark
	}
	d.Add(t)
}

// exitIn finds the status that the shell tools put behind what a command
// wrote: measured on 1.0.20 and 1.0.64, "<exited with exit code 1>" or
// "<shellId: 0 completed with exit code 1>".
func exitIn(s string) *int {
	const mark = "with exit code "
	at := strings.LastIndex(s, mark)
	if at < 0 {
		return nil
	}
	digits, rest, closed := strings.Cut(s[at+len(mark):], ">")
	n, err := strconv.Atoi(digits)
	if err != nil || !closed || strings.TrimSpace(rest) != "" {
		return nil
	}
	return &n
}

// titleIn finds the name of the session in its workspace.yaml, of which only
// values on the line of their key are read.
func titleIn(yaml []byte) string {
	title := ""
	for line := range strings.Lines(string(yaml)) {
		key, value, ok := strings.Cut(strings.TrimRight(line, " \t\r\n"), ":")
		value = strings.TrimSpace(value)
		if !ok || value == "" || strings.ContainsAny(value[:1], "|>&*!{[") {
			continue
		}
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		switch {
		case key == "name", key == "summary" && title == "":
			title = plain.Clip(plain.Text(value), 512)
		}
	}
	return title
}
