package cline

import (
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// element is one element of an array: a message as it is shown, or one as the
// model sees it.
type element struct {
	ts string

	// A message that is shown.
	kind1     string // "say" or "ask"
	say, ask  string
	kind      string // what is said or asked
	text      string
	reasoning string
	images    int
	files     []string
	partial   bool
	cut       string // the range that is left out of the model's conversation
	summary   string // of a condensation
	removed   string // messages removed by a truncation

	// A message of the model's conversation.
	role      string
	blocks    bool
	parts     []part
	condensed bool

	// Either may name the model.
	model          string
	provider, mode bool
	kilo           bool
	usage          usage
}

// usage is what a request cost, in tokens.
type usage struct{ in, out, cacheRead, cacheWrite int64 }

// part is a block of a message of the model's conversation.
type part struct {
	kind, text     string
	id, name, args string
	failed         bool
}

// shown reports whether the element is a message as it is shown.
func (e *element) shown() bool {
	return e.ts != "" && e.kind != "" && (e.kind1 == "say" || e.kind1 == "ask")
}

// spoken reports whether the element is a message of the model's conversation.
func (e *element) spoken() bool {
	return (e.role == "user" || e.role == "assistant") && e.parts != nil
}

// read reads an element from the start.
func (e *element) read(v *harness.Value) {
	*e = element{}
	v.Fields(func(name string) {
		switch name {
		case "ts":
			if n, ok := v.Int(); ok && n > 1e9 {
				e.ts = plain.Stamp(itoa(n))
			}
		case "type":
			e.kind1 = v.Text()
			e.settle()
		case "say":
			e.say = v.Text()
			e.settle()
		case "ask":
			e.ask = v.Text()
			e.settle()
		case "text":
			e.text = v.Text()
		case "reasoning":
			e.reasoning = v.Text()
		case "images":
			v.Items(func() { e.images++ })
		case "files":
			v.Items(func() { e.files = append(e.files, v.Text()) })
		case "partial":
			e.partial = v.Bool()
		case "conversationHistoryDeletedRange":
			e.cut = plain.Compact(v.Raw())
		case "contextCondense":
			v.Fields(func(name string) {
				if name == "summary" {
					e.summary = v.Text()
				}
			})
		case "contextTruncation":
			v.Fields(func(name string) {
				if name == "messagesRemoved" {
					e.removed = v.Text()
				}
			})
		case "role":
			e.role = v.Text()
		case "content":
			e.blocks = v.Kind() == '['
			e.parts = readParts(v)
		case "isSummary":
			e.condensed = v.Bool()
		case "modelInfo":
			e.readModel(v)
		case "metrics":
			v.Fields(func(name string) {
				if name == "tokens" {
					e.usage = readUsage(v)
				}
			})
		case "metadata":
			v.Fields(func(name string) { e.kilo = e.kilo || name == "kiloCode" })
		}
	})
}

// settle finds what is said or asked, whichever order the members have.
func (e *element) settle() {
	switch e.kind1 {
	case "say":
		e.kind = e.say
	case "ask":
		e.kind = e.ask
	}
}

func (e *element) readModel(v *harness.Value) {
	v.Fields(func(name string) {
		switch name {
		case "modelId":
			e.model = v.Text()
		case "providerId":
			e.provider = true
		case "mode":
			e.mode = true
		}
	})
}

// readUsage reads the tokens of a request: those of a message of the model's
// conversation, or those of a request that is shown.
func readUsage(v *harness.Value) (u usage) {
	v.Fields(func(name string) {
		switch name {
		case "prompt", "tokensIn":
			u.in = count(v)
		case "completion", "tokensOut":
			u.out = count(v)
		case "cached", "cacheReads":
			u.cacheRead = count(v)
		case "cacheWrites":
			u.cacheWrite = count(v)
		}
	})
	return u
}

func count(v *harness.Value) int64 {
	n, _ := v.Int()
	return max(0, n)
}

// readParts reads content: a string, or blocks. It is never nil.
func readParts(v *harness.Value) []part {
	list := []part{}
	if v.Kind() != '[' {
		if s := v.Text(); s != "" {
			list = append(list, part{kind: "text", text: s})
		}
		return list
	}
	v.Items(func() {
		if v.Kind() == '{' {
			list = append(list, readPart(v))
		} else if s := v.Text(); s != "" {
			list = append(list, part{kind: "text", text: s})
		}
	})
	return list
}

func readPart(v *harness.Value) (p part) {
	v.Fields(func(name string) {
		switch name {
		case "type":
			p.kind = v.Text()
		case "text", "thinking", "reasoning":
			if s := v.Text(); s != "" {
				p.text = s
			}
		case "content":
			var texts []string
			for _, c := range readParts(v) {
				if c.text != "" {
					texts = append(texts, c.text)
				}
			}
			p.text = strings.Join(texts, "\n")
		case "id", "tool_use_id":
			p.id = v.Text()
		case "name":
			p.name = v.Text()
		case "is_error":
			p.failed = v.Bool()
		case "input":
			p.args = plain.Compact(v.Raw())
		}
	})
	switch p.kind {
	case "image":
		p.text = plain.Image
	case "document":
		p.text = "[file]"
	}
	return p
}
