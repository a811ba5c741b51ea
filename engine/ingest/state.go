// Package ingest turns what is new in a source into appended turns: it knows
// where a source was left, whether it is still the same source, and which of
// its turns are captured already. It renders nothing and commits nothing.
package ingest

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/harness"
	"handoffd/engine/harness/all"
	"handoffd/engine/session"
	"handoffd/engine/turn"
)

// State is what is decided of a session: where each source was left and what
// its records amount to.
type State struct {
	// Next is the seq of the next turn that has none of its own.
	Next      int64        `json:"next"`
	Watermark int64        `json:"watermark"`
	Counts    turn.Counts  `json:"counts"`
	Meta      session.Meta `json:"meta"`
	// Calls are the newest tool calls, so that a result gets the name of
	// its call; at most maxCalls.
	Calls   []call   `json:"calls,omitempty"`
	Sources []Source `json:"sources"`
	// Guests says that turns came from elsewhere: no source numbers the
	// session's turns any more.
	Guests bool `json:"guests,omitzero"`
}

// call is a tool call whose result may still come.
type call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

const maxCalls = 512

// Source is how far one source is captured.
type Source struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	// Scope is the source whose turns this one's are compared with, where
	// the format counts each source for itself.
	Scope  int            `json:"scope"`
	Cursor harness.Cursor `json:"cursor"`
	// Bytes were read and hashed; Hash continues there.
	Bytes int64  `json:"bytes"`
	Hash  []byte `json:"hash"`
	// Head and Tail identify the content without reading all of it: the
	// hash of the first HeadBytes and of the last bytes before Bytes.
	Head      string `json:"head"`
	HeadBytes int64  `json:"head_bytes"`
	Tail      string `json:"tail"`
	// The file as it was; hints.
	Size       int64  `json:"size"`
	Inode      string `json:"inode"`
	ModTime    string `json:"mtime"`
	ChangeTime string `json:"ctime"`
	// Key is the change key of a session of a bundle.
	Key string `json:"key,omitempty"`

	// Tokens and Compactions are this source's share of the session's.
	Tokens      session.Tokens `json:"tokens,omitzero"`
	Compactions int            `json:"compactions,omitzero"`

	Quarantined int  `json:"quarantined"`
	Unknown     int  `json:"unknown"`
	Flagged     int  `json:"flagged"`
	Rewritten   bool `json:"rewritten,omitzero"`
	Gone        bool `json:"gone,omitzero"`
	// Reread says that the position was lost and that the source must be
	// matched from its start.
	Reread bool `json:"reread,omitzero"`
	// Fragment is a line above the limit whose end has not been seen.
	Fragment *fragment `json:"fragment,omitempty"`
}

// identifying is how many bytes at either end identify a source.
const identifying = 4096

// Clone returns a copy that shares nothing that changes.
func (s *State) Clone() *State {
	c := *s
	c.Calls = slices.Clone(s.Calls)
	c.Sources = slices.Clone(s.Sources)
	for i := range c.Sources {
		if f := c.Sources[i].Fragment; f != nil {
			copied := *f
			c.Sources[i].Fragment = &copied
		}
	}
	return &c
}

// Encode returns the state for the session's state file.
func (s *State) Encode() (jsontext.Value, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode ingest state: %w", err)
	}
	return raw, nil
}

// Decode reads what Encode returned.
func Decode(raw jsontext.Value) (*State, error) {
	s := &State{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("decode ingest state: %w", err)
	}
	return s, nil
}

// called remembers a call or names a result after its call.
func (s *State) called(t *turn.Tool) {
	if t.CallID == "" {
		return
	}
	if t.Phase == turn.Call {
		if len(s.Calls) >= maxCalls {
			s.Calls = slices.Delete(s.Calls, 0, len(s.Calls)-maxCalls+1)
		}
		s.Calls = append(s.Calls, call{t.CallID, t.Name})
		return
	}
	for i := len(s.Calls) - 1; i >= 0; i-- {
		if s.Calls[i].ID == t.CallID {
			if t.Name == "" {
				t.Name = s.Calls[i].Name
			}
			s.Calls = slices.Delete(s.Calls, i, i+1)
			return
		}
	}
}

// add counts a turn and gives it its seq.
func (s *State) add(t *turn.Turn, own bool) {
	if !own {
		t.Seq = s.Next
	}
	s.Next = max(s.Next, t.Seq+1)
	if s.Counts.Total() == 0 || t.Seq > s.Watermark {
		s.Watermark = t.Seq
	}
	s.Counts.Add(t.Class)
	if s.Meta.FirstID == "" {
		s.Meta.FirstID = t.ID
	}
	if t.Tool != nil {
		s.called(t.Tool)
	}
}

// Readopt counts a turn that is in the timeline already.
func (s *State) Readopt(t *turn.Turn) { s.add(t, true) }

// Public is what the manifest says of the source.
func (o *Source) Public() session.Source {
	s := session.Source{
		Path: o.Path, Format: o.Format, Bytes: o.Bytes, SHA256: o.sum(), Size: o.Size,
		Inode: o.Inode, ModTime: o.ModTime, ChangeTime: o.ChangeTime, Key: o.Key,
		Quarantined: o.Quarantined, Unknown: o.Unknown, Flagged: o.Flagged,
		Gone: o.Gone, Rewritten: o.Rewritten,
	}
	if f, ok := all.ByKey(o.Format); ok && !f.Traits().Container.Whole() {
		s.Pending = o.Bytes - o.Cursor.Offset
	}
	return s
}

// account adds to the source's share what a pass added to the session's.
func (o *Source) account(before, after *session.Meta) {
	o.Tokens.Input += after.Tokens.Input - before.Tokens.Input
	o.Tokens.Output += after.Tokens.Output - before.Tokens.Output
	o.Tokens.CacheRead += after.Tokens.CacheRead - before.Tokens.CacheRead
	o.Tokens.CacheWrite += after.Tokens.CacheWrite - before.Tokens.CacheWrite
	o.Compactions += after.Compactions - before.Compactions
}

// recount takes the source's share out of the session's, before the source is
// read again from its start.
func (o *Source) recount(m *session.Meta) {
	m.Tokens.Input -= o.Tokens.Input
	m.Tokens.Output -= o.Tokens.Output
	m.Tokens.CacheRead -= o.Tokens.CacheRead
	m.Tokens.CacheWrite -= o.Tokens.CacheWrite
	m.Compactions -= o.Compactions
	o.Tokens, o.Compactions = session.Tokens{}, 0
}

// keepLarger restores what the source's share was if reading it again came to
// less: what it no longer holds was used all the same.
func (o *Source) keepLarger(old Source, m *session.Meta) {
	larger := func(share *int64, was int64, total *int64) {
		if was > *share {
			*total += was - *share
			*share = was
		}
	}
	larger(&o.Tokens.Input, old.Tokens.Input, &m.Tokens.Input)
	larger(&o.Tokens.Output, old.Tokens.Output, &m.Tokens.Output)
	larger(&o.Tokens.CacheRead, old.Tokens.CacheRead, &m.Tokens.CacheRead)
	larger(&o.Tokens.CacheWrite, old.Tokens.CacheWrite, &m.Tokens.CacheWrite)
	if old.Compactions > o.Compactions {
		m.Compactions += old.Compactions - o.Compactions
		o.Compactions = old.Compactions
	}
}
