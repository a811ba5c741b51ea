package cline

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// model is what reading the model's conversation remembers.
type model struct {
	begun  bool   // the task was told
	called bool   // the answer before called a tool
	header string // the tool whose result follows
}

// twin refuses the model's conversation where the messages stand beside it, or
// were captured before they were deleted: it would double the task.
func (d *document) twin() error {
	if d.env.Name() != historyFile || d.env.Beside == nil {
		return nil
	}
	if turns, ok := d.env.Lookup(path.Base(path.Dir(filepath.ToSlash(d.env.Path)))); ok {
		for t := range turns {
			if strings.Contains(t.ID, "/say/") || strings.Contains(t.ID, "/ask/") {
				return fault.New(fault.Unsupported, "%w", &harness.Rejection{
					Reason: historyFile + " says what was captured of the same task from its messages",
				})
			}
		}
	}
	for _, name := range []string{messagesFile, oldMessagesFile} {
		data, err := d.env.Beside(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// One that is too large to be read here is there all the same.
		if shape, _ := look(data); err != nil || shape == shown {
			return fault.New(fault.Unsupported, "%w", &harness.Rejection{
				Reason: historyFile + " says what " + name + " beside it says of the same task",
			}).WithHint("build %s", name)
		}
	}
	return nil
}

// speak takes a message of the model's conversation. It has no id, and where
// the conversation was cut not even a place: it is named after its content.
func (d *document) speak(e *element) {
	if e.model != "" {
		d.meta.Model = plain.Text(e.model)
	}
	d.spend(e.usage)
	if e.condensed {
		var texts []string
		for _, p := range e.parts {
			texts = append(texts, p.text)
		}
		text := strings.Join(texts, "\n")
		d.summary(named("summary", text), text)
		return
	}
	d.header = ""
	if e.role == "assistant" {
		d.called = false
		for _, p := range e.parts {
			d.answer(p)
		}
		return
	}
	for _, p := range e.parts {
		d.hear(p)
	}
	d.begun = true
}

func named(kind, text string) string { return kind + ":" + hex(plain.Hash(text)) }

// answer takes a block of the model's.
func (d *document) answer(p part) {
	switch p.kind {
	case "tool_use":
		d.called = true
		d.act(p)
	case "thinking", "reasoning":
		d.emit(named("thought", p.text), turn.Turn{Class: turn.Thought, Text: p.text})
	default:
		d.say(p.text)
	}
}

// act takes the call of a tool. What only speaks to the user is speech.
func (d *document) act(p part) {
	in := readInput(p.args)
	id := "call:" + p.id
	if p.id == "" {
		id = named("call", p.name+p.args)
	}
	if text := in.spoken(p.name); text != "" {
		d.emit(id, turn.Turn{Class: turn.Agent, Text: text})
		return
	}
	use := turn.Tool{CallID: plain.Text(p.id)}
	in.fill(p.name, &use)
	d.call(id, p.name, p.args, use)
}

// say takes the model's text, in which older versions let it call tools by tags.
func (d *document) say(text string) {
	for text != "" {
		start, end, name, inner := tagged(text)
		if before := strings.TrimSpace(text[:start]); before != "" {
			d.emit(named("text", before), turn.Turn{Class: turn.Agent, Text: before})
		}
		switch {
		case name == "":
		case name == "thinking":
			d.emit(named("thought", inner), turn.Turn{Class: turn.Thought, Text: strings.TrimSpace(inner)})
		default:
			in := readTags(inner)
			id := named("call", name+inner)
			d.called = true
			if said := in.spoken(name); said != "" {
				d.emit(id, turn.Turn{Class: turn.Agent, Text: said})
				break
			}
			var use turn.Tool
			in.fill(name, &use)
			d.call(id, name, strings.TrimSpace(inner), use)
		}
		text = text[end:]
	}
}

// hear takes a block of what is sent to the model. Words of the user's are in
// tags; around them stands what the harness itself has to say.
func (d *document) hear(p part) {
	text := strings.TrimSpace(p.text)
	switch {
	case p.kind == "tool_result":
		d.located(p.text)
		use := turn.Tool{CallID: plain.Text(p.id), Error: p.failed}
		id := "result:" + p.id
		if p.id == "" {
			id = named("result", p.text)
		}
		d.result(id, p.text, use)
		d.words(p.text, false)
	case strings.HasPrefix(text, "<environment_details>"):
		d.locate(text)
		d.emit(named("environment", text), turn.Turn{Class: turn.Other, Text: text})
	case d.words(text, true):
	case text == "":
	case !d.begun && p.kind != "image":
		d.begin(text)
		d.begun = true
		d.emit(named("user", text), turn.Turn{Class: turn.User, Text: text})
	case p.kind == "image":
		d.emit("image:"+d.now.ts, turn.Turn{Class: turn.User, Text: text})
	default:
		d.told(text)
	}
}

// told takes what the harness sent on its own: the result of a tool, headed by
// the tool's name, or a remark.
func (d *document) told(text string) {
	if m := resultHead().FindStringSubmatch(text); m != nil {
		d.header = m[1]
		if text = strings.TrimSpace(text[len(m[0]):]); text == "" {
			return // the result is the next block
		}
	} else if !d.called || strings.HasPrefix(text, "[") {
		d.emit(named("remark", text), turn.Turn{Class: turn.Other, Text: text})
		return
	}
	d.result(named("result", d.header+text), text, turn.Tool{Name: plain.Text(d.header)})
}

func (d *document) located(text string) {
	if strings.Contains(text, "<environment_details>") {
		d.locate(text)
	}
}

// words takes what the user said in a block, and reports whether there was any.
// What a tool found may hold the same tags, so only those count that open the
// block or follow a sentence about the user. What stands around them is told too
// where around says so.
func (d *document) words(text string, around bool) bool {
	for _, tag := range []string{"task", "feedback", "answer", "user_message"} {
		before, rest, ok := strings.Cut(text, "<"+tag+">\n")
		if !ok {
			continue
		}
		inner, after, ok := strings.Cut(rest, "\n</"+tag+">")
		if inner = strings.TrimSpace(inner); !ok || inner == "" {
			continue
		}
		before = strings.TrimSpace(before)
		if before != "" && (tag == "task" || len(before) > aboutUser || !asking().MatchString(before)) {
			continue
		}
		if rest := joined(before, strings.TrimSpace(after)); around && rest != "" && !strings.HasSuffix(rest, "Result:") {
			d.emit(named("remark", rest), turn.Turn{Class: turn.Other, Text: rest})
		}
		if tag == "task" {
			d.begun = true
			d.begin(inner)
		}
		d.emit(named("user", inner), turn.Turn{Class: turn.User, Text: inner})
		return true
	}
	return false
}

// aboutUser is how long what introduces the user's words may be, in bytes.
const aboutUser = 1024

// asking is what introduces the user's words.
var asking = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\buser\b|^\[(attempt_completion|ask_followup_question|plan_mode_respond)\b|\[TASK RESUMPTION\]`)
})

// resultHead is the line that says whose result follows: the tool's name and
// what it was called with.
var resultHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\[([a-z_]+)(?: for [^\n]*)?\] Result:`)
})

// toolTag is the tag of a tool at the start of a line.
var toolTag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*<(thinking|execute_command|read_file|write_to_file|replace_in_file|apply_diff|insert_content|` +
		`search_and_replace|search_files|list_files|list_code_definition_names|browser_action|use_mcp_tool|access_mcp_resource|` +
		`ask_followup_question|attempt_completion|plan_mode_respond|new_task|switch_mode|fetch_instructions|codebase_search|` +
		`update_todo_list|load_mcp_documentation|web_fetch|condense)>`)
})

// tagged finds the first use of a tool in text; without one, name is "" and the
// rest is text. A use that is cut short ends with the text.
func tagged(text string) (start, end int, name, inner string) {
	m := toolTag().FindStringSubmatchIndex(text)
	if m == nil {
		return len(text), len(text), "", ""
	}
	name = text[m[2]:m[3]]
	closing := "</" + name + ">"
	if n := strings.Index(text[m[1]:], closing); n >= 0 {
		return m[0], m[1] + n + len(closing), name, text[m[1] : m[1]+n]
	}
	return m[0], len(text), name, text[m[1]:]
}

// input is what a tool was called with, as far as it is told apart.
type input map[string]string

// inputs are the members that are read.
var inputs = set("command", "path", "file_path", "absolutePath", "result", "question", "response")

func readInput(args string) input {
	in := input{}
	var v harness.Value
	_, err := v.Walk([]byte(args), func(v *harness.Value) {
		clear(in)
		v.Fields(func(name string) {
			if inputs[name] && v.Kind() == '"' {
				in[name] = v.Text()
			}
		})
	})
	if err != nil {
		return input{}
	}
	return in
}

func readTags(inner string) input {
	in := input{}
	for name := range inputs {
		if _, rest, ok := strings.Cut(inner, "<"+name+">"); ok {
			value, _, _ := strings.Cut(rest, "</"+name+">")
			in[name] = strings.TrimSpace(value)
		}
	}
	return in
}

// spoken is what a tool says to the user, "" for one that works.
func (in input) spoken(tool string) string {
	switch tool {
	case "attempt_completion":
		return in["result"]
	case "ask_followup_question":
		return in["question"]
	case "plan_mode_respond":
		return in["response"]
	}
	return ""
}

// fill says of a call what command it runs and which files it changes.
func (in input) fill(tool string, use *turn.Tool) {
	switch tool {
	case "execute_command":
		use.Command = plain.Text(in["command"])
	case "write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace", "edit_file", "search_replace":
		if file := plain.FirstOf(in["path"], in["file_path"], in["absolutePath"]); file != "" {
			use.Edits = []string{plain.Text(file)}
		}
	}
}
