package kiro

import (
	"path"
	"path/filepath"
	"strings"

	"handoffd/engine/harness"
	"handoffd/engine/session"
)

// Log is the JSONL of sessions/cli/<id>.jsonl, which took the place of the
// database: a line {"version":"v1","kind":…,"data":{…}} a message, appended. The
// model, the title and the working directory are in <id>.json beside it.
//
// Sources of the format claims: github.com/ingo-eichhorst/Irrlicht
// core/adapters/inbound/agents/kirocli/parser.go (@0b5c0815, verified there on
// 2.5 and 2.6) and github.com/kenn-io/agentsview internal/parser/kiro.go
// (@111b76c5).
type Log struct{}

// Document is a conversation as one JSON object, the value of a row of the
// database: what collectors and the command to save a conversation write.
type Document struct{}

var (
	_ harness.Format = Log{}
	_ harness.Format = Document{}
)

// Traits implements harness.Format.
func (Log) Traits() harness.Traits {
	return harness.Traits{Key: "kiro", Harness: "kiro", Container: harness.JSONL, Identity: harness.ByID}
}

// Traits implements harness.Format.
func (Document) Traits() harness.Traits {
	return harness.Traits{Key: "kiro-json", Harness: "kiro", Container: harness.Document, Identity: harness.ByID}
}

// kinds are the kinds of a line.
var kinds = map[string]bool{"Prompt": true, "AssistantMessage": true, "ToolResults": true, "Clear": true, "Compaction": true}

// Recognize implements harness.Format.
func (Log) Recognize(unit []byte) harness.Confidence {
	var r message
	var v harness.Value
	if _, err := v.Walk(unit, r.read); err != nil || !kinds[r.kind] || !r.hasData {
		return harness.No
	}
	if r.blocks && (r.version != "" || r.id != "") {
		return harness.Certain
	}
	return harness.Perhaps
}

// Record implements harness.Format.
func (Log) Record(obj []byte) bool {
	var r message
	var v harness.Value
	_, err := v.Walk(obj, r.read)
	return err == nil && kinds[r.kind] && r.hasData
}

// Place implements harness.Format.
func (Log) Place(p string) bool {
	_, rel, ok := strings.Cut(filepath.ToSlash(p), "/"+sessionsDir+"/")
	return ok && keepLog(rel, false)
}

// sessionsDir is where the CLI keeps sessions, below .kiro.
const sessionsDir = "sessions/cli"

func keepLog(rel string, dir bool) bool {
	return !dir && !strings.Contains(rel, "/") && strings.HasSuffix(rel, logEnd)
}

const logEnd = ".jsonl"

// About implements harness.Format. The file is named after the session.
func (f Log) About(p string, m *session.Meta) {
	if f.Place(p) {
		m.ID = strings.TrimSuffix(path.Base(filepath.ToSlash(p)), logEnd)
	}
}

// Decoder implements harness.Format.
func (Log) Decoder(state []byte, env harness.Env) (harness.Decoder, error) {
	return newLogDecoder(state, env)
}

// Stores implements harness.Format. KIRO_HOME replaces ~/.kiro.
func (Log) Stores(home string, getenv func(string) string) []harness.Store {
	root := filepath.Join(home, ".kiro")
	if dir := getenv("KIRO_HOME"); dir != "" {
		root = dir
	}
	return []harness.Store{{Root: filepath.Join(root, filepath.FromSlash(sessionsDir)), Keep: keepLog}}
}
