// Package aider reads the chat history of Aider: one Markdown file a repository,
// .aider.chat.history.md, to which every run appends. It never opens a file.
//
// The file is one session, however many runs it holds: it is the history of the
// work on one repository, which is what a handoff of it is wanted for, and a run
// has no id of its own. Each run begins with a turn that says when. The session
// is called after the repository's directory and the file, with a hash of the
// path, for directories of one name are many.
//
// No message has a time. The only one is that at which a run started, in local
// time without a zone; it is given as it stands, as if it were UTC, and every
// turn that carries it is marked as approximate. Answers hold headings and
// quotations that look like the marks of the format. Aider ends the lines that
// it marks with two spaces, which tells them apart.
//
// Sources of the format claims: github.com/Aider-AI/aider aider/io.py
// (append_chat_history, user_input, ai_output, tool_output; @5dc9490b) and
// aider/coders/base_coder.py (the lines of a start and of an applied edit);
// measured on real files of Aider of 2023-07, 0.83 and 0.86.
package aider

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
	"handoffd/engine/session"
)

// History is the format.
type History struct{}

var _ harness.Format = History{}

const (
	label = "aider"
	file  = ".aider.chat.history.md"
)

// Traits implements harness.Format.
func (History) Traits() harness.Traits {
	return harness.Traits{Key: label, Harness: label, Container: harness.Lines, Identity: harness.ByContent}
}

// start is the line with which a run begins.
var start = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^# aider chat started at (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\s*$`)
})

// Recognize implements harness.Format.
func (History) Recognize(unit []byte) harness.Confidence {
	if len(unit) < 128 && start().Match(unit) {
		return harness.Certain
	}
	return harness.No
}

// Record implements harness.Format.
func (History) Record([]byte) bool { return false }

// Place implements harness.Format.
func (History) Place(p string) bool { return path.Base(filepath.ToSlash(p)) == file }

// About implements harness.Format.
func (History) About(p string, m *session.Meta) {
	p = filepath.ToSlash(p)
	dir, name := path.Split(p)
	dir = path.Clean(dir)
	stem := strings.TrimSuffix(name, path.Ext(name))
	if name == file {
		stem = label
	}
	id := fmt.Sprintf("%s-%08x", stem, uint32(plain.Hash(dir)))
	if base := path.Base(dir); base != "." && base != "/" {
		id = base + "-" + id
	}
	m.ID = id
}

// Decoder implements harness.Format.
func (History) Decoder(saved []byte, env harness.Env) (harness.Decoder, error) {
	d := &decoder{env: env}
	if len(saved) > 0 {
		if err := json.Unmarshal(saved, &d.state); err != nil {
			return nil, fmt.Errorf("aider: %w", err)
		}
	}
	return d, nil
}

// Stores implements harness.Format. The files lie in the repositories, anywhere,
// and a home directory is not searched for them: what is looked at is Aider's own
// directory, the file that AIDER_CHAT_HISTORY_FILE names, and a root that the
// configuration gives in place of the former.
func (History) Stores(home string, getenv func(string) string) []harness.Store {
	list := []harness.Store{{Root: filepath.Join(home, ".aider"), Keep: keep}}
	if p := getenv("AIDER_CHAT_HISTORY_FILE"); filepath.IsAbs(p) {
		name := filepath.Base(p)
		list = append(list, harness.Store{Root: filepath.Dir(p), Keep: func(rel string, dir bool) bool { return !dir && rel == name }})
	}
	return list
}

// keep reports whether rel is a history, or a directory that can hold a
// repository.
func keep(rel string, dir bool) bool {
	name := path.Base(rel)
	if dir {
		return !strings.HasPrefix(name, ".") && name != "node_modules" && name != "vendor"
	}
	return name == file
}
