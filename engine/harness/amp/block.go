package amp

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// block is one element of a message's content.
type block struct {
	kind   string
	text   string
	hidden bool
	callID string
	name   string
	tool   turn.Tool // Command and Edits, of a call
	run    run
}

// run is how a tool's work went.
type run struct {
	status, text string
	exit         *int
}

// failed are the states of a run that came to nothing, and settled those that
// no longer change (flitter, packages/schemas; amp.rs).
var (
	failed  = map[string]bool{"error": true, "cancelled": true, "rejected-by-user": true}
	settled = map[string]bool{"done": true, "error": true, "cancelled": true, "rejected-by-user": true, "": true, "success": true}
)

// open reports whether the block is a result that is still to come.
func (b *block) open() bool { return !settled[b.run.status] }

// readBlocks reads content, which is an array of blocks or a text.
func readBlocks(v *harness.Value) (list []block) {
	if v.Kind() == '"' {
		return []block{{kind: "text", text: plain.Text(v.Text())}}
	}
	v.Items(func() { list = append(list, readBlock(v)) })
	return list
}

// readBlock reads one block: first as a value, since its members may stand in
// any order and a block that nobody knows is kept as it is.
func readBlock(v *harness.Value) (b block) {
	raw := v.Raw()
	if raw == nil {
		return b
	}
	var in harness.Value
	var input []byte
	var summary string
	var beside run // what results say that have no run (flitter, thread.ts)
	_, _ = in.Walk(raw, func(v *harness.Value) {
		b, input, summary, beside = block{}, nil, "", run{}
		v.Fields(func(name string) {
			switch name {
			case "type":
				b.kind = plain.Text(v.Text())
			case "text", "thinking":
				if s := plain.Text(v.Text()); s != "" {
					b.text = s
				}
			case "hidden":
				b.hidden = v.Bool()
			case "id", "toolUseID":
				if s := plain.Text(v.Text()); s != "" {
					b.callID = s
				}
			case "name":
				b.name = plain.Text(v.Text())
			case "input", "args":
				input = v.Raw()
			case "run", "toolRun":
				if r := readRun(v.Raw()); r != (run{}) {
					b.run = r
				}
			case "status":
				beside.status = plain.Text(v.Text())
			case "output", "content":
				beside.text, beside.exit = readResult(v.Raw())
			case "summary":
				summary = readSummary(v)
			}
		})
	})
	if b.run == (run{}) {
		b.run = beside
	}
	switch b.kind {
	case "text", "thinking", "redacted_thinking", "image", "tool_result":
	case "summary":
		b.text = summary
	case "tool_use", "server_tool_use":
		b.call(input)
	case "manual_bash_invocation":
		b.tool.Command = arguments(input).command
	default:
		b.text = plain.Text(slim(raw))
	}
	return b
}

// joined makes one of the texts and pictures that follow one another, for a
// prompt is one turn, whatever it carries. The others stay as empty blocks, so
// that those behind keep their numbers.
func joined(list []block) []block {
	first := -1
	for i := range list {
		b := &list[i]
		switch {
		case b.hidden || b.kind != "text" && b.kind != "image":
			first = -1
			continue
		case b.kind == "image":
			b.kind, b.text = "text", plain.Image
		}
		if strings.TrimSpace(b.text) == "" {
			continue
		}
		if first < 0 {
			first = i
			continue
		}
		list[first].text += "\n" + b.text
		b.text = ""
	}
	return list
}

// readSummary reads what stands for a compacted thread: a text, or another
// thread that has it (amp.rs).
func readSummary(v *harness.Value) (text string) {
	var thread string
	if v.Kind() == '"' {
		return plain.Text(v.Text())
	}
	v.Fields(func(name string) {
		switch name {
		case "summary":
			text = plain.Text(v.Text())
		case "thread":
			thread = plain.Text(v.Text())
		}
	})
	if text == "" && thread != "" {
		text = "summary in thread " + thread
	}
	return text
}

// call makes the text of a call and finds what it runs and changes. Names of
// tools are those of Amp's own, which tools of others may share.
func (b *block) call(input []byte) {
	said := "{}"
	if input != nil {
		said = slim(input)
	}
	if b.name == "" {
		b.name = "unknown"
	}
	b.text = plain.Text("tool_call " + b.name + " " + said)
	a := arguments(input)
	switch b.name {
	case "Bash", "shell_command":
		b.tool.Command = a.command
	case "edit_file", "create_file", "undo_edit", "format_file":
		if a.path != "" {
			b.tool.Edits = []string{a.path}
		}
	case "apply_patch":
		b.tool.Edits = patched(a.patch)
	}
}

// use is what the arguments of a call say that is more than text.
type use struct{ path, command, patch string }

// arguments reads the arguments of a call, which are an object of the tool's.
func arguments(input []byte) (a use) {
	var v harness.Value
	_, _ = v.Walk(input, func(v *harness.Value) {
		a = use{}
		v.Fields(func(name string) {
			switch name {
			case "path":
				a.path = plain.Text(v.Text())
			case "cmd", "command":
				a.command = plain.Text(v.Text())
			case "patchText", "patch":
				a.patch = plain.Text(v.Text())
			}
		})
	})
	return a
}

// patched are the files that a patch of the form of apply_patch names.
func patched(patch string) (files []string) {
	for line := range strings.Lines(patch) {
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if name, ok := strings.CutPrefix(line, head); ok {
				if name = strings.TrimSpace(name); name != "" {
					files = append(files, name)
				}
			}
		}
	}
	return files
}
