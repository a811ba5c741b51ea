package crush

import (
	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
	"handoffd/engine/harness/plain"
)

// record is a session or a message.
type record struct {
	unreadable         bool
	id, parent, title  string
	prompted, answered int64
	summarized         string
	created, finished  int64
	role, model        string
	summary            bool
	parts              []part
}

// part is {"type":…,"data":{…}}.
type part struct {
	kind, text            string
	hidden, done          bool
	id, name, input       string
	command, file         string
	failed                bool
	exit                  *int
	path, mime            string
	reason, note, details string
	started, ended        int64
}

func (r *record) read(v *harness.Value) {
	*r = record{}
	v.Fields(func(name string) {
		switch name {
		case ledger.Unreadable:
			r.unreadable = true
		case "id":
			r.id = v.Text()
		case "parent_session_id":
			r.parent = v.Text()
		case "title":
			r.title = v.Text()
		case "prompt_tokens":
			r.prompted, _ = v.Int()
		case "completion_tokens":
			r.answered, _ = v.Int()
		case "summary_message_id":
			r.summarized = v.Text()
		case "created_at":
			r.created, _ = v.Int()
		case "finished_at":
			r.finished, _ = v.Int()
		case "role":
			r.role = v.Text()
		case "model":
			r.model = v.Text()
		case "is_summary_message":
			n, _ := v.Int()
			r.summary = n != 0
		case "parts":
			v.Items(func() {
				var p part
				v.Fields(func(name string) {
					switch name {
					case "type":
						p.kind = v.Text()
					case "data":
						p.read(v)
					}
				})
				r.parts = append(r.parts, p)
			})
		}
	})
}

func (p *part) read(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "text", "thinking", "content", "output", "url":
			p.text = v.Text()
		case "hidden":
			p.hidden = v.Bool()
		case "id", "tool_call_id":
			p.id = v.Text()
		case "name":
			p.name = v.Text()
		case "input":
			p.input = v.Text()
		case "finished":
			p.done = v.Bool()
		case "is_error":
			p.failed = v.Bool()
		case "command":
			p.command = v.Text()
		case "exit_code":
			ledger.Exit(v, &p.exit)
		case "Path", "path":
			p.path = v.Text()
		case "MIMEType", "mime_type":
			p.mime = v.Text()
		case "reason":
			p.reason = v.Text()
		case "message":
			p.note = v.Text()
		case "details":
			p.details = v.Text()
		case "metadata":
			p.metadata(v.Text())
		case "started_at":
			p.started, _ = v.Int()
		case "finished_at", "time":
			p.ended, _ = v.Int()
		}
	})
	if p.kind == "tool_call" || p.input != "" {
		p.arguments()
	}
}

// metadata is JSON in a text; of a command it has the exit code.
func (p *part) metadata(text string) {
	var in harness.Value
	_, _ = in.Walk([]byte(text), func(v *harness.Value) {
		v.Fields(func(name string) {
			if name == "exit_code" {
				ledger.Exit(v, &p.exit)
			}
		})
	})
}

func (p *part) arguments() {
	var in harness.Value
	_, _ = in.Walk([]byte(p.input), func(v *harness.Value) {
		v.Fields(func(name string) {
			switch name {
			case "command":
				p.command = v.Text()
			case "file_path":
				p.file = v.Text()
			}
		})
	})
	p.input = plain.Compact([]byte(p.input))
}
