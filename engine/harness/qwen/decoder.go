package qwen

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

// state is what a decoder keeps between passes. It holds no turns: every line
// is decided when it is read.
type state struct {
	journal.Clock
	// Last is the newest record, and Spoken the newest that is not the CLI's
	// bookkeeping: one of them is the parent of what follows.
	Last   string `json:"last,omitempty"`
	Spoken string `json:"spoken,omitempty"`
	// Rewound says that a rewind was the last word: the branch that follows
	// is told already.
	Rewound bool `json:"rewound,omitempty"`
}

// decoder reads one session.
type decoder struct {
	state
	journal.Page
	rec record
}

// The marks that this format gives.
const (
	markSummary = "summary"
	markQueued  = "queued"
)

func newDecoder(saved []byte, _ harness.Env) (*decoder, error) {
	d := &decoder{}
	return d, journal.Restore("qwen", saved, &d.state)
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.rec.read, d.take)
}

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// take reads a record and returns its type if that is unknown.
func (d *decoder) take() (unknown string) {
	r := &d.rec
	d.Mark = d.Tick(d.Meta, r.ts)
	d.about(r)
	spoken := r.hasMessage && r.kind != "system"
	if spoken {
		d.branch(r)
	}
	switch r.kind {
	case "user":
		d.user(r)
	case "assistant":
		d.answer(r)
	case "tool_result":
		d.results(r)
	case "system":
		unknown = d.system(r)
	case "":
		unknown = "(none)"
	default:
		unknown = plain.Clip(plain.Text(r.kind), 64)
	}
	if id := journal.ID(r.uuid); id != "" {
		d.Last = id
		if spoken {
			d.Spoken = id
		}
	}
	return unknown
}

// about takes what every record says of the session.
func (d *decoder) about(r *record) {
	m := d.Meta
	if m.ID == "" {
		m.ID = plain.Text(r.session)
	}
	if m.CWD == "" {
		m.CWD = plain.Text(r.cwd)
	}
	if r.branch != "" {
		m.Branch = plain.Text(r.branch)
	}
	if r.version != "" {
		m.Version = plain.Text(r.version)
	}
	if r.model != "" && !(r.sidechain && m.Kind != "subagent") {
		m.Model = plain.Text(r.model)
	}
	if r.forkedFrom != "" && m.ForkedFrom == "" && m.Kind == "" {
		m.Kind, m.ForkedFrom = "fork", plain.Text(r.forkedFrom)
	}
}

// injected are the starts of what the CLI puts into a prompt.
var injected = []string{"<system-reminder>", "<session_context>", "<hook_context>", "<task-notification>"}

// referenced stands between a prompt and the files it names.
const referenced = "--- Content from referenced files ---"

// user takes a message to the agent. What the payload says was displayed is
// what was typed; the parts are what became of it.
func (d *decoder) user(r *record) {
	class, mark := turn.User, ""
	switch r.subtype {
	case "", "agent_launch_prompt", "user_text_elements", "realtime_message":
	case "mid_turn_user_message":
		mark = markQueued
	default: // notification, cron, goal_runtime and what is to come
		class = turn.Other
	}
	switch r.provenance {
	case "system", "goal_control", "goal_runtime":
		class = turn.Other
	}
	text := said(r.parts, false)
	shown := r.payload.display
	switch {
	case class == turn.Other:
		d.emit(r, turn.Turn{Class: class, Text: plain.FirstOf(text, shown)})
	case strings.TrimSpace(shown) != "":
		d.emit(r, turn.Turn{Class: class, Text: shown, Mark: mark})
		rest := strings.TrimSpace(strings.Replace(text, shown, "", 1))
		d.emit(r, turn.Turn{Class: turn.Other, Text: rest})
	default:
		for _, start := range injected {
			if strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), start) {
				class = turn.Other
			}
		}
		typed, files, cut := strings.Cut(text, referenced)
		if !cut || class == turn.Other {
			d.emit(r, turn.Turn{Class: class, Text: text, Mark: mark})
			break
		}
		d.emit(r, turn.Turn{Class: class, Text: strings.TrimSpace(typed), Mark: mark})
		d.emit(r, turn.Turn{Class: turn.Other, Text: referenced + files})
	}
	d.results(r)
}

// answer takes what the agent said.
func (d *decoder) answer(r *record) {
	d.emit(r, turn.Turn{Class: turn.Thought, Text: said(r.parts, true)})
	d.emit(r, turn.Turn{Class: turn.Agent, Text: said(r.parts, false)})
	for _, p := range r.parts {
		if p.call {
			d.call(r, p)
		}
	}
	d.results(r)
	if r.usage.known {
		u, t := r.usage, &d.Meta.Tokens
		t.Input += max(0, u.prompt-u.cached)
		t.CacheRead += u.cached
		t.Output += u.output + u.thinks
		if u.prompt > 0 && !r.sidechain {
			t.Context = u.prompt
		}
	}
	if r.window > 0 {
		d.Meta.Tokens.Window = r.window
	}
}

func (d *decoder) call(r *record, p part) {
	name, text := plain.Call(plain.FirstOf(p.name), p.args)
	t := &turn.Tool{Phase: turn.Call, Name: name, CallID: p.id}
	switch name {
	case "run_shell_command":
		t.Command = p.command
	case "write_file", "replace", "edit", "edit_file":
		t.Edits = p.edits
	}
	d.emit(r, turn.Turn{Class: turn.ToolUse, Text: text, Tool: t})
}

// results takes the outcomes in a record.
func (d *decoder) results(r *record) {
	o, any := &r.outcome, false
	failed := o.status == "error" || o.status == "cancelled" || o.fault != ""
	for _, p := range r.parts {
		if !p.answer {
			continue
		}
		any = true
		if p.id == "" {
			p.id = o.callID
		}
		d.result(r, p, failed && (o.callID == "" || o.callID == p.id))
	}
	if !any && r.kind == "tool_result" {
		d.result(r, part{id: o.callID, text: said(r.parts, false)}, failed)
	}
}

func (d *decoder) result(r *record, p part, failed bool) {
	text := plain.FirstOf(p.text, r.outcome.display, r.outcome.fault, plain.Empty)
	t := &turn.Tool{Phase: turn.Result, Name: p.name, CallID: p.id, Error: p.failed || failed}
	if p.name == "run_shell_command" {
		t.Exit = exitIn(p.text)
	}
	d.emit(r, turn.Turn{Class: turn.ToolUse, Text: text, Tool: t})
}

// bookkeeping are the events that say nothing to a reader.
var bookkeeping = map[string]bool{
	"ui_telemetry": true, "attribution_snapshot": true, "file_history_snapshot": true,
	"branch_checkpoint": true, "session_notes": true, "session_source": true,
	"session_execution_engine": true, "session_approval_mode": true, "session_artifact_event": true,
	"session_artifact_snapshot": true, "session_sources_snapshot": true, "agent_bootstrap": true,
	"agent_retry": true, "agent_session_ready": true, "goal_state": true, "goal_turn_end": true,
	"goal_runtime": true, "turn_result": true, "omni_recall": true, "user_text_elements": true,
	"managed_session_header_v1": true, "managed_session_event_v1": true, "managed_session_commit_v1": true,
}

// system takes an event and returns its type if that is unknown.
func (d *decoder) system(r *record) (unknown string) {
	p := &r.payload
	switch r.subtype {
	case "chat_compression":
		d.Meta.Compactions++
		d.emit(r, turn.Turn{Class: turn.Other, Text: plain.FirstOf(p.summary, "(context compacted)"), Mark: markSummary})
	case "rewind":
		d.rewound(r)
	case "slash_command":
		if p.phase == "result" {
			d.emit(r, turn.Turn{Class: turn.Other, Text: strings.Join(p.lines, "\n")})
		} else if !p.hidden {
			d.emit(r, turn.Turn{Class: turn.User, Text: p.command})
		}
	case "at_command":
		if len(p.files) > 0 {
			d.emit(r, turn.Turn{Class: turn.Other, Text: "[files read: " + strings.Join(p.files, ", ") + "]"})
		}
	case "notification", "cron", "background_task_completed", "realtime_message":
		d.emit(r, turn.Turn{Class: turn.Other, Text: plain.FirstOf(said(r.parts, false), p.display)})
	case "custom_title":
		if p.title != "" {
			d.Meta.Title = plain.Clip(p.title, 512)
		}
	case "parent_session":
		if p.parent != "" {
			d.Meta.Kind, d.Meta.Parent = "subagent", p.parent
		}
	case "session_model":
		if p.model != "" {
			d.Meta.Model = p.model
		}
	default:
		if !bookkeeping[r.subtype] {
			return plain.Clip(plain.Text("system/"+r.subtype), 64)
		}
	}
	return ""
}

// rewound says what the user took back. The turns stay: this is an archive.
func (d *decoder) rewound(r *record) {
	text := "[rewound"
	if parent := journal.ID(r.parent); parent != "" && parent != d.Last {
		text += " to after record " + parent
	}
	if r.payload.hasRemoved {
		text += fmt.Sprintf(": %d items of the conversation taken back, the last of them %s", r.payload.removed, d.Spoken)
	}
	d.emit(r, turn.Turn{Class: turn.Other, Text: text + "]"})
	d.Rewound = true
}

// branch marks a message that does not continue the one before it.
func (d *decoder) branch(r *record) {
	told := d.Rewound
	d.Rewound = false
	parent := journal.ID(r.parent)
	if told || parent == "" || d.Spoken == "" || parent == d.Last || parent == d.Spoken || r.sidechain {
		return
	}
	t := turn.Turn{Class: turn.Other, TS: d.TS, Mark: d.Mark, Text: "[branch: continues from record " + parent + ", not from " + d.Spoken + "]"}
	if id := journal.ID(r.uuid); id != "" {
		t.ID = id + "#branch"
	}
	d.Add(t)
}

// emit hands a turn out. Of a record's turns the first has its id.
func (d *decoder) emit(r *record, t turn.Turn) {
	if strings.TrimSpace(t.Text) == "" {
		return
	}
	d.Sign(&t, d.TS, r.uuid)
	if r.sidechain && d.Meta.Kind != "subagent" {
		t.Agent = journal.ID(r.agent)
	}
	d.Add(t)
}

// said joins the text of parts, or of the thoughts among them.
func said(parts []part, thoughts bool) string {
	var texts []string
	for _, p := range parts {
		if p.text != "" && p.thought == thoughts && !p.answer {
			texts = append(texts, p.text)
		}
	}
	return strings.Join(texts, "\n")
}

// exitIn finds the line that the shell tool puts behind what a command wrote.
func exitIn(s string) *int {
	const mark = "\nExit Code: "
	at := strings.LastIndex("\n"+s, mark)
	if at < 0 {
		return nil
	}
	digits, _, _ := strings.Cut(("\n" + s)[at+len(mark):], "\n")
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		return nil
	}
	return &n
}
