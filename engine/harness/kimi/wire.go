package kimi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/journal"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// wireRecord is one line of a wire log, read.
type wireRecord struct {
	object, protocol, created bool

	kind, ts, model      string
	hasInput, hasMessage bool
	message              record // of the input, too
	origin               string
	event                wireEvent
	summary              string
	count                int64
	hasCount             bool
}

// wireEvent is something that an agent did.
type wireEvent struct {
	kind   string
	part   part
	call   call
	result part
	failed bool
	usage  struct {
		known                          bool
		input, output, cached, written int64
	}
}

func (r *wireRecord) read(v *harness.Value) {
	*r = wireRecord{object: v.Kind() == '{'}
	v.Fields(func(field string) {
		switch field {
		case "type":
			r.kind = v.Text()
		case "time", "timestamp":
			r.ts = plain.Stamp(v.Text())
		case "created_at":
			r.created = v.Kind() == '0'
			r.ts = plain.Stamp(v.Text())
		case "protocol_version":
			r.protocol = true
		case "modelAlias", "model":
			r.model = plain.Text(v.Text())
		case "input":
			r.hasInput = v.Kind() != 'n'
			r.message.readParts(v)
		case "message":
			r.hasMessage = v.Kind() == '{'
			v.Fields(func(field string) {
				switch field {
				case "role":
					r.message.role = v.Text()
				case "content":
					r.message.readParts(v)
				case "origin":
					r.readOrigin(v)
				}
			})
		case "origin":
			r.readOrigin(v)
		case "event":
			v.Fields(func(field string) { r.event.field(v, field) })
		case "summary":
			r.summary = plain.Text(v.Text())
		case "count", "compactedCount":
			r.count, r.hasCount = v.Int()
		}
	})
}

func (r *wireRecord) readOrigin(v *harness.Value) {
	v.Fields(func(field string) {
		if field == "kind" {
			r.origin = v.Text()
		}
	})
}

func (e *wireEvent) field(v *harness.Value, field string) {
	switch field {
	case "type":
		e.kind = v.Text()
	case "part":
		e.part = readPart(v)
	case "name":
		e.call.name = plain.Text(v.Text())
	case "toolCallId":
		e.call.id = plain.Text(v.Text())
	case "args":
		e.call.arguments(v)
	case "result":
		e.readResult(v)
	case "usage":
		u := &e.usage
		u.known = v.Kind() == '{'
		v.Fields(func(field string) {
			n, _ := v.Int()
			switch field {
			case "inputOther":
				u.input = n
			case "output":
				u.output = n
			case "inputCacheRead":
				u.cached = n
			case "inputCacheCreation":
				u.written = n
			}
		})
	}
}

func (e *wireEvent) readResult(v *harness.Value) {
	if v.Kind() != '{' {
		e.result.text = plain.Text(v.Text())
		return
	}
	var out record
	note := ""
	v.Fields(func(field string) {
		switch field {
		case "output":
			out.readParts(v)
		case "note", "message":
			note = plain.Text(v.Text())
		case "isError":
			e.failed = v.Bool()
		}
	})
	if e.result.text = said(out.parts, false); strings.TrimSpace(e.result.text) == "" {
		e.result.text = note
	}
}

// wireState is what a wireDecoder keeps between passes.
type wireState struct {
	journal.Clock
	// Prompts are the hashes of prompts that one record told and another
	// will: that a turn begins, and that the context grows by a message.
	Prompts []prompted `json:"prompts,omitempty"`
}

type prompted struct {
	Kind string `json:"kind"`
	Text uint64 `json:"text,string"`
}

// maxPrompts bounds the prompts that wait for their other record.
const maxPrompts = 16

// wireDecoder reads one log.
type wireDecoder struct {
	wireState
	journal.Page
	env   harness.Env
	rec   wireRecord
	about bool // the file of the session was read
}

func newWireDecoder(saved []byte, env harness.Env) (*wireDecoder, error) {
	d := &wireDecoder{env: env}
	return d, journal.Restore("kimi", saved, &d.wireState)
}

// Decode implements harness.Decoder.
func (d *wireDecoder) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	return d.Read(unit, out, d.rec.read, d.take)
}

// State implements harness.Decoder.
func (d *wireDecoder) State() ([]byte, error) { return json.Marshal(&d.wireState) }

// quiet are the first words of the types that say nothing to a reader.
var quiet = map[string]bool{
	"metadata": true, "forked": true, "turn": true, "config": true, "permission": true, "full_compaction": true,
	"micro_compaction": true, "plan_mode": true, "swarm_mode": true, "tools": true, "usage": true, "goal": true,
	"llm": true, "mcp": true, "profile": true, "cron": true, "file_history": true,
}

// take reads a record and returns its type if that is unknown.
func (d *wireDecoder) take() (unknown string) {
	r := &d.rec
	d.Mark = d.Tick(d.Meta, r.ts)
	if !d.about {
		d.about = true
		d.session()
	}
	if r.model != "" {
		d.Meta.Model = r.model
	}
	switch r.kind {
	case "turn.prompt", "turn.steer":
		d.said(r, "turn")
		d.session() // by now it may have a title
	case "context.append_message":
		if r.message.role == "assistant" {
			d.emit(turn.Turn{Class: turn.Thought, Text: said(r.message.parts, true)})
			d.emit(turn.Turn{Class: turn.Agent, Text: said(r.message.parts, false)})
		} else {
			d.said(r, "message")
		}
	case "context.append_loop_event":
		return d.did(&r.event)
	case "context.apply_compaction":
		d.Meta.Compactions++
		if strings.TrimSpace(r.summary) == "" {
			r.summary = "(context compacted)"
		}
		d.emit(turn.Turn{Class: turn.Other, Text: r.summary, Mark: markSummary})
	case "context.undo":
		text := "[rewound]"
		if r.hasCount {
			text = fmt.Sprintf("[rewound: the last %d prompts, and what followed them, are taken back]", r.count)
		}
		d.emit(turn.Turn{Class: turn.Other, Text: text})
	case "context.clear":
		d.emit(turn.Turn{Class: turn.Other, Text: "[context cleared: what stands before is no part of it any more]"})
	case "":
		return "(none)"
	default:
		if family, _, _ := strings.Cut(r.kind, "."); !quiet[family] {
			return plain.Clip(plain.Text(r.kind), 64)
		}
	}
	return ""
}

// session takes what state.json, in the directory of the session, says of it.
func (d *wireDecoder) session() {
	raw := d.env.Near("../../state.json")
	if title := titleIn(raw); title != "" {
		d.Meta.Title = title
	}
	if d.Meta.CWD != "" {
		return
	}
	dir := ""
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		dir = ""
		v.Fields(func(field string) {
			if field == "cwd" || field == "workDir" {
				dir = plain.Text(v.Text())
			}
		})
	})
	if err == nil {
		d.Meta.CWD = dir
	}
}

// said takes a prompt, which two records tell: by is which of them this is.
func (d *wireDecoder) said(r *wireRecord, by string) {
	text := said(r.message.parts, false)
	hash := plain.Letters(text)
	if at := slices.IndexFunc(d.Prompts, func(p prompted) bool { return p.Text == hash && p.Kind != by }); at >= 0 {
		d.Prompts = slices.Delete(d.Prompts, at, at+1)
		return
	}
	class := turn.User
	if aside(text) || r.origin != "" && r.origin != "user" {
		class = turn.Other
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	if class == turn.User {
		if len(d.Prompts) >= maxPrompts {
			d.Prompts = slices.Delete(d.Prompts, 0, 1)
		}
		d.Prompts = append(d.Prompts, prompted{by, hash})
	}
	d.emit(turn.Turn{Class: class, Text: text})
}

// did takes an event and returns its type if that is unknown.
func (d *wireDecoder) did(e *wireEvent) (unknown string) {
	switch e.kind {
	case "content.part":
		class := turn.Agent
		if e.part.thought {
			class = turn.Thought
		}
		d.emit(turn.Turn{Class: class, Text: e.part.text})
	case "tool.call":
		if e.call.name == "" {
			e.call.name = "unknown"
		}
		t := &turn.Tool{Phase: turn.Call, Name: e.call.name, CallID: e.call.id}
		switch e.call.name {
		case "Bash", "Shell":
			t.Command = e.call.command
		case "Write", "Edit", "WriteFile", "StrReplaceFile":
			t.Edits = e.call.edits
		}
		d.emit(turn.Turn{Class: turn.ToolUse, Text: strings.TrimSpace("tool_call " + e.call.name + " " + e.call.args), Tool: t})
	case "tool.result":
		text := plain.FirstOf(e.result.text, plain.Empty)
		d.emit(turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{Phase: turn.Result, CallID: e.call.id, Error: e.failed}})
	case "step.begin", "step.end":
		if u, t := e.usage, &d.Meta.Tokens; u.known {
			t.Input += u.input
			t.Output += u.output
			t.CacheRead += u.cached
			t.CacheWrite += u.written
			t.Context = u.input + u.cached + u.written
		}
	default:
		return plain.Clip(plain.Text("event/"+e.kind), 64)
	}
	return ""
}

// emit hands a turn out.
func (d *wireDecoder) emit(t turn.Turn) {
	if strings.TrimSpace(t.Text) == "" {
		return
	}
	t.TS = d.TS
	if t.Tool != nil && t.Tool.CallID != "" {
		t.ID = string(t.Tool.Phase) + ":" + plain.Clip(t.Tool.CallID, 256)
	}
	if t.Mark == "" {
		t.Mark = d.Mark
	}
	d.Add(t)
}
