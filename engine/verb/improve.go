package verb

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
	"handoffd/engine/turn"
)

// Candidate is a session whose brief falls short of the work in it. It holds
// counts, never content.
type Candidate struct {
	Project    string `json:"project"`
	Session    string `json:"session"`
	Harness    string `json:"harness"`
	UserAgent  int    `json:"user_agent_turns"`
	Turns      int    `json:"turns"`
	Edits      int    `json:"edits"`       // tool calls that change files
	BriefChars int    `json:"brief_chars"` // characters of HANDOFF.md
	// Lacks names what is wanting: brief, length, objective, end,
	// changed-files.
	Lacks []string `json:"lacks"`
}

// The thresholds of seed LEVEL4: a session of that many turns with a brief
// shorter than that many characters.
const (
	manyTurns  = 40
	shortBrief = 800
)

// Shortfalls looks at every session for a brief that falls short: the rule of
// seed LEVEL4, and for sessions with work in them a brief without an objective,
// without an end, or without the files that were changed. It reads only.
func Shortfalls(ctx context.Context, b *pipeline.Builder) (scanned int, found []Candidate, err error) {
	entries, err := b.Index.Entries()
	if err != nil {
		return 0, nil, err
	}
	found = []Candidate{}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return scanned, found, err
		}
		if e.Damaged != "" || e.Kind == "warmup" {
			continue
		}
		scanned++
		c, err := shortfall(b.Store, e)
		if err != nil {
			return scanned, found, err
		}
		if len(c.Lacks) > 0 {
			found = append(found, c)
		}
	}
	return scanned, found, nil
}

func shortfall(s store.Store, e index.Entry) (Candidate, error) {
	c := Candidate{Project: e.Project, Session: e.UUID, Harness: e.Harness, Turns: e.Turns}
	dir := s.SessionDir(e.Project, e.ID)
	m, _, err := store.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) || fault.Is(err, fault.Integrity) {
		return c, nil // gone or damaged meanwhile
	} else if err != nil {
		return c, err
	}
	c.UserAgent = m.Counts.User + m.Counts.Agent
	brief, err := safefile.ReadSmall(filepath.Join(dir, store.BriefName), store.MaxRender)
	if errors.Is(err, fs.ErrNotExist) {
		c.Lacks = append(c.Lacks, "brief")
		return c, nil
	} else if err != nil {
		return c, err
	}
	c.BriefChars = utf8.RuneCount(brief)
	if c.UserAgent >= manyTurns && c.BriefChars < shortBrief {
		c.Lacks = append(c.Lacks, "length")
	}
	if m.Counts.Tool == 0 && c.UserAgent < 2 {
		return c, nil // no work in it
	}
	a, ok := m.Artifact(store.TimelineName)
	if !ok {
		a.Bytes = -1
	}
	for t, err := range store.Turns(dir, a.Bytes) {
		if err != nil {
			return c, nil // verify tells
		}
		if edits(&t) {
			c.Edits++
		}
	}
	says := render.ReadBrief(brief)
	if !says.Objective {
		c.Lacks = append(c.Lacks, "objective")
	}
	if !says.End {
		c.Lacks = append(c.Lacks, "end")
	}
	if c.Edits > 0 && !says.ChangedFiles {
		c.Lacks = append(c.Lacks, "changed-files")
	}
	return c, nil
}

// editing are words in the names of tools that change files.
var editing = []string{"edit", "write", "patch", "replace", "create_file", "createfile", "insert"}

// edits reports whether a turn is a call that changes files, whether or not
// its format could say which.
func edits(t *turn.Turn) bool {
	if t.Tool == nil || t.Tool.Phase != turn.Call {
		return false
	}
	if len(t.Tool.Edits) > 0 {
		return true
	}
	name := strings.ToLower(t.Tool.Name)
	for _, w := range editing {
		if strings.Contains(name, w) && !strings.Contains(name, "todo") {
			return true
		}
	}
	return false
}
