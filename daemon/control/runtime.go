package control

import "time"

// VersionAnswer says who answers. It never changes shape, so that an old
// client understands a new daemon.
type VersionAnswer struct {
	OK      bool   `json:"ok"`
	Program string `json:"program"` // handoffd, or handoffctl in-process
	Release
	PID     int    `json:"pid"`
	Store   string `json:"store"`
	Socket  string `json:"socket,omitempty"`
	Started string `json:"started,omitempty"`
}

// StatusRequest asks how the daemon is.
type StatusRequest struct{}

// StatusAnswer is the state of a running daemon.
type StatusAnswer struct {
	OK      bool `json:"ok"`
	Healthy bool `json:"healthy"`
	// Degraded gives every reason why it is not healthy.
	Degraded []string `json:"degraded"`
	Version  string   `json:"version"`
	PID      int      `json:"pid"`
	Started  string   `json:"started"`
	UptimeMS int64    `json:"uptime_ms"`
	Store    string   `json:"store"`
	Socket   string   `json:"socket"`
	Config   string   `json:"config"` // "" when there is no file
	Sources  []Source `json:"sources"`
	Sessions Counts   `json:"sessions"`
	Queue    Queue    `json:"queue"`
	Scan     Scan     `json:"scan"`
	Captures Captures `json:"captures"`
	Errors   []Failed `json:"errors"`
	LagMS    int64    `json:"lag_ms"` // how long the oldest due source has waited
}

// Source is a watched directory.
type Source struct {
	Harness   string `json:"harness"`
	Root      string `json:"root"`
	Mode      string `json:"mode"` // events, polling, missing or none
	Dirs      int    `json:"dirs"`
	Truncated bool   `json:"truncated,omitzero"`
	Err       string `json:"err,omitempty"`
}

// Counts are the sessions of the store.
type Counts struct {
	Total       int `json:"total"`
	Live        int `json:"live"`   // grown within the last minutes
	Behind      int `json:"behind"` // changed and not yet captured
	Damaged     int `json:"damaged"`
	Quarantined int `json:"quarantined"`     // pieces of damage kept aside
	Unknown     int `json:"unknown_records"` // records of types that no format knows
}

// Queue is the work that is due or will be.
type Queue struct {
	Queued     int `json:"queued"`
	Background int `json:"background"` // of them, from a first scan
	Running    int `json:"running"`
	Failing    int `json:"failing"`
}

// Scan is the walk over the sources.
type Scan struct {
	Initial bool   `json:"initial"` // the first one is not worked off yet
	Files   int    `json:"files"`   // session files seen by the last one
	Done    int    `json:"done"`    // of those the first one found to do
	Todo    int    `json:"todo"`
	Last    string `json:"last,omitempty"`
	TookMS  int64  `json:"took_ms"`
}

// Captures count what was done since the start.
type Captures struct {
	Built   int64  `json:"built"`
	Skipped int64  `json:"skipped"`     // nothing new
	Passed  int64  `json:"passed_over"` // of no use as they are: no turns, or no transcript
	Turns   int64  `json:"turns"`
	Damage  int64  `json:"damage"`
	Failed  int64  `json:"failed"`
	Last    string `json:"last,omitempty"`
}

// Failed is a source that could not be captured.
type Failed struct {
	Key      string `json:"key"`
	Err      string `json:"err"`
	Attempts int    `json:"attempts"`
	Next     string `json:"next,omitempty"` // "" when only a change brings another try
}

// The types of events.
const (
	EventCaptured    = "captured"
	EventSkipped     = "skipped"
	EventQuarantined = "quarantined"
	EventDegraded    = "degraded"
	EventRecovered   = "recovered"
)

// Event is one line of /v1/events.
type Event struct {
	Seq      uint64    `json:"seq"`
	Time     time.Time `json:"time"`
	Type     string    `json:"type"`
	Session  string    `json:"session,omitempty"`
	Project  string    `json:"project,omitempty"`
	Source   string    `json:"source,omitempty"`
	Dir      string    `json:"dir,omitempty"`
	Turns    int       `json:"turns,omitzero"`
	New      int       `json:"new,omitzero"`
	Revision int       `json:"revision,omitzero"`
	Count    int       `json:"count,omitzero"` // of damaged pieces
	Detail   string    `json:"detail,omitempty"`
}

// PokeRequest makes a source due now: the one at a path, those of a session,
// or without either everything that changed.
type PokeRequest struct {
	Source  string `json:"source,omitempty"`
	Session string `json:"session,omitempty"`
	Wait    bool   `json:"wait,omitzero"` // for the newest bytes to be stored
}

// PokeAnswer says what was poked.
type PokeAnswer struct {
	OK      bool     `json:"ok"`
	Action  string   `json:"action"` // poked, or stored after a wait
	Sources []string `json:"sources"`
	Failed  []Failed `json:"failed,omitempty"` // what a wait was in vain for
}

// The actions of a poke.
const (
	ActionPoked  = "poked"
	ActionStored = "stored"
)

// ReloadRequest asks to read the configuration again.
type ReloadRequest struct{}

// StopRequest asks the daemon to end. Its shape never changes.
type StopRequest struct{}

// Done is the answer of verbs that have nothing else to say.
type Done struct {
	OK     bool   `json:"ok"`
	Action string `json:"action"`
	PID    int    `json:"pid,omitzero"`
	Detail string `json:"detail,omitempty"`
}
