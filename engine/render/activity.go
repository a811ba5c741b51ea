package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"handoffd/engine/turn"
)

const (
	fileLimit    = 200
	commandLimit = 20
	openLimit    = 64
	toolLimit    = 64
	errorLimit   = 10
	spawnLimit   = 20
	agentLimit   = 64
	commandRunes = 200
	errorRunes   = 300
)

// file is a file that was edited. Partial says that it may have been edited
// before, when the list was full.
type file struct {
	Path    string `json:"path"`
	Edits   int64  `json:"edits"`
	At      int64  `json:"at"` // ordinal of the turn that edited it last
	Partial bool   `json:"partial,omitzero"`
}

// commands are the command lines that ran. Those without a result are in neither count.
type commands struct {
	Total int64     `json:"total"`
	OK    int64     `json:"ok"`
	Bad   int64     `json:"bad"`
	Last  []command `json:"last,omitempty"`
}

func (c *commands) unknown() int64 { return c.Total - c.OK - c.Bad }

// command is one command line and how it ended.
type command struct {
	Seq  int64  `json:"seq"`
	At   int64  `json:"at"`
	Line string `json:"line"`
	Done bool   `json:"done,omitzero"`
	Bad  bool   `json:"failed,omitzero"`
	Exit *int   `json:"exit,omitempty"` // never changed once set
}

// call is a tool call whose result has not come yet.
type call struct {
	Key     string `json:"key,omitempty"`
	Name    string `json:"name,omitempty"`
	At      int64  `json:"at"`
	Command bool   `json:"command,omitzero"`
}

// tool counts the uses of one tool.
type tool struct {
	Name    string `json:"name"`
	Calls   int64  `json:"calls"`
	Results int64  `json:"results,omitzero"`
	Bad     int64  `json:"failed,omitzero"`
}

// failure is an error that the session met.
type failure struct {
	Seq  int64  `json:"seq"`
	What string `json:"what"`
	Exit *int   `json:"exit,omitempty"`
	Head string `json:"head"`
}

// spawn is a call that started a subagent.
type spawn struct {
	Seq  int64  `json:"seq"`
	At   int64  `json:"at"`
	Name string `json:"name"`
	Head string `json:"head"`
	Done bool   `json:"done,omitzero"`
	Bad  bool   `json:"failed,omitzero"`
}

// agent is a subagent that speaks inside the session's own files.
type agent struct {
	ID    string `json:"id"`
	Turns int64  `json:"turns"`
}

// addTool folds a TOOL turn. It returns the name of the tool, for a result
// that of its call, and whether it is a failed result.
func (d *Digest) addTool(t *turn.Turn) (name string, bad bool) {
	switch {
	case t.Tool == nil:
		return "", false
	case t.Tool.Phase == turn.Result:
		return d.addResult(t)
	}
	f, u := &d.f, t.Tool
	name = clip(u.Name, nameRunes)
	d.tool(name).Calls++
	for _, path := range u.Edits {
		if path != "" {
			d.addFile(path)
		}
	}
	if u.Command != "" {
		f.Commands.Total++
		f.Commands.Last = push(f.Commands.Last, command{
			Seq: t.Seq, At: f.Turns, Line: clip(u.Command, commandRunes),
		}, commandLimit)
	}
	switch u.Name {
	case "Task", "Agent", "spawn_agent":
		f.SpawnCount++
		f.Spawned = push(f.Spawned, spawn{Seq: t.Seq, At: f.Turns, Name: name, Head: input(t.Text, u.Name)}, spawnLimit)
	}
	f.Open = push(f.Open, call{Key: callKey(u.CallID), Name: name, At: f.Turns, Command: u.Command != ""}, openLimit)
	return name, false
}

func (d *Digest) addResult(t *turn.Turn) (name string, bad bool) {
	f, u := &d.f, t.Tool
	bad = u.Error || u.Exit != nil && *u.Exit != 0
	c, paired := f.take(u)
	name = c.Name
	if name == "" {
		name = clip(u.Name, nameRunes)
	}
	n := d.tool(name)
	n.Results++
	if bad {
		n.Bad++
	}
	what := name
	if paired && c.Command {
		if line := f.endCommand(c.At, bad, u.Exit); line != "" {
			what = line
		}
	}
	if paired {
		for i := range f.Spawned {
			if f.Spawned[i].At == c.At {
				f.Spawned[i].Done, f.Spawned[i].Bad = true, bad
			}
		}
	}
	if bad {
		f.addFailure(failure{Seq: t.Seq, What: what, Exit: copied(u.Exit), Head: clip(strings.TrimSpace(t.Text), errorRunes)})
	}
	return name, bad
}

// take removes and returns the open call that u is the result of: the newest
// with its id. Without an id it is the last call, if that has none either.
func (f *fold) take(u *turn.Tool) (call, bool) {
	key := callKey(u.CallID)
	for i := len(f.Open) - 1; i >= 0; i-- {
		if c := f.Open[i]; c.Key == key && (key != "" || u.Name == "" || c.Name == "" || c.Name == u.Name) {
			f.Open = append(f.Open[:i], f.Open[i+1:]...)
			return c, true
		}
		if key == "" {
			break
		}
	}
	return call{}, false
}

// endCommand notes how the command of the call at ordinal at ended, and
// returns its line where it is still listed.
func (f *fold) endCommand(at int64, bad bool, exit *int) string {
	if bad {
		f.Commands.Bad++
	} else {
		f.Commands.OK++
	}
	for i := range f.Commands.Last {
		if c := &f.Commands.Last[i]; c.At == at {
			c.Done, c.Bad, c.Exit = true, bad, copied(exit)
			return c.Line
		}
	}
	return ""
}

func (f *fold) addFailure(e failure) {
	f.ErrorCount++
	f.Errors = push(f.Errors, e, errorLimit)
}

func (f *fold) addAgent(id string) {
	for i := range f.Agents {
		if f.Agents[i].ID == id {
			f.Agents[i].Turns++
			return
		}
	}
	if len(f.Agents) == agentLimit || atLeast(id, nameRunes+1) {
		f.AgentsBeyond++
		return
	}
	f.Agents = append(f.Agents, agent{clip(id, nameRunes), 1})
}

// tool returns the counters of the tool called name. The first tools have
// counters of their own, so that those are exact; later ones share one.
func (d *Digest) tool(name string) *tool {
	f := &d.f
	if d.tools == nil {
		d.tools = make(map[string]int, len(f.Tools))
		for i, t := range f.Tools {
			d.tools[t.Name] = i
		}
	}
	if i, ok := d.tools[name]; ok {
		return &f.Tools[i]
	}
	if len(f.Tools) == toolLimit {
		return &f.ToolsOther
	}
	d.tools[name] = len(f.Tools)
	f.Tools = append(f.Tools, tool{Name: name})
	return &f.Tools[len(f.Tools)-1]
}

// addFile counts an edit. In a full list a new file takes the place of the one
// edited least, the longest ago of those.
func (d *Digest) addFile(path string) {
	f := &d.f
	if d.files == nil {
		d.files = make(map[string]int, len(f.Files))
		for i, e := range f.Files {
			d.files[e.Path] = i
		}
	}
	f.Edits++
	path = clip(path, pathRunes)
	if i, ok := d.files[path]; ok {
		f.Files[i].Edits++
		f.Files[i].At = f.Turns
		return
	}
	fresh := file{Path: path, Edits: 1, At: f.Turns, Partial: f.FilesBeyond > 0}
	if len(f.Files) < fileLimit {
		d.files[path] = len(f.Files)
		f.Files = append(f.Files, fresh)
		return
	}
	least := 0
	for i, e := range f.Files {
		if l := f.Files[least]; e.Edits < l.Edits || e.Edits == l.Edits && e.At < l.At {
			least = i
		}
	}
	f.FilesBeyond++
	fresh.Partial = true
	delete(d.files, f.Files[least].Path)
	d.files[path] = least
	f.Files[least] = fresh
}

// callKey returns the id of a call, or a hash of it where it is too long to
// keep: ids are compared, never shown.
func callKey(id string) string {
	if len(id) <= nameRunes {
		return valid(id)
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// input returns the head of what a call passes, without the words that name
// the call.
func input(text, name string) string {
	for _, word := range []string{"tool_use ", "function_call "} {
		if rest, ok := strings.CutPrefix(text, word); ok {
			text = strings.TrimPrefix(rest, name)
			break
		}
	}
	return clip(strings.TrimSpace(text), headRunes)
}

func copied(n *int) *int {
	if n == nil {
		return nil
	}
	c := *n
	return &c
}
