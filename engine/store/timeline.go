package store

import (
	"encoding/binary"
	"strconv"

	"crypto/sha256"

	"github.com/go-json-experiment/json"

	"handoffd/engine/seal"
	"handoffd/engine/turn"
)

// AppendTurn appends the timeline line of t, newline included: the
// reference's four members first, then ours where they say something.
func AppendTurn(dst []byte, t *turn.Turn) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendInt(dst, t.Seq, 10)
	dst = append(dst, `,"ts":`...)
	dst = seal.AppendString(dst, t.TS)
	dst = append(dst, `,"class":"`...)
	dst = append(dst, t.Class...)
	dst = append(dst, `","text":`...)
	dst = seal.AppendString(dst, t.Text)
	dst = appendOptional(dst, "id", t.ID)
	if t.Source != 0 {
		dst = append(dst, `,"source":`...)
		dst = strconv.AppendInt(dst, int64(t.Source), 10)
	}
	if t.Tool != nil {
		dst = appendTool(dst, t.Tool)
	}
	dst = appendOptional(dst, "agent", t.Agent)
	dst = appendOptional(dst, "session", t.Session)
	dst = appendOptional(dst, "origin", t.Origin)
	dst = appendOptional(dst, "mark", t.Mark)
	return append(dst, '}', '\n')
}

func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(append(append(dst, ',', '"'), name...), '"', ':')
	return seal.AppendString(dst, value)
}

func appendTool(dst []byte, t *turn.Tool) []byte {
	dst = append(dst, `,"tool":{"phase":"`...)
	dst = append(dst, t.Phase...)
	dst = append(dst, '"')
	dst = appendOptional(dst, "name", t.Name)
	dst = appendOptional(dst, "call_id", t.CallID)
	if t.Exit != nil {
		dst = append(dst, `,"exit":`...)
		dst = strconv.AppendInt(dst, int64(*t.Exit), 10)
	}
	if t.Error {
		dst = append(dst, `,"error":true`...)
	}
	dst = appendOptional(dst, "command", t.Command)
	if len(t.Edits) > 0 {
		dst = append(dst, `,"edits":[`...)
		for i, e := range t.Edits {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = seal.AppendString(dst, e)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// timelineLine is a line of timeline.jsonl as JSON.
type timelineLine struct {
	Seq     int64      `json:"seq"`
	TS      string     `json:"ts"`
	Class   turn.Class `json:"class"`
	Text    string     `json:"text"`
	ID      string     `json:"id"`
	Source  int        `json:"source"`
	Tool    *toolLine  `json:"tool"`
	Agent   string     `json:"agent"`
	Session string     `json:"session"`
	Origin  string     `json:"origin"`
	Mark    string     `json:"mark"`
}

type toolLine struct {
	Phase   turn.Phase `json:"phase"`
	Name    string     `json:"name"`
	CallID  string     `json:"call_id"`
	Exit    *int       `json:"exit"`
	Error   bool       `json:"error"`
	Command string     `json:"command"`
	Edits   []string   `json:"edits"`
}

// ParseTurn reads one timeline line.
func ParseTurn(line []byte) (turn.Turn, error) {
	var l timelineLine
	if err := json.Unmarshal(line, &l); err != nil {
		return turn.Turn{}, err
	}
	t := turn.Turn{
		Seq: l.Seq, TS: l.TS, Class: l.Class, Text: l.Text, ID: l.ID, Source: l.Source,
		Agent: l.Agent, Session: l.Session, Origin: l.Origin, Mark: l.Mark,
	}
	if l.Tool != nil {
		tool := turn.Tool(*l.Tool)
		t.Tool = &tool
	}
	return t, nil
}

// Key identifies a turn's content, so that reading a source again finds what
// is captured already. It is a truncated SHA-256.
type Key uint64

// KeyOf returns the key of t. With byID it covers the record's id, else its
// time; scope keeps the turns of one source apart from another's, -1 does not.
func KeyOf(t *turn.Turn, byID bool, scope int) Key {
	h := sha256.New()
	part := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	if byID && t.ID != "" {
		part("id")
		part(t.ID)
	} else {
		part("at")
		part(t.TS)
	}
	part(strconv.Itoa(scope))
	part(string(t.Class))
	part(t.Text)
	if t.Tool != nil {
		part(string(t.Tool.Phase))
		part(t.Tool.CallID)
	}
	var sum [sha256.Size]byte
	return Key(binary.LittleEndian.Uint64(h.Sum(sum[:0])))
}
