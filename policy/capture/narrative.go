package capture

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
)

// Narrative is the last that a model said in its session.
type Narrative struct {
	Text string // "" when it said nothing
	// Newest is the newest time that the transcript itself tells, or zero.
	Newest time.Time
	Flail  []string
}

// Read returns the narrative of the transcript at a path. An error of the kind
// fault.Refused says that the path leads to no transcript.
type Read func(path string) (Narrative, error)

// MaxAge is the age from which on a narrative is not handed on.
const MaxAge = 72 * time.Hour

// Stale returns why a narrative is too old, or "".
func Stale(age time.Duration) string {
	if age <= MaxAge {
		return ""
	}
	return fmt.Sprintf("source stale (%dh > %dh)", int(age.Hours()), int(MaxAge.Hours()))
}

// envelope is a line of a transcript of Claude Code, as far as it matters here
// (measured on files of versions 1.0 to 2.1).
type envelope struct {
	Type      string         `json:"type"`
	Request   string         `json:"requestId"`
	Timestamp string         `json:"timestamp"`
	Message   jsontext.Value `json:"message"`
}

// Lines returns the narrative of JSON lines in the envelope of Claude Code:
// the last assistant entry, and those right before it of the same request.
// Lines that are no JSON are passed over; ok is false when no line is an
// object.
func Lines(raw []byte) (n Narrative, ok bool) {
	var run []envelope
	open := false // the last entry was of the run
	for line := range bytes.SplitSeq(raw, []byte("\n")) {
		var e envelope
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
			// An object of another shape counts, but tells nothing.
			ok = ok || len(line) > 0 && line[0] == '{' && jsontext.Value(line).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
			continue
		}
		ok = true
		if at, err := time.Parse(time.RFC3339, e.Timestamp); err == nil && at.After(n.Newest) {
			n.Newest = at
		}
		if e.Type != "assistant" {
			open = false
			continue
		}
		if !open || e.Request == "" || e.Request != run[0].Request {
			run = nil
		}
		run, open = append(run, e), true
	}
	var parts []string
	for _, e := range run {
		parts = append(parts, blocks(e.Message)...)
	}
	n.Text = strings.TrimSpace(strings.Join(parts, "\n"))
	return n, ok
}

// blocks returns the texts of a message.
func blocks(message jsontext.Value) []string {
	var m struct {
		Content jsontext.Value `json:"content"`
	}
	opt := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if message.Kind() != '{' || json.Unmarshal(message, &m, opt) != nil {
		return nil
	}
	var text string
	if m.Content.Kind() == '"' && json.Unmarshal(m.Content, &text, opt) == nil {
		return []string{text}
	}
	var list []struct {
		Type string         `json:"type"`
		Text jsontext.Value `json:"text"`
	}
	if m.Content.Kind() != '[' || json.Unmarshal(m.Content, &list, opt) != nil {
		return nil
	}
	var out []string
	for _, b := range list {
		if b.Type == "text" && b.Text.Kind() == '"' && json.Unmarshal(b.Text, &text, opt) == nil && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// NoTranscript is the error of a source that cannot be read as one.
func NoTranscript(path string, err error) error {
	return fault.New(fault.Refused, "the capture source %s is no transcript: %w", path, err)
}
