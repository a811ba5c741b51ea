package cline

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// document reads a task. It is used once: a task that changed is read again.
type document struct {
	env   harness.Env
	value harness.Value
	turns []turn.Turn
	// held are the turns of messages that are still coming in.
	held []turn.Turn
	meta *session.Meta
	now  clock
	ids  map[string]int

	talk
	model
}

// clock is the time of the message that is read, and whether it is that of one
// before it.
type clock struct {
	ts      string
	guessed bool
}

const (
	markSummary     = "summary"
	markApproximate = "approximate-time"
)

// Decode implements harness.Decoder.
func (d *document) Decode(unit []byte, _ harness.Position, out *harness.Out) error {
	var list []element
	array := false
	lenient, err := d.value.Walk(whole(unit), func(v *harness.Value) {
		list, array = nil, v.Kind() == '['
		v.Items(func() {
			var e element
			e.read(v)
			list = append(list, e)
		})
	})
	switch {
	case err != nil:
		return err
	case !array:
		return &harness.Rejection{Reason: "not an array of messages"}
	}
	messages, spoken := 0, 0
	for i := range list {
		if list[i].shown() {
			messages++
		} else if list[i].spoken() {
			spoken++
		}
	}
	if len(list) > 0 && messages+spoken == 0 {
		return &harness.Rejection{Reason: "an array without a message"}
	}
	if messages == 0 && spoken > 0 {
		if err := d.twin(); err != nil {
			return err
		}
	}
	d.meta, d.ids = out.Meta, map[string]int{}
	end := len(list)
	for end > 0 && list[end-1].partial && list[end-1].shown() {
		end--
	}
	for i := range list {
		if i == end {
			d.turns, d.held = nil, d.turns
		}
		e := &list[i]
		switch {
		case e.shown():
			d.tick(e)
			d.show(e)
		case e.spoken() && messages == 0:
			d.tick(e)
			d.speak(e)
		}
	}
	if end < len(list) {
		d.turns, d.held = d.held, d.turns
	}
	d.beside()
	out.Turns = append(out.Turns, d.turns...)
	out.Flagged = out.Flagged || lenient
	d.meta = nil
	return nil
}

// Pending implements harness.Decoder.
func (d *document) Pending() bool { return len(d.held) > 0 }

// Flush implements harness.Decoder.
func (d *document) Flush(out *harness.Out) {
	out.Turns = append(out.Turns, d.held...)
	d.held = nil
}

// State implements harness.Decoder.
func (d *document) State() ([]byte, error) { return []byte("null"), nil }

// whole is the content without what a byte order mark or a writer that was cut
// off makes of it. An array that lacks nothing but its end (cline/cline#2321) is
// closed; what is torn inside a message is left to be read again.
func whole(unit []byte) []byte {
	unit = bytes.TrimSpace(bytes.Trim(bytes.TrimPrefix(unit, []byte("\ufeff")), "\x00"))
	if len(unit) == 0 || unit[0] != '[' {
		return unit
	}
	body := bytes.TrimRight(bytes.TrimSuffix(unit, []byte(",")), " \t\r\n")
	if len(body) > 0 && body[len(body)-1] == '}' {
		return append(bytes.Clone(body), ']')
	}
	return unit
}

// tick sets the time of a message.
func (d *document) tick(e *element) {
	if e.ts == "" {
		d.now.guessed = d.now.ts != ""
		return
	}
	d.now = clock{ts: e.ts}
	if d.meta.FirstTS == "" {
		d.meta.FirstTS = e.ts
	}
	if plain.Later(d.meta.LastTS, e.ts) {
		d.meta.LastTS = e.ts
	}
}

// emit adds a turn. Of turns with one name the second and further ones are
// numbered.
func (d *document) emit(id string, t turn.Turn) {
	if t.Text = plain.Text(t.Text); strings.TrimSpace(t.Text) == "" {
		return
	}
	id = plain.Clip(plain.Text(id), 160)
	if d.ids[id]++; d.ids[id] > 1 {
		id += "#" + strconv.Itoa(d.ids[id])
	}
	t.ID, t.TS = id, d.now.ts
	if t.Mark == "" && d.now.guessed {
		t.Mark = markApproximate
	}
	d.turns = append(d.turns, t)
}

// spend adds up the tokens of a request.
func (d *document) spend(u usage) {
	t := &d.meta.Tokens
	t.Input += u.in
	t.Output += u.out
	t.CacheRead += u.cacheRead
	t.CacheWrite += u.cacheWrite
	if sum := u.in + u.cacheRead + u.cacheWrite; sum > 0 {
		t.Context = sum
	}
}

// call adds the call of a tool.
func (d *document) call(id, name, args string, use turn.Tool) {
	if name == "" {
		name = "unknown"
	}
	use.Phase, use.Name = turn.Call, plain.Text(name)
	d.emit(id, turn.Turn{Class: turn.ToolUse, Text: strings.TrimSpace("tool_call " + name + " " + args), Tool: &use})
}

// result adds the result of a tool.
func (d *document) result(id, text string, use turn.Tool) {
	text = plain.FirstOf(text, plain.Empty)
	use.Phase = turn.Result
	d.emit(id, turn.Turn{Class: turn.ToolUse, Text: text, Tool: &use})
}

// begin takes the first words of the task as the title of the session.
func (d *document) begin(text string) {
	if d.meta.Title != "" {
		return
	}
	line, _, _ := strings.Cut(strings.TrimSpace(plain.Text(text)), "\n")
	d.meta.Title = plain.Clip(strings.TrimSpace(line), 512)
}

// locate finds the working directory in what the harness tells the model of the
// workspace.
func (d *document) locate(text string) {
	if d.meta.CWD != "" {
		return
	}
	for _, sign := range []string{"# Current Working Directory (", "# Current Workspace Directory ("} {
		_, rest, ok := strings.Cut(text, sign)
		if !ok {
			continue
		}
		line, _, _ := strings.Cut(rest, "\n")
		if end := strings.LastIndexByte(line, ')'); end > 0 {
			d.meta.CWD = plain.Text(line[:end])
			return
		}
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func hex(n uint64) string { return fmt.Sprintf("%016x", n) }
