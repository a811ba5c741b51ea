// Package checkpoint keeps a job of numbered steps so that it can be killed at
// any instant and resumed from the disk alone: a sealed checkpoint that is
// replaced whole, and a work log that is in step with it. It never guesses: what
// does not add up is refused, never started over.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
)

// Dir is where checkpoints are in a state directory.
const Dir = "checkpoints"

const (
	// Kept is how many steps a checkpoint lists. Up to there it has the shape of
	// the published engine's; beyond, steps_omitted counts those that only the
	// work log has, so that a step costs the same however many went before.
	Kept = 512

	stepOp = "work-log-append"
	// maxCheckpoint bounds a file that is read, in bytes. The published engine
	// lists every step, at about 100 bytes each.
	maxCheckpoint = 64 << 20
	// maxSteps is the largest number that every JSON reader has exactly.
	maxSteps = 1 << 53
)

// step is a step that was done.
type step struct {
	Seq int64  `json:"seq"`
	TS  string `json:"ts"` // as time.RFC3339 with milliseconds
}

// state is what a checkpoint says.
type state struct {
	seq       int64 // the last step done, 0 before the first
	total     int64 // 0 when the file does not say
	session   string
	updated   string
	completed bool
	steps     list
}

// list is the newest steps, kept in both forms in which they are written.
type list struct {
	compact, pretty []byte // joined by commas, each with one behind it
	sizes           [][2]int
	omitted         int64
}

// add appends a step, and lets go of the oldest beyond Kept.
func (l *list) add(s step) {
	c, p := len(l.compact), len(l.pretty)
	seq := strconv.FormatInt(s.Seq, 10)
	ts := string(seal.AppendString(nil, s.TS))
	l.compact = append(l.compact, `{"seq":`+seq+`,"ts":`+ts+`,"op":"`+stepOp+`"},`...)
	l.pretty = append(l.pretty, "    {\n      \"seq\": "+seq+",\n      \"ts\": "+ts+",\n      \"op\": \""+stepOp+"\"\n    },\n"...)
	l.sizes = append(l.sizes, [2]int{len(l.compact) - c, len(l.pretty) - p})
	if len(l.sizes) > Kept {
		l.compact, l.pretty = l.compact[l.sizes[0][0]:], l.pretty[l.sizes[0][1]:]
		l.sizes = l.sizes[1:]
		l.omitted++
	}
}

// encode renders the checkpoint: pretty JSON with a newline, its members in the
// order of the published engine, the seal being the SHA-256 of the compact form
// without it (github.com/Alot1z/agent-handoff, tools/runtime-engine.mjs).
func (s *state) encode() []byte {
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	text := func(t string) string { return string(seal.AppendString(nil, t)) }
	compact := append([]byte(`{"seq":`+num(s.seq)+`,"steps":[`), cut(s.steps.compact, ",")...)
	compact = append(compact, ']')
	pretty := []byte("{\n  \"seq\": " + num(s.seq) + ",\n  \"steps\": [")
	if len(s.steps.sizes) > 0 {
		pretty = append(append(append(pretty, '\n'), cut(s.steps.pretty, ",\n")...), "\n  "...)
	}
	pretty = append(pretty, ']')
	member := func(sealed bool, name, value string) {
		pretty = append(pretty, ",\n  \""+name+"\": "+value...)
		if sealed {
			compact = append(compact, `,"`+name+`":`+value...)
		}
	}
	if s.steps.omitted > 0 {
		member(true, "steps_omitted", num(s.steps.omitted))
	}
	if s.total > 0 {
		member(true, "steps_total", num(s.total))
	}
	member(true, "session", text(s.session))
	member(true, "updated_at", text(s.updated))
	at := len(pretty)
	if s.completed {
		member(true, "completed", "true")
	}
	sum := seal.Sum(append(compact, '}'))
	tail := append([]byte(nil), pretty[at:]...)
	pretty = append(pretty[:at], ",\n  \"checkpoint_sha256\": \""+sum+"\""...)
	return append(append(pretty, tail...), "\n}\n"...)
}

func cut(b []byte, tail string) []byte { return b[:max(0, len(b)-len(tail))] }

func corrupt(format string, args ...any) *fault.Error {
	return fault.New(fault.CorruptCheckpoint, "corrupt checkpoint "+format, args...).
		WithHint("nothing was changed; to start over, move it and its work log away")
}

// read reads the checkpoint of a session: fault.NoCheckpoint if there is none,
// fault.CorruptCheckpoint if it is not what was written.
func read(path, session string) (*state, error) {
	raw, err := safefile.ReadSmall(path, maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NoCheckpoint, "no checkpoint for session %q (resume requires durable state — never guessed)", session)
	}
	if err != nil {
		return nil, corrupt("(cannot be read: %w): %s", err, path)
	}
	return parse(raw, path, session)
}

func parse(raw []byte, path, session string) (*state, error) {
	compact, sum, err := seal.Compact(raw, "checkpoint_sha256")
	if err != nil {
		return nil, corrupt("(not valid JSON): %s", path)
	}
	if seal.Sum(compact) != sum {
		return nil, corrupt("(integrity seal mismatch): %s", path)
	}
	var f struct {
		Seq       int64  `json:"seq"`
		Steps     []step `json:"steps"`
		Omitted   int64  `json:"steps_omitted"`
		Total     int64  `json:"steps_total"`
		Session   string `json:"session"`
		Updated   string `json:"updated_at"`
		Completed bool   `json:"completed"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, corrupt("(sealed, but no checkpoint: %w): %s", err, path)
	}
	s := &state{seq: f.Seq, total: f.Total, session: f.Session, updated: f.Updated, completed: f.Completed}
	bad := func(why string) (*state, error) {
		return nil, corrupt("(sealed, but %s): %s", why, path)
	}
	switch {
	case f.Session != session:
		return bad(fmt.Sprintf("of session %q", f.Session))
	case f.Seq < 0 || f.Total < 0 || f.Omitted < 0 || f.Seq > maxSteps || f.Total > maxSteps || f.Total > 0 && f.Seq > f.Total:
		return bad("its numbers are none")
	case f.Completed && f.Seq != f.Total:
		return bad("completed at another step than its last")
	case f.Omitted+int64(len(f.Steps)) != f.Seq:
		return bad("its steps are not as many as it says")
	}
	s.steps.omitted = f.Omitted
	for i, st := range f.Steps {
		if st.Seq != f.Omitted+int64(i)+1 {
			return bad("its steps are out of order")
		}
		s.steps.add(st)
	}
	return s, nil
}

// write publishes the checkpoint, durably, as of now.
func (s *state) write(path string, now time.Time) error {
	s.updated = stamp(now)
	if err := safefile.Replace(path, s.encode()); err != nil {
		return fault.New(fault.Internal, "write checkpoint %s: %w", filepath.Base(path), err)
	}
	return nil
}

// stamp is a time as the files write it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
