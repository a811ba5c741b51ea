package render

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"handoffd/engine/session"
	"handoffd/engine/turn"
)

const (
	questionLimit = 5
	questionRunes = 300
	// questionBytes bounds how far from the end of a text questions count:
	// those that matter stand at the end, and the whole may be megabytes.
	questionBytes = 16 << 10
)

// noticeStarts begin texts that a harness writes in the user's name. Formats
// that know better have classed them OTHER already; this is for those that do
// not, such as canonical transcripts made by others.
var noticeStarts = [...]string{
	"caveat:", "[request interrupted", "this session is being continued from",
	"# agents.md instructions", "stop hook feedback:", "pretooluse:", "posttooluse:", "api error",
	"<system-reminder", "<environment_context", "<user_instructions", "<instructions", "<local-command",
	"<command-name", "<command-message", "<command-args", "<bash-", "<task-notification", "<permissions instructions",
	"<turn_aborted", "<subagent_notification", "<skill", "<user-prompt-submit-hook", "<ide_", "<user-memory-input",
	"<new-diagnostics", "<teammate-message", "<collaboration_mode", "<model_switch",
}

// notice reports whether a USER text, trimmed, is not something that a person asked for:
// a text of the harness, or a command to it ("/clear", "!ls").
func notice(text string) bool {
	for _, p := range noticeStarts {
		if hasFold(text, p) {
			return true
		}
	}
	if text == "" || text[0] == '!' {
		return true
	}
	if text[0] != '/' {
		return false
	}
	word := text[1:]
	if i := strings.IndexFunc(word, unicode.IsSpace); i >= 0 {
		word = word[:i]
	}
	return word != "" && !strings.ContainsAny(word, "/.") // a path is not a command
}

// questions appends the questions that text ends its lines or sentences with,
// the newest few in their order.
func questions(dst []string, text string) []string {
	if len(text) > questionBytes {
		text = text[len(text)-questionBytes:]
	}
	const wide = "？"
	// Every step only looks at what no step before it has seen, so that a text
	// of question marks alone costs no more than another.
	at, atWide := len(text), len(text)
	if !strings.Contains(text, wide) {
		atWide = -1
	}
	for end, found := len(text), 0; found < questionLimit; {
		if at >= end {
			at = strings.LastIndexByte(text[:end], '?')
		}
		if atWide >= end {
			if atWide = strings.LastIndex(text[:end], wide); atWide >= 0 {
				atWide += len(wide) - 1
			}
		}
		i := max(at, atWide)
		if i < 0 {
			break
		}
		end = i
		stop := i + 1 + len(text[i+1:]) - len(strings.TrimLeft(text[i+1:], "*_)\"'”»"))
		if next, _ := utf8.DecodeRuneInString(text[stop:]); stop < len(text) && !unicode.IsSpace(next) {
			continue // inside a URL or an expression
		}
		start := sentenceStart(text[:i])
		end = start
		q := strings.TrimSpace(text[start:stop])
		if !strings.ContainsFunc(q, unicode.IsLetter) {
			continue
		}
		dst = append(dst, clipEnd(q, questionRunes))
		found++
	}
	slices.Reverse(dst)
	return dst
}

// sentenceStart returns where the sentence begins that s, up to its mark, is.
func sentenceStart(s string) int {
	for i := len(s) - 1; i > 0; i-- {
		switch c := s[i]; {
		case c == '\n':
			return i + 1
		case (c == ' ' || c == '\t') && strings.IndexByte(".!?:", s[i-1]) >= 0:
			return i + 1
		}
	}
	return 0
}

// Objective returns what the session is for: the one given by hand, else the
// first prompt that says something, else the first turn there is.
func Objective(m *session.Manifest, d *Digest) string {
	for _, s := range []string{m.Objective, d.f.LongPrompt, d.f.FirstUser, d.f.FirstAgent} {
		if strings.TrimSpace(s) != "" {
			return clip(strings.TrimSpace(s), objectiveRunes)
		}
	}
	return "(none)"
}

// stateNow returns the end of the last thing the agent said, else the user.
func (f *fold) stateNow() said {
	s := f.Agent
	if s.At == 0 {
		s = f.User
	}
	if s.At == 0 {
		s.Tail = "(none)"
	}
	return s
}

// ending says in which situation a session stopped.
type ending string

const (
	endEmpty      ending = "empty"
	endAnswered   ending = "answered"
	endUnanswered ending = "prompt-unanswered"
	endOpenCall   ending = "tool-call-without-result"
	endAfterTool  ending = "after-tool-result"
	endError      ending = "error"
	endThought    ending = "thought"
	endOther      ending = "other"
)

// ended returns the situation of the last turn, which is the last entry of
// Recent.
func (f *fold) ended() (ending, recent) {
	if len(f.Recent) == 0 {
		return endEmpty, recent{}
	}
	last := f.Recent[len(f.Recent)-1]
	switch {
	case last.Bad:
		return endError, last
	case last.Class == turn.User && !last.Aside:
		return endUnanswered, last
	case last.Class == turn.Agent && !last.Aside:
		return endAnswered, last
	case last.Class == turn.ToolUse && last.Phase == turn.Call:
		return endOpenCall, last
	case last.Class == turn.ToolUse && last.Phase == turn.Result:
		return endAfterTool, last
	case last.Class == turn.Thought:
		return endThought, last
	case f.User.At > f.Agent.At:
		return endUnanswered, last
	}
	return endOther, last
}

// unanswered reports whether the last prompt has no answer in words.
func (f *fold) unanswered() bool { return f.User.At > f.Agent.At }

// openQuestions returns what the agent asked last, if nobody replied.
func (f *fold) openQuestions() []string {
	if f.unanswered() {
		return nil
	}
	return f.Questions
}
