package configs

import (
	"encoding/json"
	"fmt"
	"time"
)

// Value is one setting and where it comes from.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"` // null when unset
	Origin string `json:"origin"`
}

// Text renders the value as JSON on one line.
func (v Value) Text() string {
	b, err := json.Marshal(v.Value)
	if err != nil {
		return fmt.Sprint(v.Value)
	}
	return string(b)
}

// Explain returns every setting of the daemon in the order of the schema, as
// it holds: paths absolute, defaults filled in.
func (d Daemon) Explain() []Value {
	unset := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	var sources any
	if d.Sources != nil {
		sources = d.Sources
	}
	values := []Value{
		{Key: "version", Value: d.Version},
		{Key: "store", Value: d.Store},
		{Key: "sources", Value: sources},
		{Key: "min_fresh_ms", Value: d.MinFresh.Milliseconds()},
		{Key: "quiet_ms", Value: d.Quiet.Milliseconds()},
		{Key: "sweep_seconds", Value: int64(d.Sweep / time.Second)},
		{Key: "workers", Value: d.Workers},
		{Key: "socket", Value: unset(d.Socket)},
		{Key: "log.level", Value: d.Log.Level},
		{Key: "log.format", Value: d.Log.Format},
		{Key: "log.file", Value: unset(d.Log.File)},
		{Key: "limits.line_bytes", Value: d.Limits.LineBytes},
		{Key: "limits.file_bytes_per_pass", Value: d.Limits.FileBytesPerPass},
		{Key: "limits.files", Value: d.Limits.Files},
		{Key: "limits.depth", Value: d.Limits.Depth},
		{Key: "redact.enabled", Value: d.Redact.Enabled},
		{Key: "redact.allow", Value: d.Redact.Allow},
		{Key: "gate.mode", Value: d.Gate.Mode},
		{Key: "gate.signals", Value: d.Gate.Signals},
		{Key: "gate.enforce", Value: d.Gate.Enforce},
		{Key: "retention.quarantine_days", Value: d.Retention.QuarantineDays},
		{Key: "retention.log_bytes", Value: d.Retention.LogBytes},
	}
	for i := range values {
		values[i].Origin = d.Origin[values[i].Key]
	}
	return values
}
