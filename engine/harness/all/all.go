// Package all is the hand-written list of the formats, and the one importer
// of them all. It finds the format of a source; it never reads past its head.
package all

import (
	"bytes"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/aider"
	"handoffd/engine/harness/amp"
	"handoffd/engine/harness/canonical"
	"handoffd/engine/harness/claude"
	"handoffd/engine/harness/cline"
	"handoffd/engine/harness/codex"
	"handoffd/engine/harness/copilot"
	"handoffd/engine/harness/crush"
	"handoffd/engine/harness/cursor"
	"handoffd/engine/harness/cursoride"
	"handoffd/engine/harness/droid"
	"handoffd/engine/harness/gemini"
	"handoffd/engine/harness/goose"
	"handoffd/engine/harness/kimi"
	"handoffd/engine/harness/kiro"
	"handoffd/engine/harness/opencode"
	"handoffd/engine/harness/pi"
	"handoffd/engine/harness/qwen"
	"handoffd/engine/harness/text"
)

// formats are asked in this order; the ones that belong to no harness are
// last.
var formats = []harness.Format{
	qwen.Tree{}, // before Claude Code, whose envelope it has
	claude.Format{},
	codex.Rollout{},
	codex.Document{},
	gemini.Log{},
	gemini.Document{},
	opencode.Database{},
	opencode.Tree{},
	opencode.Export{},
	goose.Database{},
	crush.Database{},
	cursoride.Database{},
	kiro.Database{},
	kiro.Log{},
	kiro.Document{},
	pi.Tree{},
	copilot.Events{},
	cursor.Lines{},
	droid.Log{},
	kimi.Context{},
	kimi.Wire{},
	cline.Cline,
	cline.Roo,
	cline.Kilo,
	amp.Thread{},
	aider.History{},
	cursor.Text{}, // before plain text, whose roles it has
	canonical.Format{},
	text.Format{},
}

// Formats lists every format.
func Formats() []harness.Format { return formats }

// ByKey returns the format with the given key, as stored in a manifest.
func ByKey(key string) (harness.Format, bool) {
	for _, f := range formats {
		if f.Traits().Key == key {
			return f, true
		}
	}
	return nil, false
}

// HeadBytes is how much of a source Detect wants to see.
const HeadBytes = 1 << 20

// Detect finds the format of a source from its head, which is whole when
// complete says that the source ends there. Content that only one format
// writes decides, at the first line that has it, so that a source that grows
// keeps its format; then the harness that the user named, the place, and
// content that a format may have written.
//
// The error is of kind fault.NoTurns when there is nothing to judge by and
// fault.Unsupported when no format knows the content.
func Detect(path string, head []byte, complete bool, hint string) (harness.Format, error) {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return nil, fault.New(fault.Unsupported, "%s is UTF-16 text", path).WithHint("convert it to UTF-8 first")
	}
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	perhaps, objects, judged := harness.Format(nil), false, false
	if trimmed := bytes.TrimLeft(head, " \t\r\n\x00"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		if f := document(path, trimmed, hint); f != nil {
			return f, nil
		}
	}
	for rest := head; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		if !ended && !complete {
			break
		}
		unit := bytes.Trim(line, " \t\r\x00")
		if len(unit) == 0 {
			continue
		}
		judged = true
		want := harness.Lines
		if unit[0] == '{' {
			objects, want = true, harness.JSONL
			if obj := harness.FirstObject(unit); obj != nil {
				unit = obj
			}
		}
		for _, f := range formats {
			if f.Traits().Container != want {
				continue
			}
			switch f.Recognize(unit) {
			case harness.Certain:
				if f.Traits().Unlabelled {
					if own := keeper(path, unit, want); own != nil {
						return own, nil
					}
				}
				return f, nil
			case harness.Perhaps:
				if perhaps == nil || perhaps.Traits().Container == harness.Lines && want == harness.JSONL {
					perhaps = f
				}
			}
		}
	}
	if !judged {
		return nil, fault.New(fault.NoTurns, "no usable turns parsed from %s", path)
	}
	for _, f := range formats {
		t := f.Traits()
		if hint != "" && t.Harness == hint && (objects == (t.Container != harness.Lines)) {
			return f, nil
		}
	}
	for _, f := range formats {
		if f.Place(path) && objects == (f.Traits().Container != harness.Lines) {
			return f, nil
		}
	}
	if perhaps != nil {
		return perhaps, nil
	}
	return nil, fault.New(fault.Unsupported, "%s is not a transcript that any known format reads", path).
		WithHint("name the format with --harness, or bring it into the canonical shape")
}

// document is the format of the document that head begins, nil when there is
// none. Where several harnesses write alike, the one that the user named or whose
// place it is decides; what anybody may have written needs the one or the other.
func document(path string, head []byte, hint string) harness.Format {
	var certain, placed harness.Format
	for _, f := range formats {
		if f.Traits().Container != harness.Document {
			continue
		}
		sure := f.Recognize(head)
		if sure == harness.No || sure == harness.Perhaps && head[0] != '[' {
			continue // an object is judged by its lines too
		}
		if hint != "" && f.Traits().Harness == hint {
			return f
		}
		if placed == nil && f.Place(path) {
			placed = f
		}
		if certain == nil && sure == harness.Certain {
			certain = f
		}
	}
	if placed != nil {
		return placed
	}
	return certain
}

// keeper is the format of the harness that keeps its sessions where path is
// and whose record the unit may be: lines of anybody's make can be a harness's
// own in its own place. It is nil when there is none.
func keeper(path string, unit []byte, container harness.Container) harness.Format {
	for _, f := range formats {
		if t := f.Traits(); !t.Unlabelled && t.Container == container && f.Place(path) && f.Record(unit) {
			return f
		}
	}
	return nil
}
