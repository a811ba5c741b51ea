package amp

import (
	"net/url"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
)

// What goes into the manifest is bounded, in bytes; Amp's own are far shorter.
const (
	maxID    = 128
	maxTitle = 512
)

// thread is one file.
type thread struct {
	id, title, created string
	cwd, branch        string
	version            string
	forkedFrom, kind   string
	hasMessages        bool
	messages, queued   []message
	// ledger is the usage as it was counted until January 2026, beside the
	// messages or instead of in them (github.com/ryoppippi/ccusage, its reader
	// of Amp).
	ledger usage
}

// message is one element of messages.
type message struct {
	role, id string
	at       string // as written, or "": by meta.sentAt or usage.timestamp
	parent   string // the tool use whose subagent speaks
	open     bool   // the assistant still writes it
	blocks   []block
	usage    usage
}

// usage is what one call of the model, or several together, took.
type usage struct {
	session.Tokens
	model string
	some  bool
}

func readThread(v *harness.Value) (t thread) {
	v.Fields(func(name string) {
		switch name {
		case "id":
			t.id = plain.Clip(plain.Text(v.Text()), maxID)
		case "title":
			t.title = plain.Clip(strings.TrimSpace(plain.Text(v.Text())), maxTitle)
		case "created":
			t.created = plain.Stamp(plain.Text(v.Text()))
		case "messages":
			t.hasMessages = v.Kind() == '['
			t.messages = nil
			v.Items(func() { t.messages = append(t.messages, readMessage(v)) })
		case "queuedMessages":
			t.queued = nil
			v.Items(func() {
				v.Fields(func(name string) {
					if name == "queuedMessage" {
						t.queued = append(t.queued, readMessage(v))
					}
				})
			})
		case "env":
			v.Fields(func(name string) {
				if name == "initial" {
					readEnvironment(v, &t)
				}
			})
		case "relationships":
			t.forkedFrom, t.kind = "", ""
			v.Items(func() {
				if id, kind := readParent(v); t.forkedFrom == "" {
					t.forkedFrom, t.kind = id, kind
				}
			})
		case "usageLedger":
			t.ledger = readLedger(v)
		}
	})
	return t
}

// readEnvironment reads env.initial: where the thread was begun, with what.
func readEnvironment(v *harness.Value, t *thread) {
	v.Fields(func(name string) {
		switch name {
		case "trees":
			v.Items(func() {
				var uri, ref string
				v.Fields(func(name string) {
					switch name {
					case "uri":
						uri = v.Text()
					case "repository":
						v.Fields(func(name string) {
							if name == "ref" {
								ref = v.Text()
							}
						})
					}
				})
				if dir := directory(uri); dir != "" && t.cwd == "" {
					t.cwd = dir
					t.branch = plain.Text(strings.TrimPrefix(ref, "refs/heads/"))
				}
			})
		case "platform":
			v.Fields(func(name string) {
				if name == "clientVersion" {
					t.version = plain.Text(v.Text())
				}
			})
		}
	})
}

// directory is the path that a URI of a local file names, "" for another
// place.
func directory(uri string) string {
	rest, ok := strings.CutPrefix(uri, "file://")
	if !ok {
		if strings.Contains(uri, "://") {
			return ""
		}
		return plain.Text(uri) // some builds wrote plain paths (amp.rs)
	}
	rest = strings.TrimPrefix(rest, "localhost")
	if dir, err := url.PathUnescape(rest); err == nil {
		rest = dir
	}
	if len(rest) > 2 && rest[0] == '/' && rest[2] == ':' {
		rest = rest[1:] // /c:/Users
	}
	return plain.Text(rest)
}

// readParent reads one relationship and is the thread that this one was handed
// off or forked from, "" if it says something else. A relationship names the
// other thread, and the role is the other's: "parent" of a thread that goes on
// from it. Without a role nobody knows which way it points. A thread that was
// handed off begins anew; of a fork the kind says so.
func readParent(v *harness.Value) (id, kind string) {
	var role string
	v.Fields(func(name string) {
		switch name {
		case "threadID":
			id = plain.Clip(plain.Text(v.Text()), maxID)
		case "type":
			kind = v.Text()
		case "role":
			role = v.Text()
		}
	})
	switch {
	case id == "" || role != "parent":
	case kind == "fork":
		return id, kind
	case kind == "handoff":
		return id, ""
	}
	return "", ""
}

func readMessage(v *harness.Value) (m message) {
	var other, state, stop, stamp, sent string
	var stopped bool
	v.Fields(func(name string) {
		switch name {
		case "role":
			m.role = plain.Text(v.Text())
		case "messageId":
			m.id = plain.Clip(plain.Text(v.Text()), maxID)
		case "dtwMessageID":
			other = plain.Clip(plain.Text(v.Text()), maxID)
		case "parentToolUseId":
			m.parent = plain.Text(v.Text())
		case "content":
			m.blocks = readBlocks(v)
		case "meta":
			v.Fields(func(name string) {
				if name == "sentAt" {
					sent = v.Text()
				}
			})
		case "usage":
			m.usage, stamp = readUsage(v)
		case "state":
			stopped = false
			state, stop = "", ""
			v.Fields(func(name string) {
				switch name {
				case "type":
					state = v.Text()
				case "stopReason":
					stopped = true
					stop = v.Text()
				}
			})
		}
	})
	if m.id == "" {
		m.id = other
	}
	if m.role == "user" {
		m.blocks = joined(m.blocks)
	}
	if m.at = plain.Stamp(plain.Text(sent)); m.at == "" {
		m.at = plain.Stamp(plain.Text(stamp))
	}
	switch state {
	case "", "cancelled", "error":
	case "complete":
		// While it streams a message is also complete for no reason
		// (measured by others on a client of 2026: stopReason null).
		m.open = stopped && stop == ""
	default:
		m.open = true
	}
	return m
}

func readUsage(v *harness.Value) (u usage, stamp string) {
	v.Fields(func(name string) {
		switch name {
		case "model":
			u.model = plain.Text(v.Text())
		case "inputTokens":
			u.Input = u.count(v)
		case "outputTokens":
			u.Output = u.count(v)
		case "cacheReadInputTokens":
			u.CacheRead = u.count(v)
		case "cacheCreationInputTokens":
			u.CacheWrite = u.count(v)
		case "totalInputTokens":
			u.Context = u.count(v)
		case "maxInputTokens":
			u.Window = u.count(v)
		case "timestamp":
			stamp = v.Text()
		}
	})
	return u, stamp
}

// count reads a number of tokens, which is never negative.
func (u *usage) count(v *harness.Value) int64 {
	n, ok := v.Int()
	u.some = u.some || ok
	return max(n, 0)
}

func readLedger(v *harness.Value) (sum usage) {
	v.Fields(func(name string) {
		if name != "events" {
			return
		}
		v.Items(func() {
			v.Fields(func(name string) {
				switch name {
				case "model":
					if s := plain.Text(v.Text()); s != "" {
						sum.model = s
					}
				case "tokens":
					v.Fields(func(name string) {
						switch name {
						case "input":
							sum.Input += sum.count(v)
						case "output":
							sum.Output += sum.count(v)
						}
					})
				}
			})
		})
	})
	return sum
}
