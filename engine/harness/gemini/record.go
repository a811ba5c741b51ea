package gemini

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// record is one line, or one message of a document or checkpoint.
type record struct {
	object  bool
	foreign bool // it has a member that Gemini CLI never writes

	id, ts, kind string
	hasContent   bool
	content      []piece
	thoughts     []thought
	calls        []toolCall
	tokens       *tokens
	model        string

	// metadata, of the first line and of $set
	sessionID, project, started, updated string
	summary, sessionKind                 string
	directory                            string
	hasSet, hasRewind, hasPatch          bool
	rewindTo                             string
	removed                              []string // ids that a $patch takes out
	checkpoint                           []record
	control                              string // an unknown $… member
}

// metadata reports whether the line is the first of a session.
func (r *record) metadata() bool { return r.id == "" && r.sessionID != "" && r.project != "" }

// message reports whether the line is a message.
func (r *record) message() bool {
	switch r.kind {
	case "user", "gemini", "info", "warning", "error":
		return r.id != "" && (r.hasContent || r.kind == "gemini")
	}
	return false
}

// piece is one part of a message's content.
type piece struct {
	text    string
	thought bool
	// answer is the call that a functionResponse answers; called one that a
	// functionCall makes.
	answer, called *toolCall
}

type thought struct{ ts, text string }

// toolCall is a call with what became of it.
type toolCall struct {
	id, name, args string
	command        string
	edits          []string
	status, ts     string
	hasResult      bool
	result         string
	display        string
	failed         bool
}

// tokens is the usage of one answer.
type tokens struct {
	Input  int64 `json:"i,omitempty"`
	Cached int64 `json:"c,omitempty"`
	Output int64 `json:"o,omitempty"`
}

// read reads a line from the start.
func (r *record) read(v *harness.Value) {
	*r = record{}
	if v.Kind() != '{' {
		v.Skip()
		return
	}
	r.object = true
	v.Fields(func(name string) {
		switch name {
		case "$set":
			if v.Kind() == '{' {
				r.hasSet = true
				v.Fields(func(name string) { r.metaField(v, name) })
			}
		case "$rewindTo":
			if v.Kind() == '"' {
				r.hasRewind = true
				r.rewindTo = v.Text()
			}
		case "$patch":
			// What else it changes is what a masked result becomes, and the
			// order of messages.
			if r.hasPatch = v.Kind() == '{'; r.hasPatch {
				v.Fields(func(name string) {
					if name == "removeIds" {
						v.Items(func() { r.removed = append(r.removed, v.Text()) })
					}
				})
			}
		case "uuid", "parentUuid", "parentId", "payload", "message", "role":
			r.foreign = true
		default:
			if strings.HasPrefix(name, "$") {
				r.control = name
				return
			}
			r.field(v, name)
		}
	})
}

// field reads a member of a message or of the first line.
func (r *record) field(v *harness.Value, name string) {
	switch name {
	case "id":
		r.id = v.Text()
	case "timestamp":
		r.ts = v.Text()
	case "type":
		r.kind = v.Text()
	case "content":
		r.hasContent = v.Kind() != 'n'
		r.content = readParts(v)
	case "thoughts":
		v.Items(func() {
			if t := readThought(v); t.text != "" {
				r.thoughts = append(r.thoughts, t)
			}
		})
	case "toolCalls":
		v.Items(func() {
			if v.Kind() == '{' {
				r.calls = append(r.calls, readCall(v))
			}
		})
	case "tokens":
		if v.Kind() == '{' {
			r.tokens = readTokens(v)
		}
	case "model":
		r.model = v.Text()
	default:
		r.metaField(v, name)
	}
}

// metaField reads a member about the session.
func (r *record) metaField(v *harness.Value, name string) {
	switch name {
	case "sessionId":
		r.sessionID = v.Text()
	case "projectHash":
		r.project = v.Text()
	case "startTime":
		r.started = v.Text()
	case "lastUpdated":
		r.updated = v.Text()
	case "summary":
		r.summary = v.Text()
	case "kind":
		r.sessionKind = v.Text()
	case "directories":
		v.Items(func() {
			if dir := v.Text(); r.directory == "" {
				r.directory = dir
			}
		})
	case "messages":
		v.Items(func() {
			r.checkpoint = append(r.checkpoint, record{})
			r.checkpoint[len(r.checkpoint)-1].read(v)
		})
	}
}

// readParts reads a PartListUnion: a string, a part, or a list of them.
func readParts(v *harness.Value) []piece {
	switch v.Kind() {
	case '"', '{':
		if p, ok := readPart(v); ok {
			return []piece{p}
		}
	case '[':
		var list []piece
		v.Items(func() {
			if p, ok := readPart(v); ok {
				list = append(list, p)
			}
		})
		return list
	}
	return nil
}

// readPart reads one part; ok is false when it says nothing.
func readPart(v *harness.Value) (p piece, ok bool) {
	if v.Kind() == '"' {
		p.text = plain.Text(v.Text())
		return p, p.text != ""
	}
	v.Fields(func(name string) {
		switch name {
		case "text":
			p.text = plain.Text(v.Text())
		case "thought":
			p.thought = v.Bool()
		case "inlineData", "fileData":
			p.text = readMedia(v)
		case "functionResponse":
			p.answer = &toolCall{status: "success"}
			v.Fields(func(name string) {
				switch name {
				case "id":
					p.answer.id = v.Text()
				case "name":
					p.answer.name = v.Text()
				case "response":
					readResponse(v, p.answer)
				}
			})
		case "functionCall":
			call := readCall(v)
			p.called = &call
		}
	})
	return p, p.text != "" || p.answer != nil || p.called != nil
}

// readMedia reads a file in a message, of which only the kind is kept.
func readMedia(v *harness.Value) string {
	text := "[file]"
	v.Fields(func(name string) {
		if name == "mimeType" && strings.HasPrefix(v.Text(), "image/") {
			text = plain.Image
		}
	})
	return text
}

// readResponse reads what a tool answered: {"output":…}, {"error":…}, or any
// other object, which is then kept as it stands.
func readResponse(v *harness.Value, c *toolCall) {
	c.hasResult = true
	if v.Kind() != '{' {
		c.result = plain.Text(v.Text())
		return
	}
	raw := v.Raw()
	c.result = plain.Text(plain.Compact(raw))
	var inner harness.Value
	// The response was valid as part of the line, so the error is of no use.
	_, _ = inner.Walk(raw, func(v *harness.Value) {
		v.Fields(func(name string) {
			if (name == "output" || name == "error") && v.Kind() == '"' {
				c.result = plain.Text(v.Text())
				c.failed = name == "error"
			}
		})
	})
}

// readThought reads a thought.
func readThought(v *harness.Value) thought {
	var t thought
	var subject, description string
	v.Fields(func(name string) {
		switch name {
		case "subject":
			subject = plain.Text(v.Text())
		case "description":
			description = plain.Text(v.Text())
		case "timestamp":
			t.ts = v.Text()
		}
	})
	t.text = strings.TrimSpace(subject + "\n\n" + description)
	return t
}

// readCall reads a tool call.
func readCall(v *harness.Value) toolCall {
	var c toolCall
	v.Fields(func(name string) {
		switch name {
		case "id":
			c.id = v.Text()
		case "name":
			c.name = v.Text()
		case "args":
			raw := v.Raw()
			c.args = plain.Compact(raw)
			c.command, c.edits = readArgs(raw)
		case "status":
			c.status = v.Text()
		case "timestamp":
			c.ts = v.Text()
		case "result":
			readResult(v, &c)
		case "resultDisplay":
			if v.Kind() == '"' {
				c.display = plain.Text(v.Text())
			}
		}
	})
	return c
}

// readResult reads the parts of a result.
func readResult(v *harness.Value, c *toolCall) {
	if v.Kind() == 'n' {
		return
	}
	var texts []string
	for _, p := range readParts(v) {
		c.hasResult = true
		switch {
		case p.answer != nil:
			if p.answer.result != "" {
				texts = append(texts, p.answer.result)
			}
			c.failed = c.failed || p.answer.failed
		case p.text != "":
			texts = append(texts, p.text)
		}
	}
	c.result = strings.Join(texts, "\n")
}

// readArgs finds the command line and the file in a call's arguments.
func readArgs(raw []byte) (command string, edits []string) {
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		command, edits = "", nil
		v.Fields(func(name string) {
			switch name {
			case "command":
				if v.Kind() == '"' {
					command = plain.Text(v.Text())
				}
			case "file_path", "absolute_path", "path":
				if s := plain.Text(v.Text()); s != "" && len(edits) == 0 {
					edits = []string{s}
				}
			}
		})
	})
	if err != nil {
		return "", nil
	}
	return command, edits
}

// readTokens reads the usage of an answer.
func readTokens(v *harness.Value) *tokens {
	var t tokens
	v.Fields(func(name string) {
		n, _ := v.Int()
		switch name {
		case "input":
			t.Input = n
		case "cached":
			t.Cached = n
		case "output", "thoughts":
			t.Output += n
		}
	})
	return &t
}
