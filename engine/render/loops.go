package render

import (
	"slices"
	"strings"
)

// loopPhrases mark a line as an open loop, in any letter case. All are ASCII
// and at least loopWindow bytes long.
var loopPhrases = [...]string{"next step", "todo", "blocked", "open loop", "remaining work"}

const (
	loopWindow = 4
	loopLimit  = 20
	loopRunes  = 300
)

// loopShift is the Wu-Manber shift table over pairs of bytes, five bits of
// each: how far the window may move when the pair stands at its end. Turn text
// is the one thing here whose size nobody bounds, and a regular expression would
// take fifty times as long for it.
var loopShift = makeLoopShift()

func makeLoopShift() (t [1024]uint8) {
	for i := range t {
		t[i] = loopWindow - 1
	}
	for _, p := range loopPhrases {
		for end := 1; end < loopWindow; end++ {
			i := pair(p[end-1], p[end])
			t[i] = min(t[i], uint8(loopWindow-1-end))
		}
	}
	return t
}

func pair(a, b byte) int { return int(a&31)<<5 | int(b&31) }

// findLoop returns the index of the first phrase in s, -1 if there is none.
func findLoop(s string) int {
	for i := loopWindow - 1; i < len(s); {
		if skip := loopShift[pair(s[i-1], s[i])]; skip > 0 {
			i += int(skip)
			continue
		}
		at := s[i-loopWindow+1:]
		for _, p := range loopPhrases {
			if hasFold(at, p) {
				return i - loopWindow + 1
			}
		}
		i++
	}
	return -1
}

// Loop is a line that names unfinished work.
type Loop struct {
	Seq  int64  `json:"seq"`
	Line string `json:"line"`
}

// addLoops folds the open loops of one turn into the list. A line said again
// becomes the newest; a line ticked off ("- [x] ...") goes.
func (f *fold) addLoops(seq int64, text string) {
	for {
		i := findLoop(text)
		if i < 0 {
			return
		}
		line := text[strings.LastIndexByte(text[:i], '\n')+1:]
		end := strings.IndexByte(line, '\n')
		next := ""
		if end >= 0 {
			line, next = line[:end], line[end+1:]
		}
		text = next
		line = strings.TrimSpace(line)
		body, done := unticked(line)
		key := line[:prefix(line, loopRunes)]
		f.Loops = slices.DeleteFunc(f.Loops, func(l Loop) bool {
			if !done {
				return l.Line == key
			}
			other, _ := unticked(l.Line)
			return body == other || atLeast(l.Line, loopRunes) && strings.HasPrefix(body, other)
		})
		if done {
			continue
		}
		if len(f.Loops) == loopLimit {
			f.LoopsBeyond++
		}
		f.Loops = push(f.Loops, Loop{seq, clip(line, loopRunes)}, loopLimit)
	}
}

// unticked returns a list line without its bullet and box, and whether the box
// is ticked.
func unticked(line string) (body string, done bool) {
	body = strings.TrimLeft(line, "-*+ \t")
	if len(body) >= 3 && body[0] == '[' && body[2] == ']' {
		switch body[1] {
		case 'x', 'X':
			return strings.TrimSpace(body[3:]), true
		case ' ':
			return strings.TrimSpace(body[3:]), false
		}
	}
	return body, false
}
