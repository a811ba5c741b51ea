package goose

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

// Every session of the scripted database is read as the golden files say.
func TestDatabase(t *testing.T) {
	samples := harnesstest.ScriptedSamples(t, Database{}, "goose.sql", "sessions.db")
	harnesstest.Run(t, Database{}, samples...)
	harnesstest.Golden(t, Database{}, samples...)
}

// Nothing of what the script poisons is ever exported.
func TestNoSecrets(t *testing.T) {
	for _, s := range harnesstest.ScriptedSamples(t, Database{}, "goose.sql", "sessions.db") {
		if at := bytes.Index(s.Data, []byte("POISON")); at >= 0 {
			t.Errorf("session %s: ...%.80s", s.Name, s.Data[max(0, at-40):])
		}
	}
}

// Only the tables of sessions are read.
func TestNeverReads(t *testing.T) {
	harnesstest.NeverReads(t, Database{}, "goose.sql", "sessions.db", "provider_secrets", "schema_version")
}

func FuzzDatabase(f *testing.F) {
	harnesstest.Fuzz(f, Database{}, harnesstest.ScriptedSamples(f, Database{}, "goose.sql", "sessions.db")...)
}

// Goose writes a conversation again, with other row numbers, when it compacts
// it; a message is the same all the same, and two that say the same in one
// second are two.
func TestWrittenAgain(t *testing.T) {
	path := harnesstest.Scripted(t, "goose.sql", "sessions.db")
	const id = "20260617_1"
	sample := func() harnesstest.Sample {
		return harnesstest.Sample{Data: harnesstest.Export(t, Database{}, path, id)}
	}
	states := []harnesstest.Sample{sample()}
	before, _, err := Database{}.Key(path, id)
	if err != nil {
		t.Fatal(err)
	}
	db := harnesstest.Owner(t, path, "WAL")
	harnesstest.Do(t, db, `CREATE TEMP TABLE kept AS SELECT session_id, role, content_json, created_timestamp, metadata_json FROM messages WHERE session_id = '20260617_1' ORDER BY id`)
	harnesstest.Do(t, db, `DELETE FROM messages WHERE session_id = '20260617_1'`)
	harnesstest.Do(t, db, `INSERT INTO messages(session_id, role, content_json, created_timestamp, metadata_json) SELECT * FROM kept`)
	harnesstest.Do(t, db, `INSERT INTO messages(session_id, role, content_json, created_timestamp) VALUES ('20260617_1', 'user', '[{"type":"text","text":"Go on"}]', 1781674700)`)
	states = append(states, sample())
	if after, _, err := (Database{}).Key(path, id); err != nil || after == before {
		t.Errorf("the key did not change: %v", err)
	}
	harnesstest.States(t, Database{}, states...)
}
