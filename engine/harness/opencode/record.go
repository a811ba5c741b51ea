package opencode

import (
	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
)

// record is a session, message or part, as far as it is used. The members of
// all three have names of their own, but for a few that mean the same.
type record struct {
	unreadable bool
	id, kind   string
	created    int64
	ended      int64 // end of a part, completion of a message
	// of a session
	parent, directory, title, version string
	revert                            struct{ message, part string }
	// of a message
	role, model, modelIn, cwd string
	summary                   bool
	fault                     string
	tokens                    struct{ input, output, reasoning, read, write int64 }
	// of a part
	text                       string
	synthetic, ignored         bool
	tool, call                 string
	status, input, output, err string
	exit                       *int
	command, file              string
	mime, filename             string
}

func (r *record) read(v *harness.Value) {
	*r = record{}
	r.fields(v)
}

func (r *record) fields(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "data":
			// A row keeps its record in a column of that name.
			r.fields(v)
		case ledger.Unreadable:
			r.unreadable = true
		case "id":
			if id := v.Text(); r.id == "" {
				r.id = id
			}
		case "type":
			r.kind = v.Text()
		case "time_created":
			r.created, _ = v.Int()
		case "time":
			r.time(v)
		case "parentID":
			r.parent = v.Text()
		case "directory":
			r.directory = v.Text()
		case "title":
			r.title = v.Text()
		case "version":
			r.version = v.Text()
		case "revert":
			v.Fields(func(name string) {
				switch name {
				case "messageID":
					r.revert.message = v.Text()
				case "partID":
					r.revert.part = v.Text()
				}
			})
		case "role":
			r.role = v.Text()
		case "modelID":
			r.model = v.Text()
		case "model":
			v.Fields(func(name string) {
				if name == "modelID" {
					r.modelIn = v.Text()
				}
			})
		case "path":
			v.Fields(func(name string) {
				if name == "cwd" {
					r.cwd = v.Text()
				}
			})
		case "summary":
			// true marks a compaction; an object sums up a diff.
			if v.Kind() == 't' {
				r.summary = true
			}
			v.Skip()
		case "error":
			r.fault = problem(v)
		case "tokens":
			r.usage(v)
		case "text", "prompt", "description", "name":
			if text := v.Text(); r.text == "" || name == "text" {
				r.text = text
			}
		case "synthetic":
			r.synthetic = v.Bool()
		case "ignored":
			r.ignored = v.Bool()
		case "tool":
			r.tool = v.Text()
		case "callID":
			r.call = v.Text()
		case "state":
			r.state(v)
		case "mime":
			r.mime = v.Text()
		case "filename":
			r.filename = v.Text()
		}
	})
}

func (r *record) time(v *harness.Value) {
	v.Fields(func(name string) {
		switch n, _ := v.Int(); name {
		case "created", "start":
			r.created = n
		case "completed", "end":
			r.ended = n
		}
	})
}

func (r *record) usage(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "input":
			r.tokens.input, _ = v.Int()
		case "output":
			r.tokens.output, _ = v.Int()
		case "reasoning":
			r.tokens.reasoning, _ = v.Int()
		case "cache":
			v.Fields(func(name string) {
				switch name {
				case "read":
					r.tokens.read, _ = v.Int()
				case "write":
					r.tokens.write, _ = v.Int()
				}
			})
		}
	})
}

// state reads what became of a tool.
func (r *record) state(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "status":
			r.status = v.Text()
		case "input":
			raw := v.Raw()
			r.input = plain.Compact(raw)
		case "output":
			r.output = v.Text()
		case "error":
			r.err = problem(v)
		case "time":
			r.time(v)
		case "metadata":
			v.Fields(func(name string) {
				if name == "exit" {
					ledger.Exit(v, &r.exit)
				}
			})
		}
	})
	var in harness.Value
	_, _ = in.Walk([]byte(r.input), func(v *harness.Value) {
		r.command, r.file = "", ""
		v.Fields(func(name string) {
			switch name {
			case "command":
				r.command = v.Text()
			case "filePath":
				r.file = v.Text()
			}
		})
	})
}

// problem reads an error: a text, or an object with a name and the message in
// data.
func problem(v *harness.Value) string {
	if v.Kind() != '{' {
		return v.Text()
	}
	var name, text string
	v.Fields(func(member string) {
		switch member {
		case "name":
			name = v.Text()
		case "message":
			text = v.Text()
		case "data":
			v.Fields(func(member string) {
				if member == "message" {
					text = v.Text()
				}
			})
		}
	})
	switch {
	case text == "":
		return name
	case name == "":
		return text
	}
	return name + ": " + text
}
