package aider

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"handoffd/engine/turn"
)

// The lines by which Aider tells of its work.
const (
	applied = "Applied edit to "
	running = "Running "
)

// committed is the line of a commit: its short hash and its subject.
var committed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^Commit [0-9a-f]{7,40} `) })

func work(text string) bool {
	return strings.HasPrefix(text, applied) || strings.HasPrefix(text, running) || committed().MatchString(text)
}

// work hands out a line of Aider's work.
func (d *decoder) work(text string) {
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.HasPrefix(first, applied):
		name := strings.TrimSpace(strings.TrimPrefix(first, applied))
		t := &turn.Tool{Phase: turn.Result, Name: "edit"}
		if !slices.Contains(d.Proposed, name) {
			// The answer holds the whole file, which names no change.
			t.Phase, t.Edits = turn.Call, []string{name}
		}
		d.emit(turn.Turn{Class: turn.ToolUse, Text: text, Tool: t})
	case strings.HasPrefix(first, running):
		command := strings.TrimSpace(strings.TrimPrefix(first, running))
		d.emit(turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{Phase: turn.Call, Name: "run", Command: command}})
	default:
		d.emit(turn.Turn{Class: turn.ToolUse, Text: text, Tool: &turn.Tool{Phase: turn.Result, Name: "commit"}})
	}
}

// learn takes what a line says of the session.
func (d *decoder) learn(text string) {
	m := d.out.Meta
	name, rest, ok := strings.Cut(text, ": ")
	switch {
	case ok && (name == "Main model" || name == "Model" || name == "Models"):
		model, _, _ := strings.Cut(rest, " with ")
		model, _, _ = strings.Cut(model, ", ")
		m.Model = strings.TrimSpace(model)
	case ok && name == "Tokens":
		d.spend(rest)
	case strings.HasPrefix(text, "Aider v"):
		if version, _, _ := strings.Cut(strings.TrimPrefix(text, "Aider v"), " "); version != "" {
			m.Version = version
		}
	}
}

// spend adds up "3.7k sent, 1.2k cache write, 2k cache hit, 1.5k received. Cost:
// ...", which Aider rounds.
func (d *decoder) spend(text string) {
	t := &d.out.Meta.Tokens
	text, _, _ = strings.Cut(text, ". Cost")
	var sent int64
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "."), ", ") {
		number, what, _ := strings.Cut(strings.TrimSpace(part), " ")
		n := rounded(number)
		switch what {
		case "sent":
			t.Input += n
			sent += n
		case "received":
			t.Output += n
		case "cache write":
			t.CacheWrite += n
		case "cache hit":
			t.CacheRead += n
		}
	}
	if sent > 0 {
		t.Context = sent
	}
}

// rounded reads "812", "3.7k" or "1.2M"; 0 is what is no such number.
func rounded(s string) int64 {
	unit := 1.0
	switch {
	case strings.HasSuffix(s, "k"):
		unit = 1e3
	case strings.HasSuffix(s, "M"):
		unit = 1e6
	}
	n, err := strconv.ParseFloat(strings.TrimRight(s, "kM"), 64)
	if err != nil || !(n >= 0 && n*unit < 1e12) {
		return 0
	}
	return int64(n*unit + 0.5)
}
