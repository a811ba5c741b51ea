package kiro

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

// Every session of the scripted database is read as the golden files say.
func TestDatabase(t *testing.T) {
	samples := harnesstest.ScriptedSamples(t, Database{}, "kiro.sql", "data.sqlite3")
	harnesstest.Run(t, Database{}, samples...)
	harnesstest.Golden(t, Database{}, samples...)
}

// Nothing of what the script poisons is ever exported.
func TestNoSecrets(t *testing.T) {
	for _, s := range harnesstest.ScriptedSamples(t, Database{}, "kiro.sql", "data.sqlite3") {
		if at := bytes.Index(s.Data, []byte("POISON")); at >= 0 {
			t.Errorf("session %s: ...%.80s", s.Name, s.Data[max(0, at-40):])
		}
	}
}

// Only the tables of sessions are read.
func TestNeverReads(t *testing.T) {
	harnesstest.NeverReads(t, Database{}, "kiro.sql", "data.sqlite3", "auth_kv", "state", "migrations")
}

func FuzzDatabase(f *testing.F) {
	harnesstest.Fuzz(f, Database{}, harnesstest.ScriptedSamples(f, Database{}, "kiro.sql", "data.sqlite3")...)
}

// A conversation is written again as a whole at every turn, and loses its
// oldest entries when it is compacted.
func TestWrittenAgain(t *testing.T) {
	path := harnesstest.Scripted(t, "kiro.sql", "data.sqlite3")
	const id = "aaaaaaaa-0000-4000-8000-000000000001"
	db := harnesstest.Owner(t, path, "WAL")
	sample := func() harnesstest.Sample {
		return harnesstest.Sample{Data: harnesstest.Export(t, Database{}, path, id)}
	}
	whole := sample()
	var states []harnesstest.Sample
	for n := 1; n <= 3; n++ {
		harnesstest.Do(t, db, `UPDATE conversations_v2 SET updated_at = updated_at + 1, value = json_set(value, '$.history', (SELECT json_group_array(json(value)) FROM (SELECT h.value FROM json_each(json_extract(conversations_v2.value, '$.history')) h LIMIT ?))) WHERE conversation_id = ?`, n, id)
		states = append(states, sample())
		harnesstest.Do(t, db, `UPDATE conversations_v2 SET value = ? WHERE conversation_id = ?`, original(t), id)
	}
	states = append(states, whole)
	harnesstest.States(t, Database{}, states...)
}

// original is the value of the conversation as the script has it.
func original(t *testing.T) string {
	t.Helper()
	path := harnesstest.Scripted(t, "kiro.sql", "data.sqlite3")
	var text string
	if err := harnesstest.Owner(t, path, "WAL").QueryRow(`SELECT value FROM conversations_v2 WHERE conversation_id = 'aaaaaaaa-0000-4000-8000-000000000001'`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}
