package control

import (
	"fmt"
	"strings"
)

// BuildRequest asks to capture what is new in a source.
type BuildRequest struct {
	Source       string `json:"source,omitempty"` // absolute
	Session      string `json:"session,omitempty"`
	Harness      string `json:"harness,omitempty"`
	Model        string `json:"model,omitempty"`
	Project      string `json:"project,omitempty"`
	Objective    string `json:"objective,omitempty"`
	ForceHarness bool   `json:"force_harness,omitzero"`
	ForceModel   bool   `json:"force_model,omitzero"`
	Strict       bool   `json:"strict,omitzero"`
}

// The actions of builds.
const (
	ActionBuilt     = "built"
	ActionUpToDate  = "up-to-date"
	ActionCaptured  = "captured"
	ActionSkipFresh = "skip-fresh"
)

// BuildAnswer is what a build came to.
type BuildAnswer struct {
	OK          bool     `json:"ok"`
	Action      string   `json:"action"`
	Session     string   `json:"session"`
	Project     string   `json:"project"`
	Turns       int      `json:"turns"`
	New         int      `json:"new"`
	Revision    int      `json:"revision"`
	Watermark   int64    `json:"watermark"`
	Dir         string   `json:"dir"`
	CrossLinks  int      `json:"cross_links,omitzero"`
	Suggest     string   `json:"suggest,omitempty"`
	Repaired    []string `json:"repaired,omitempty"`
	Quarantined int      `json:"quarantined,omitzero"` // in all
	NewDamage   int      `json:"new_damage,omitzero"`  // of them, by this build
	// Sessions are the builds of a source that holds many; then the members
	// above say nothing, but for OK and Action. Passed counts those without a
	// turn, and Unbuilt are those that failed: OK is false then.
	Sessions []BuildAnswer `json:"sessions,omitempty"`
	Passed   int           `json:"passed,omitzero"`
	Unbuilt  []Unbuilt     `json:"unbuilt,omitempty"`
}

// Unbuilt is a session of a source that could not be built.
type Unbuilt struct {
	Source string `json:"source"`
	Kind   string `json:"kind"` // of the error
	Err    string `json:"error"`
}

// Line is the answer as one line for people.
func (a BuildAnswer) Line() string {
	if a.Action == ActionUpToDate {
		return fmt.Sprintf("handoff: up-to-date (%s, watermark %d, rev %d)", a.Session, a.Watermark, a.Revision)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "handoff: built %s project=%s turns=%d new=%d rev=%d", a.Session, a.Project, a.Turns, a.New, a.Revision)
	if a.CrossLinks > 0 {
		fmt.Fprintf(&b, " xlink-notes=%d", a.CrossLinks)
	}
	if a.Suggest != "" {
		fmt.Fprintf(&b, " suggest: %s", a.Suggest)
	}
	fmt.Fprintf(&b, " -> %s", a.Dir)
	return b.String()
}

// AutoRequest asks to capture a source unless that was done a moment ago.
type AutoRequest struct {
	Source     string `json:"source,omitempty"`
	Session    string `json:"session,omitempty"`
	Harness    string `json:"harness,omitempty"`
	Project    string `json:"project,omitempty"`
	MinFreshMS *int64 `json:"min_fresh_ms,omitempty"` // nil is DefaultMinFreshMS
}

// DefaultMinFreshMS is how fresh a capture must be for auto to leave it.
const DefaultMinFreshMS = 60000

// AutoAnswer has the reference's members.
type AutoAnswer struct {
	OK      bool   `json:"ok"`
	Action  string `json:"action"`
	Session string `json:"session"`
	// Output is the line of the build, if there was one.
	Output string `json:"output,omitempty"`
	// SourceMtimeMS and ManifestAt say why there was none.
	SourceMtimeMS float64 `json:"source_mtime_ms,omitzero"`
	ManifestAt    int64   `json:"manifest_at,omitzero"`
}

// ListRequest asks for sessions. Project and ID are one filter: a project, or
// the start of an id.
type ListRequest struct {
	Project string `json:"project,omitempty"`
	ID      string `json:"id,omitempty"`
	All     bool   `json:"all,omitzero"` // warm-up sessions too
}

// Session is an entry of the list, with the members of INDEX.json.
type Session struct {
	ID             string `json:"id"`   // directory name
	UUID           string `json:"uuid"` // session id
	Project        string `json:"project"`
	Harness        string `json:"harness"`
	Turns          int    `json:"turns"`
	Revisions      int    `json:"revisions"`
	Updated        string `json:"updated"`
	ManifestSHA256 string `json:"manifest_sha256"`
	Kind           string `json:"source_kind"`
	Parent         string `json:"parent_session"`
	ForkedFrom     string `json:"forked_from"`
	Title          string `json:"title,omitempty"`
	Damaged        string `json:"damaged,omitempty"`
}

// Line is the entry as one line for people.
func (s Session) Line() string {
	line := fmt.Sprintf("[%s] %s  harness=%s  turns=%d  rev=%d  updated=%s", s.Project, s.ID, s.Harness, s.Turns, s.Revisions, s.Updated)
	switch {
	case s.Damaged != "":
		line += "  damaged: " + s.Damaged
	case s.Kind == "subagent" && s.Parent != "":
		line += "  subagent of " + s.Parent
	case s.Kind == "fork" && s.ForkedFrom != "":
		line += "  fork of " + s.ForkedFrom
	case s.Kind != "":
		line += "  " + s.Kind
	}
	return line
}

// ListAnswer lists sessions, newest first.
type ListAnswer struct {
	OK       bool      `json:"ok"`
	Action   string    `json:"action"`
	Sessions []Session `json:"sessions"`
	Hidden   int       `json:"hidden,omitzero"` // left out for want of All
}

// ShowRequest asks for a file of a session: HANDOFF.md unless one is named.
type ShowRequest struct {
	ID       string `json:"id,omitempty"`
	Payload  bool   `json:"payload,omitzero"`
	Summary  bool   `json:"summary,omitzero"`
	Tools    bool   `json:"tools,omitzero"`
	Timeline bool   `json:"timeline,omitzero"`
}

// ShowAnswer is a file of a session. With "Accept: application/octet-stream"
// the answer is the file's bytes instead.
type ShowAnswer struct {
	OK      bool   `json:"ok"`
	Action  string `json:"action"`
	Session string `json:"session"`
	Project string `json:"project"`
	File    string `json:"file"`
	Text    string `json:"text"`
}

// VerifyRequest asks to check one session, or all.
type VerifyRequest struct {
	ID  string `json:"id,omitempty"`
	All bool   `json:"all,omitzero"`
}

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Result string `json:"result"` // pass, fail or unproved
	Detail string `json:"detail,omitempty"`
}

// Verified is what verifying one session came to.
type Verified struct {
	Session string  `json:"session"`
	Project string  `json:"project"`
	Dir     string  `json:"dir"`
	OK      bool    `json:"ok"`
	Reason  string  `json:"reason,omitempty"`
	Turns   int     `json:"turns"`
	Checks  []Check `json:"checks"`
	Line    string  `json:"line"` // for people
}

// VerifyAnswer is OK when every session is.
type VerifyAnswer struct {
	OK       bool       `json:"ok"`
	Action   string     `json:"action"`
	Sessions []Verified `json:"sessions"`
}

// IndexRequest asks to write INDEX.json again from the manifests.
type IndexRequest struct{}

// IndexAnswer has the reference's members, and the sessions whose manifest
// cannot be read.
type IndexAnswer struct {
	OK            bool     `json:"ok"`
	Action        string   `json:"action"`
	Sessions      int      `json:"sessions"`
	Stale         int      `json:"stale"`
	StaleSessions []string `json:"stale_sessions"`
	Damaged       []string `json:"damaged"`
}

// RenameRequest moves a session to another project.
type RenameRequest struct {
	ID      string `json:"id,omitempty"`
	Project string `json:"project,omitempty"`
}

// RetitleRequest gives a session another name.
type RetitleRequest struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// MoveAnswer is a session in its new place.
type MoveAnswer struct {
	OK       bool   `json:"ok"`
	Action   string `json:"action"` // renamed or retitled
	Session  string `json:"session"`
	Project  string `json:"project"`
	Name     string `json:"name"` // directory name
	Revision int    `json:"revision"`
}

// Line is the answer as one line for people.
func (a MoveAnswer) Line() string {
	if a.Action == "renamed" {
		return fmt.Sprintf("handoff: renamed %s -> project %s", a.Session, a.Project)
	}
	return fmt.Sprintf("handoff: retitled %s -> %s [project %s] renders refreshed rev=%d", a.Session, a.Name, a.Project, a.Revision)
}
