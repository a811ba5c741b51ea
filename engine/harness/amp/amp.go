// Package amp reads the thread files of Amp: one JSON object a thread, written
// again as a whole whenever it changes. It never asks Amp's server for a
// thread, never follows a thread to another, and never reads the settings,
// history or secrets that lie beside the threads.
//
// What it claims of the format is measured on a file of client version
// 0.0.1772237000 (v 85) and taken from what other programs read and write:
// github.com/LIGHTYEARS/flitter packages/schemas/src/thread.ts (blocks, states,
// relationships), github.com/jonathan-kellerai/cross_agent_session_resumer
// src/providers/amp.rs at ec0eab9 (places, summaries, older results) and
// github.com/noamsto/houston docs/AMP_AGENT_SUPPORT.md at de78dc0 (states).
// Newer clients keep threads on the server only; those are not seen.
package amp

import (
	"bytes"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Thread is the format of a thread file.
type Thread struct{}

// Traits implements harness.Format.
func (Thread) Traits() harness.Traits {
	return harness.Traits{Key: "amp-thread", Harness: "amp", Container: harness.Document, Identity: harness.ByID}
}

// idPrefix begins every thread id and file name.
const idPrefix = "T-"

// Recognize implements harness.Format. The members that tell stand before the
// messages, but an export may have them behind, where a head is cut off.
func (Thread) Recognize(unit []byte) harness.Confidence {
	unit = trim(unit)
	if len(unit) == 0 || unit[0] != '{' {
		return harness.No
	}
	var id, counted, messages, numbered bool
	var v harness.Value
	// What was read before a cut is as good as if there was none, so the
	// error does not matter.
	_, _ = v.Walk(unit, func(v *harness.Value) {
		id, counted, messages, numbered = false, false, false, false
		v.Fields(func(name string) {
			switch name {
			case "id":
				s := v.Text()
				id = strings.HasPrefix(s, idPrefix) && len(s) > len(idPrefix)
			case "v", "created":
				_, ok := v.Int()
				counted = counted || ok
			case "messages":
				messages = v.Kind() == '['
				v.Items(func() {
					v.Fields(func(name string) {
						if name == "messageId" {
							numbered = true
						}
					})
				})
			}
		})
	})
	switch {
	case id && messages && (counted || numbered):
		return harness.Certain
	case messages && (id || numbered):
		return harness.Perhaps
	}
	return harness.No
}

// Place implements harness.Format.
func (Thread) Place(path string) bool {
	dir, name := filepath.Split(filepath.ToSlash(path))
	return threadFile(name) &&
		(strings.HasSuffix(dir, "/amp/threads/") || strings.HasSuffix(dir, "/"+extension+"/threads3/"))
}

// Record implements harness.Format.
func (f Thread) Record(obj []byte) bool { return f.Recognize(obj) != harness.No }

// About implements harness.Format.
func (Thread) About(path string, m *session.Meta) {
	name := filepath.Base(path)
	id, ok := strings.CutSuffix(name, ".json")
	// "T-... (1).json" is a copy, whose content knows the thread.
	if ok && threadFile(name) && strings.Trim(id, idBytes) == "" {
		m.ID = id
	}
}

// idBytes are what a thread's id consists of: the prefix and a UUID, or what
// other programs write in its place.
const idBytes = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// extension is the directory of the editor's extension, which kept threads
// itself before they moved to the one place
// (cross_agent_session_resumer, src/providers/amp.rs).
const extension = "sourcegraph.amp"

// Stores implements harness.Format.
func (Thread) Stores(home string, getenv func(string) string) []harness.Store {
	data := getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		data = filepath.Join(home, ".local", "share")
	}
	keep := func(rel string, dir bool) bool { return !dir && threadFile(rel) }
	configs := []string{filepath.Join(home, ".config"), filepath.Join(home, "Library", "Application Support")}
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		configs[0] = dir
	}
	if dir := getenv("APPDATA"); filepath.IsAbs(dir) {
		configs = append(configs, dir)
	}
	var users []string
	for _, config := range configs {
		for _, editor := range []string{"Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"} {
			users = append(users, filepath.Join(config, editor, "User"))
		}
	}
	for _, server := range []string{".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server"} {
		users = append(users, filepath.Join(home, server, "data", "User"))
	}
	list := []harness.Store{{Root: filepath.Join(data, "amp", "threads"), Keep: keep}}
	for _, user := range users {
		list = append(list, harness.Store{Root: filepath.Join(user, "globalStorage", extension, "threads3"), Keep: keep})
	}
	return list
}

// Decoder implements harness.Format. A thread is read from its start, so there
// is no state to go on from.
func (Thread) Decoder(_ []byte, env harness.Env) (harness.Decoder, error) {
	return &decoder{name: strings.TrimSuffix(env.Name(), ".json")}, nil
}

// threadFile reports whether name, without a directory, is a thread's.
func threadFile(name string) bool {
	return strings.HasPrefix(name, idPrefix) && strings.HasSuffix(name, ".json") &&
		len(name) > len(idPrefix)+len(".json") && !strings.Contains(name, "/")
}

// trim takes away what editors and copies put around a document.
func trim(raw []byte) []byte {
	return bytes.Trim(bytes.TrimPrefix(raw, []byte("\ufeff")), " \t\r\n\x00")
}
