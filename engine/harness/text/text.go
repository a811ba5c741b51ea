// Package text reads plain text with role markers (seed INTEGRATION: `user:`,
// `assistant:`, optionally behind `#`, closed by `:` or `>`). It never reads
// JSON and keeps nothing before the first marker.
package text

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/harness"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// Format is the one value of this package's format.
type Format struct{}

// Traits implements harness.Format.
func (Format) Traits() harness.Traits {
	return harness.Traits{Key: "text", Harness: "text", Container: harness.Lines, Identity: harness.BySource, Unlabelled: true}
}

var marker = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^#*\s*(user|human|assistant|ai|system|tool)\s*[:>]\s?`)
})

// Recognize implements harness.Format.
func (Format) Recognize(unit []byte) harness.Confidence {
	if len(unit) < 4096 && marker().Match(unit) {
		return harness.Perhaps
	}
	return harness.No
}

// Record implements harness.Format.
func (Format) Record([]byte) bool { return false }

// Place implements harness.Format.
func (Format) Place(string) bool { return false }

// About implements harness.Format.
func (Format) About(string, *session.Meta) {}

// Stores implements harness.Format.
func (Format) Stores(string, func(string) string) []harness.Store { return nil }

// Decoder implements harness.Format.
func (Format) Decoder(state []byte, _ harness.Env) (harness.Decoder, error) {
	d := &decoder{}
	if len(state) > 0 {
		if err := json.Unmarshal(state, &d.open); err != nil {
			return nil, fmt.Errorf("read decoder state: %w", err)
		}
	}
	return d, nil
}

// open is the turn that further lines may still extend.
type open struct {
	Class turn.Class `json:"class,omitempty"`
	Lines []string   `json:"lines,omitempty"`
}

type decoder struct{ open open }

var classes = map[string]turn.Class{
	"user": turn.User, "human": turn.User, "assistant": turn.Agent, "ai": turn.Agent,
	"system": turn.Other, "tool": turn.ToolUse,
}

// Decode implements harness.Decoder.
func (d *decoder) Decode(unit []byte, at harness.Position, out *harness.Out) error {
	line := strings.TrimSuffix(strings.ToValidUTF8(string(unit), "\ufffd"), "\r")
	if at.Offset == 0 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	line = strings.ReplaceAll(line, "\x00", "")
	m := marker().FindStringSubmatchIndex(line)
	if m == nil {
		if d.open.Class != "" {
			d.open.Lines = append(d.open.Lines, line)
		}
		return nil
	}
	d.Flush(out)
	d.open = open{Class: classes[strings.ToLower(line[m[2]:m[3]])], Lines: []string{line[m[1]:]}}
	return nil
}

// Pending implements harness.Decoder.
func (d *decoder) Pending() bool { return d.open.Class != "" && d.text() != "" }

// Flush implements harness.Decoder.
func (d *decoder) Flush(out *harness.Out) {
	if text := d.text(); d.open.Class != "" && text != "" {
		out.Turns = append(out.Turns, turn.Turn{Class: d.open.Class, Text: text})
	}
	d.open = open{}
}

func (d *decoder) text() string { return strings.TrimSpace(strings.Join(d.open.Lines, "\n")) }

// State implements harness.Decoder.
func (d *decoder) State() ([]byte, error) {
	if d.open.Class == "" {
		return nil, nil
	}
	return json.Marshal(d.open)
}
