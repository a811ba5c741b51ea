// Package cline reads the task folders of Cline and of what was forked from it:
// Roo Code, and Kilo Code before it moved to a database. A task is a directory;
// its ui_messages.json is the conversation as it was shown, one JSON array that
// is written again as a whole at every change. It never opens a file; what
// stands beside the messages (title, working directory, model) it asks for.
//
// A message is known by its time and kind, which stay while its text is still
// coming in. Results of most tools are only in api_conversation_history.json,
// the conversation as the model sees it. That file loses its beginning when the
// context is cut, so it is read only where no messages stand beside it.
//
// Sources of the format claims: github.com/cline/cline src/shared/
// ExtensionMessage.ts, HistoryItem.ts, combineCommandSequences.ts and
// src/core/storage/disk.ts; github.com/RooCodeInc/Roo-Code
// packages/types/src/message.ts (@02785b96) and src/core/task-persistence;
// measured on a real api_conversation_history.json of 2026-04.
package cline

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Format is the format as one of the harnesses writes it.
type Format int

// The harnesses.
const (
	Cline Format = iota
	Roo
	Kilo
)

var _ harness.Format = Cline

// agents say what differs between the harnesses: the label, which is the key of
// the format too, the name of the editor's extension, and where the harness's
// own command keeps tasks below the home directory.
var agents = [...]struct{ label, extension, home string }{
	Cline: {"cline", "saoudrizwan.claude-dev", ".cline/data/tasks"},
	Roo:   {"roo", "rooveterinaryinc.roo-cline", ""},
	Kilo:  {"kilo", "kilocode.kilo-code", ".kilocode/cli/global/tasks"},
}

// The files of a task. Cline wrote its messages under another name first.
const (
	messagesFile    = "ui_messages.json"
	oldMessagesFile = "claude_messages.json"
	historyFile     = "api_conversation_history.json"
)

// Traits implements harness.Format.
func (f Format) Traits() harness.Traits {
	label := agents[f].label
	return harness.Traits{Key: label, Harness: label, Container: harness.Document, Identity: harness.ByID}
}

// Recognize implements harness.Format. The three write alike: content without
// the traces of one of them is anyone's, and the place tells.
func (f Format) Recognize(unit []byte) harness.Confidence {
	shape, maker := look(unit)
	switch {
	case shape == nothing, !f.mayBe(maker):
		return harness.No
	case shape == conversation:
		return harness.Perhaps
	}
	return harness.Certain
}

// mayBe reports whether content with the traces of maker can be f's. Kilo Code
// kept all that Roo Code wrote.
func (f Format) mayBe(maker maker) bool {
	switch maker {
	case byCline:
		return f == Cline
	case byRoo:
		return f != Cline
	case byKilo:
		return f == Kilo
	}
	return true
}

// Record implements harness.Format.
func (Format) Record([]byte) bool { return false }

// Place implements harness.Format.
func (f Format) Place(p string) bool {
	p = filepath.ToSlash(p)
	if !isTask(path.Base(p)) {
		return false
	}
	tasks := path.Dir(path.Dir(p))
	a := agents[f]
	return strings.HasSuffix(tasks, "/"+a.extension+"/tasks") || a.home != "" && strings.HasSuffix(tasks, "/"+a.home)
}

// About implements harness.Format. The directory is named after the task.
func (Format) About(p string, m *session.Meta) {
	p = filepath.ToSlash(p)
	if dir := path.Base(path.Dir(p)); isTask(path.Base(p)) && dir != "." && dir != "/" {
		m.ID = dir
	}
}

func isTask(name string) bool { return isMessages(name) || name == historyFile }

func isMessages(name string) bool { return name == messagesFile || name == oldMessagesFile }

// Decoder implements harness.Format. A document is always read from its start.
func (Format) Decoder(_ []byte, env harness.Env) (harness.Decoder, error) {
	return &document{env: env}, nil
}

// editors are the editors that run the extensions, by the names of their
// configuration directories; servers are those of their remote halves.
var (
	editors = []string{"Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"}
	servers = []string{".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server"}
)

// Stores implements harness.Format. CLINE_DIR is where Cline's own command keeps
// its data.
func (f Format) Stores(home string, getenv func(string) string) []harness.Store {
	configs := []string{filepath.Join(home, ".config"), filepath.Join(home, "Library", "Application Support")}
	if dir := getenv("XDG_CONFIG_HOME"); dir != "" {
		configs[0] = dir
	}
	if dir := getenv("APPDATA"); dir != "" {
		configs = append(configs, dir)
	}
	var users []string
	for _, dir := range configs {
		for _, editor := range editors {
			users = append(users, filepath.Join(dir, editor, "User"))
		}
	}
	for _, server := range servers {
		users = append(users, filepath.Join(home, server, "data", "User"))
	}
	a := agents[f]
	var roots []string
	for _, user := range users {
		roots = append(roots, filepath.Join(user, "globalStorage", a.extension, "tasks"))
	}
	if a.home != "" {
		roots = append(roots, filepath.Join(home, filepath.FromSlash(a.home)))
	}
	if dir := getenv("CLINE_DIR"); f == Cline && dir != "" {
		roots[len(roots)-1] = filepath.Join(dir, "data", "tasks")
	}
	list := make([]harness.Store, 0, len(roots))
	for _, root := range roots {
		list = append(list, harness.Store{Root: root, Keep: keep})
	}
	return list
}

// keep reports whether rel, below tasks/, is a task or its messages. The
// model's conversation is not among them: it says the same and less.
func keep(rel string, dir bool) bool {
	parts := strings.Split(rel, "/")
	if dir {
		return len(parts) == 1 && !slices.Contains([]string{"checkpoints", ""}, rel)
	}
	return len(parts) == 2 && isMessages(parts[1])
}
