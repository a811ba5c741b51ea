package codex

import (
	"slices"
	"strings"

	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// item takes a response item, which is the record.
func (d *decoder) item(r *record) (unknown string) {
	switch r.fields.kind {
	case "message":
		d.message(&r.fields)
	case "agent_message":
		// What one agent tells another; the user sees none of it.
		if text, _ := r.messageText(); strings.TrimSpace(text) != "" {
			d.Twins.turns(d.other(text))
		}
	case "reasoning":
		d.thought(&r.fields)
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call":
		d.call(&r.fields)
	case "web_search_call":
		d.Twins.item(search, []uint64{plain.Letters(r.query)}, d.searchTurn(&r.fields))
	case "image_generation_call":
		d.Twins.item(call, []uint64{plain.Hash(r.id)}, d.pictureTurns(&r.fields)...)
		d.remember(r.id, "image_generation")
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output":
		d.result(&r.fields)
	case "compaction", "compaction_summary", "context_compaction":
		// Encrypted; the compacted line beside it has the summary.
		d.Twins.event(compaction, 0, fromItem, d.summary(""))
	case "ghost_snapshot", "additional_tools", "compaction_trigger":
	default:
		return plain.Clip(plain.Text("response_item/"+r.fields.kind), 64)
	}
	return ""
}

// message takes what somebody said.
func (d *decoder) message(f *fields) {
	text, keys := f.messageText()
	if strings.TrimSpace(text) == "" {
		return
	}
	class, shown := classify(f.role, text)
	t := turn.Turn{TS: d.now, Mark: d.mark, Class: class, Text: shown}
	if class == turn.Other {
		if d.meta.CWD == "" {
			set(&d.meta.CWD, environmentCWD(text))
		}
		d.Twins.turns(t)
		return
	}
	k := user
	if class == turn.Agent {
		k = agent
		if around, plan, ok := withoutPlan(text); ok {
			keys = append(keys, plain.Letters(around), plain.Letters(plan))
		}
	} else {
		if shown != text {
			keys = append(keys, plain.Letters(shown))
		}
		if !d.Marked {
			d.prompt(keys)
		}
	}
	d.Twins.item(k, keys, t)
}

// prompt ends the turn before a user message, in a rollout that does not name
// its turns. The message's own event may stand before it (B27).
func (d *decoder) prompt(keys []uint64) {
	var own []held
	d.Twins.Queue = slices.DeleteFunc(d.Twins.Queue, func(h held) bool {
		mine := h.Undecided && h.Kind == user && slices.Contains(keys, h.Key)
		if mine {
			own = append(own, h)
		}
		return mine
	})
	d.Twins.end()
	d.Twins.Queue = own
}

// thought takes reasoning, of which only the readable part counts; it may be
// in the summary, in the content, or in both (B21).
func (d *decoder) thought(f *fields) {
	texts := slices.Clone(f.summary)
	for _, p := range f.parts {
		if p.text != "" && !slices.Contains(texts, p.text) {
			texts = append(texts, p.text)
		}
	}
	if f.content != "" {
		texts = append(texts, f.content)
	}
	text := strings.Join(texts, "\n\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	keys := []uint64{plain.Letters(texts...)}
	if len(texts) > 1 {
		for _, s := range texts {
			keys = append(keys, plain.Letters(s))
		}
	}
	d.Twins.item(reasoning, keys, turn.Turn{TS: d.now, Mark: d.mark, Class: turn.Thought, Text: text})
}

// call takes the call of a tool.
func (d *decoder) call(f *fields) {
	name, args := f.callName(f.kind), f.args
	if f.kind == "local_shell_call" {
		args = f.action
	}
	id := f.callID
	if id == "" {
		id = f.id
	}
	t := callTurn(d.now, d.mark, name, id, args)
	if f.kind == "local_shell_call" {
		t.Tool.Command = plain.Text(f.command)
		t.Tool.Edits = patched(f.command)
	}
	d.claim(id)
	d.Twins.turns(t)
	d.Twins.Fresh = 0
	d.remember(id, name)
}

// claim drops the event-only turns of a call whose item has come.
func (d *decoder) claim(id string) {
	w := &d.Twins
	key := saying{call, plain.Hash(id)}
	w.Queue = slices.DeleteFunc(w.Queue, func(h held) bool { return h.Undecided && h.saying == key })
	w.drain()
}

// remember keeps a call for its result and the events about it.
func (d *decoder) remember(id, name string) {
	if id == "" {
		return
	}
	d.Calls = append(d.Calls, called{Key: plain.Hash(id), Name: plain.Clip(plain.Text(name), 64)})
	if n := len(d.Calls) - maxCalls; n > 0 {
		d.Calls = slices.Delete(d.Calls, 0, n)
	}
}

// known returns the call with this id, or nil.
func (d *decoder) known(id string) *called {
	key := plain.Hash(id)
	for i := len(d.Calls) - 1; i >= 0; i-- {
		if d.Calls[i].Key == key {
			return &d.Calls[i]
		}
	}
	return nil
}

// result takes what a tool answered.
func (d *decoder) result(f *fields) {
	o := f.output
	var name string
	if c := d.known(f.callID); c != nil {
		name = c.Name
		if o.exit == nil {
			o.exit = c.Exit
		}
		o.failed = o.failed || c.Failed
	}
	d.claim(f.callID)
	d.Twins.turns(resultTurn(d.now, d.mark, name, f.callID, o.text, o.exit, o.failed))
	d.Twins.Fresh = 0
}

// searchTurn is the turn of a web search, which has no result of its own.
func (d *decoder) searchTurn(f *fields) turn.Turn {
	args := f.action
	if args == "" {
		args = f.query
	}
	return callTurn(d.now, d.mark, "web_search", "", args)
}

// pictureTurns are the call and the result of a generated picture.
func (d *decoder) pictureTurns(f *fields) []turn.Turn {
	id := f.id
	if id == "" {
		id = f.callID
	}
	return []turn.Turn{
		callTurn(d.now, d.mark, "image_generation", id, f.prompt),
		resultTurn(d.now, d.mark, "image_generation", id, plain.Image, nil, f.status == "failed"),
	}
}
