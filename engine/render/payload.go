package render

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/session"
)

// The full payload is too large to be held, so it is written in pieces:
// PayloadHead, the timeline's lines joined by commas, PayloadMiddle, the lines
// of TOOL turns joined by commas, PayloadTail.
const (
	PayloadMiddle = "],\n  \"tool_calls\": ["
	PayloadTail   = "]\n}"
)

// summaryStateRunes is how much of the state the summary holds: the end of it.
const summaryStateRunes = 600

// payload is what both payloads share. The members up to Provenance are the
// reference's in its order; those after it are ours.
type payload struct {
	SchemaVersion string         `json:"schema_version"`
	Session       sessionID      `json:"session"`
	Project       string         `json:"project"`
	GeneratedAt   string         `json:"generated_at"`
	Objective     string         `json:"objective"`
	StateNow      string         `json:"state_now"`
	OpenLoops     []string       `json:"open_loops"`
	EvidenceClass string         `json:"evidence_class"`
	Counts        session.Counts `json:"counts"`
	Artifacts     artifacts      `json:"artifacts"`
	Provenance    provenance     `json:"provenance"`

	FirstPrompt   string       `json:"first_prompt,omitempty"`
	Ended         ended        `json:"ended"`
	Unanswered    string       `json:"unanswered_prompt,omitempty"`
	OpenQuestions []string     `json:"open_questions,omitempty"`
	Files         *files       `json:"files_edited,omitempty"`
	Commands      *commandList `json:"commands,omitempty"`
	Errors        *errorList   `json:"errors,omitempty"`
	Tools         []tool       `json:"tools,omitempty"`
	Subagents     *subagents   `json:"subagents,omitempty"`
	Caveats       []string     `json:"caveats,omitempty"`
	Transcript    session.Meta `json:"transcript,omitzero"`
}

type sessionID struct {
	ID      string `json:"id"`
	Harness string `json:"harness"`
	Model   string `json:"model"`
	Title   string `json:"title,omitempty"`
}

type artifacts struct {
	FullPayload string `json:"full_payload"`
	Timeline    string `json:"timeline"`
	ToolCalls   string `json:"tool_calls"`
}

type provenance struct {
	Sources        []string `json:"sources"`
	RawSHA256      string   `json:"raw_sha256"`
	ManifestSHA256 string   `json:"manifest_sha256"`
	Revision       int      `json:"revision"`
	Watermark      int64    `json:"watermark"`
	TotalTurns     int      `json:"total_turns"`
}

type ended struct {
	Kind  ending `json:"kind"`
	Seq   int64  `json:"seq"`
	Class string `json:"class,omitempty"`
	Tool  string `json:"tool,omitempty"`
}

// The lists below are newest last, files the most edited first, and each says
// how many there are beside those that it holds.
type files struct {
	Edits  int64    `json:"edits"`
	Listed int      `json:"listed"`
	More   bool     `json:"more,omitzero"`
	Files  []edited `json:"files"`
}

type edited struct {
	Path    string `json:"path"`
	Edits   int64  `json:"edits"`
	AtLeast bool   `json:"at_least,omitzero"`
}

type commandList struct {
	Total   int64 `json:"total"`
	OK      int64 `json:"ok"`
	Failed  int64 `json:"failed"`
	Unknown int64 `json:"unknown"`
	Last    []ran `json:"last"`
}

type ran struct {
	Seq     int64  `json:"seq"`
	Command string `json:"command"`
	Ended   string `json:"ended"`
	Exit    *int   `json:"exit,omitempty"`
}

type errorList struct {
	Total int64     `json:"total"`
	Last  []failure `json:"last"`
}

type subagents struct {
	Started int64     `json:"started"`
	Last    []spawned `json:"last,omitempty"`
	Inside  []agent   `json:"inside,omitempty"`
}

type spawned struct {
	Seq   int64  `json:"seq"`
	Tool  string `json:"tool"`
	Input string `json:"input"`
	Ended string `json:"ended"`
}

// Summary returns HANDOFF.summary.json.
func Summary(in Input) ([]byte, error) { return in.payload("2.0.0-summary", summaryStateRunes) }

// PayloadHead returns HANDOFF.llm.json up to the opening bracket of its
// timeline.
func PayloadHead(in Input) ([]byte, error) {
	raw, err := in.payload("2.0.0", stateRunes)
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimSuffix(raw, []byte("\n}")), ",\n  \"timeline\": ["...), nil
}

func (in Input) payload(schema string, stateLen int) ([]byte, error) {
	m, f := in.M, &in.D.f
	end, last := f.ended()
	p := payload{
		SchemaVersion: schema,
		Session:       sessionID{m.Session, m.Harness, in.model(), in.Title},
		Project:       m.Project,
		GeneratedAt:   in.GeneratedAt,
		Objective:     Objective(m, in.D),
		StateNow:      clipEnd(f.stateNow().Tail, stateLen),
		EvidenceClass: "OBSERVED",
		Counts:        m.Counts,
		Artifacts:     artifacts{"HANDOFF.llm.json", "timeline.jsonl", "TOOLS.md"},
		Provenance: provenance{
			Sources: m.SourcePaths, RawSHA256: m.RawSHA256, ManifestSHA256: m.ManifestSHA256,
			Revision: m.Revisions, Watermark: m.Watermark, TotalTurns: m.TurnCount,
		},
		FirstPrompt:   f.Prompt,
		Ended:         ended{end, last.Seq, string(last.Class), last.Tool},
		OpenQuestions: f.openQuestions(),
		Tools:         f.toolsByUse(),
		Caveats:       Caveats(m, in.D),
		Transcript:    m.Meta,
	}
	for _, l := range f.Loops {
		p.OpenLoops = append(p.OpenLoops, l.Line)
	}
	if f.Agent.At > 0 && f.unanswered() {
		p.Unanswered = clipEnd(f.User.Tail, stateLen)
	}
	p.addActivity(f)
	raw, err := json.Marshal(&p, jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	return raw, nil
}

func (p *payload) addActivity(f *fold) {
	if len(f.Files) > 0 {
		p.Files = &files{Edits: f.Edits, Listed: len(f.Files), More: f.FilesBeyond > 0}
		for _, e := range f.filesByEdits() {
			p.Files.Files = append(p.Files.Files, edited{e.Path, e.Edits, e.Partial})
		}
	}
	if c := f.Commands; c.Total > 0 {
		p.Commands = &commandList{Total: c.Total, OK: c.OK, Failed: c.Bad, Unknown: c.unknown()}
		for _, e := range c.Last {
			p.Commands.Last = append(p.Commands.Last, ran{e.Seq, e.Line, outcome(e.Done, e.Bad, e.Exit), e.Exit})
		}
	}
	if f.ErrorCount > 0 {
		p.Errors = &errorList{f.ErrorCount, f.Errors}
	}
	if f.SpawnCount > 0 || len(f.Agents) > 0 {
		p.Subagents = &subagents{Started: f.SpawnCount, Inside: f.Agents}
		for _, e := range f.Spawned {
			p.Subagents.Last = append(p.Subagents.Last, spawned{e.Seq, e.Name, e.Head, outcome(e.Done, e.Bad, nil)})
		}
	}
}
