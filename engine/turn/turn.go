// Package turn is one turn of a session as a value: its class, its text and
// what ties it to the record it came from. It is a leaf and pure; it never
// reads a transcript and knows no harness.
package turn

import "strings"

// Class says who speaks in a turn.
type Class string

// The five classes (seed INTEGRATION, "Turn classification order").
const (
	User    Class = "USER"
	Agent   Class = "AGENT"
	Thought Class = "THOUGHT"
	ToolUse Class = "TOOL"
	Other   Class = "OTHER"
)

// Turn is one line of timeline.jsonl.
//
// The first four fields are the reference's; the others are omitted when
// empty, so that a canonical transcript gives the reference's bytes.
type Turn struct {
	// Seq orders turns within a session: the canonical line's own, else
	// consecutive from 0.
	Seq int64
	// TS is the record's own time as the harness wrote it, or "" when there
	// is none. It is never the time of capture.
	TS string
	// Class says who speaks.
	Class Class
	// Text is the body in valid UTF-8. It is never empty.
	Text string

	// ID is the harness's own id of the record, or the name that the format
	// gives it where the harness has none; "" when there is neither.
	ID string
	// Source is the index of the source in the manifest's sources.
	Source int
	// Tool describes a TOOL turn, nil otherwise or when nothing is known.
	Tool *Tool
	// Agent is the id of the subagent that speaks inside its parent's file.
	Agent string
	// Session is the record's own session id where it differs from the
	// session that owns the source.
	Session string
	// Origin says where a turn comes from that another session had before: the
	// place and seq that it had there where sessions were merged, and behind
	// an @ its id in that session's history ("project/session#7@..."). It is
	// "" for a turn that was read from a source.
	Origin string
	// Mark is a short word on how the turn stands to the rest: "rewound",
	// "conflict", "approximate-time", "queued", "summary".
	Mark string
}

// Phase says which half of a tool use a TOOL turn is.
type Phase string

// The two halves; both are turns of their own, paired by CallID.
const (
	Call   Phase = "call"
	Result Phase = "result"
)

// Tool is what a TOOL turn says beyond its text.
type Tool struct {
	Phase  Phase
	Name   string
	CallID string
	// Exit is the exit status of a command, nil when the harness gives none.
	Exit *int
	// Error says that the harness marked the result as failed.
	Error bool
	// Command is the command line of a call that runs one, "" otherwise.
	Command string
	// Edits are the files that a call changes.
	Edits []string
}

// Classify maps the canonical fields kind and role to a class, in the order
// of seed INTEGRATION: tool, thought, user, agent, other. Letter case is
// ignored.
func Classify(kind, role string) Class {
	kind, role = strings.ToLower(kind), strings.ToLower(role)
	switch {
	case strings.Contains(kind, "tool"), strings.Contains(kind, "function_call"), role == "tool":
		return ToolUse
	case strings.Contains(kind, "reason"), strings.Contains(kind, "think"):
		return Thought
	case role == "user", kind == "human", kind == "user":
		return User
	case role == "assistant", kind == "ai", kind == "assistant":
		return Agent
	}
	return Other
}

// Counts are the turns of each class. OTHER is the rest of the total.
type Counts struct {
	User, Agent, Thought, Tool, Other int
}

// Add counts one turn of class c.
func (n *Counts) Add(c Class) {
	switch c {
	case User:
		n.User++
	case Agent:
		n.Agent++
	case Thought:
		n.Thought++
	case ToolUse:
		n.Tool++
	default:
		n.Other++
	}
}

// Total is the number of turns counted.
func (n Counts) Total() int { return n.User + n.Agent + n.Thought + n.Tool + n.Other }
