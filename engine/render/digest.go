// Package render makes the artifacts of a session: the brief, the payloads,
// TOOLS.md, project and link notes. It is pure: it folds turns into a Digest
// of bounded size and turns that and the manifest into bytes. It never reads
// or writes a file, and the same turns always give the same bytes.
//
// Everything that comes from a transcript stands in a code fence that it
// cannot close, in an escaped table cell or line, or in a JSON string. The
// evidence contract is the one part that people write; it is read only from
// the section that this package wrote for it.
package render

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"handoffd/engine/fault"
	"handoffd/engine/turn"
)

// digestVersion changes when an older fold cannot be continued; the turns are
// then folded again.
const digestVersion = 1

// What a digest keeps at most. Lengths are in runes.
const (
	objectiveRunes = 400
	stateRunes     = 1200
	headRunes      = 120
	nameRunes      = 64
	pathRunes      = 300
	recentLimit    = 40
	markLimit      = 16
)

// Digest is what the brief needs of all turns of a session, folded one turn at
// a time. Its size does not grow with the session, and it depends on the turns
// alone: not on how they were divided among builds, nor on whether it was
// encoded in between. The zero value is the digest of no turns.
type Digest struct {
	f fold
	// files and tools find the entries of f by name; nil when not built.
	files, tools map[string]int
}

// fold is a digest as encoded. It holds no map, so that equal folds have equal
// bytes.
type fold struct {
	Version int    `json:"version"`
	Turns   int64  `json:"turns"`
	Counts  counts `json:"counts"`
	Marks   []mark `json:"marks,omitempty"`

	// The candidates for the objective, best first; Prompt is the first real
	// one, however short.
	LongPrompt string `json:"long_prompt,omitempty"`
	FirstUser  string `json:"first_user,omitempty"`
	FirstAgent string `json:"first_agent,omitempty"`
	Prompt     string `json:"prompt,omitempty"`

	Agent     said     `json:"agent,omitzero"`
	User      said     `json:"user,omitzero"`
	Questions []string `json:"questions,omitempty"`

	Loops       []Loop `json:"loops,omitempty"`
	LoopsBeyond int64  `json:"loops_beyond,omitzero"`

	Files       []file `json:"files,omitempty"`
	FilesBeyond int64  `json:"files_beyond,omitzero"`
	Edits       int64  `json:"edits,omitzero"`

	Commands commands `json:"commands,omitzero"`
	Open     []call   `json:"open,omitempty"`

	Tools      []tool `json:"tools,omitempty"`
	ToolsOther tool   `json:"tools_other,omitzero"`

	Errors     []failure `json:"errors,omitempty"`
	ErrorCount int64     `json:"error_count,omitzero"`

	Spawned      []spawn `json:"spawned,omitempty"`
	SpawnCount   int64   `json:"spawn_count,omitzero"`
	Agents       []agent `json:"agents,omitempty"`
	AgentsBeyond int64   `json:"agents_beyond,omitzero"` // turns of agents that are not listed

	Recent []recent `json:"recent,omitempty"`
}

// counts are the turns of each class.
type counts struct {
	User    int64 `json:"user"`
	Agent   int64 `json:"agent"`
	Thought int64 `json:"thought"`
	Tool    int64 `json:"tool"`
	Other   int64 `json:"other"`
}

// mark counts the turns that carry a mark.
type mark struct {
	Word  string `json:"word"`
	Turns int64  `json:"turns"`
}

// said is the end of a text that someone said. At is the ordinal of its turn,
// from 1; 0 is nobody. Seq may repeat in a damaged transcript, ordinals do not.
type said struct {
	At   int64  `json:"at"`
	Seq  int64  `json:"seq"`
	TS   string `json:"ts,omitempty"`
	Tail string `json:"tail"`
	Cut  bool   `json:"cut,omitzero"`
}

// recent is one of the last turns.
type recent struct {
	Seq   int64      `json:"seq"`
	Class turn.Class `json:"class"`
	Head  string     `json:"head"`
	Phase turn.Phase `json:"phase,omitempty"`
	Tool  string     `json:"tool,omitempty"`
	Agent string     `json:"agent,omitempty"`
	Bad   bool       `json:"bad,omitzero"`
	Aside bool       `json:"aside,omitzero"` // not the session's own conversation
}

// Add folds one turn, in the order of the timeline.
func (d *Digest) Add(t *turn.Turn) {
	f := &d.f
	f.Version = digestVersion
	f.Turns++
	f.Counts.add(t.Class)
	if t.Mark != "" {
		f.addMark(t.Mark)
	}
	if t.Agent != "" {
		f.addAgent(t.Agent)
	}
	// What a subagent says inside its parent's file, what the harness wrote
	// to replace a conversation and what was taken back is not what the
	// session's own people said.
	own := t.Agent == "" && t.Mark != "summary" && t.Mark != "rewound"
	name, bad := "", false
	switch t.Class {
	case turn.User:
		if own {
			f.addUser(t)
		}
	case turn.Agent:
		if own {
			f.addAnswer(t)
		}
	case turn.ToolUse:
		name, bad = d.addTool(t)
	case turn.Other:
		if bad = hasFold(t.Text, "api error"); bad {
			f.addFailure(failure{Seq: t.Seq, What: "API", Head: clip(t.Text, errorRunes)})
		}
	}
	f.addRecent(t, name, own, bad)
}

func (n *counts) add(c turn.Class) {
	switch c {
	case turn.User:
		n.User++
	case turn.Agent:
		n.Agent++
	case turn.Thought:
		n.Thought++
	case turn.ToolUse:
		n.Tool++
	default:
		n.Other++
	}
}

func (f *fold) addMark(word string) {
	for i := range f.Marks {
		if f.Marks[i].Word == word {
			f.Marks[i].Turns++
			return
		}
	}
	if len(f.Marks) < markLimit && len(word) <= nameRunes {
		f.Marks = append(f.Marks, mark{valid(word), 1})
	}
}

func (f *fold) marked(word string) int64 {
	for _, m := range f.Marks {
		if m.Word == word {
			return m.Turns
		}
	}
	return 0
}

func (f *fold) addUser(t *turn.Turn) {
	if f.FirstUser == "" || f.Prompt == "" || f.LongPrompt == "" {
		text := strings.TrimSpace(t.Text)
		first := func(kept *string, ok bool) {
			if *kept == "" && ok {
				*kept = clip(text, objectiveRunes)
			}
		}
		real := !notice(text)
		first(&f.FirstUser, true)
		first(&f.Prompt, real)
		first(&f.LongPrompt, real && atLeast(text, 20))
	}
	f.User = f.said(t)
	f.addLoops(t.Seq, t.Text)
}

func (f *fold) addAnswer(t *turn.Turn) {
	if f.FirstAgent == "" {
		f.FirstAgent = clip(strings.TrimSpace(t.Text), objectiveRunes)
	}
	f.Agent = f.said(t)
	f.Questions = questions(f.Questions[:0], t.Text)
	f.addLoops(t.Seq, t.Text)
}

func (f *fold) said(t *turn.Turn) said {
	tail := clipEnd(t.Text, stateRunes)
	return said{At: f.Turns, Seq: t.Seq, TS: clip(t.TS, nameRunes), Tail: tail, Cut: len(tail) < len(t.Text)}
}

func (f *fold) addRecent(t *turn.Turn, name string, own, bad bool) {
	r := recent{
		Seq: t.Seq, Class: turn.Class(clip(string(t.Class), nameRunes)), Head: clip(strings.TrimSpace(t.Text), headRunes),
		Tool: name, Agent: clip(t.Agent, nameRunes), Bad: bad, Aside: !own,
	}
	if t.Tool != nil {
		r.Phase = turn.Phase(clip(string(t.Tool.Phase), headRunes))
	}
	f.Recent = push(f.Recent, r, recentLimit)
}

// Turns returns how many turns were folded.
func (d *Digest) Turns() int64 { return d.f.Turns }

// Clone returns an independent copy.
func (d *Digest) Clone() *Digest {
	c := &Digest{f: d.f}
	f := &c.f
	f.Marks = slices.Clone(f.Marks)
	f.Questions = slices.Clone(f.Questions)
	f.Loops = slices.Clone(f.Loops)
	f.Files = slices.Clone(f.Files)
	f.Commands.Last = slices.Clone(f.Commands.Last)
	f.Open = slices.Clone(f.Open)
	f.Tools = slices.Clone(f.Tools)
	f.Errors = slices.Clone(f.Errors)
	f.Spawned = slices.Clone(f.Spawned)
	f.Agents = slices.Clone(f.Agents)
	f.Recent = slices.Clone(f.Recent)
	return c
}

// Encode returns the digest as JSON; equal digests have equal bytes.
func (d *Digest) Encode() ([]byte, error) { return json.Marshal(&d.f) }

// DecodeDigest reads what Encode wrote. Anything else is fault.Integrity.
func DecodeDigest(raw []byte) (*Digest, error) {
	d := &Digest{}
	if err := json.Unmarshal(raw, &d.f); err != nil {
		return nil, fault.New(fault.Integrity, "parse digest: %w", err)
	}
	if d.f.Version != digestVersion && d.f.Turns > 0 {
		return nil, fault.New(fault.Integrity, "digest of version %d", d.f.Version)
	}
	return d, nil
}
