package cursoride

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

// Every session of the scripted database is read as the golden files say.
func TestDatabase(t *testing.T) {
	samples := harnesstest.ScriptedSamples(t, Database{}, "cursor.sql", "state.vscdb")
	harnesstest.Run(t, Database{}, samples...)
	harnesstest.Golden(t, Database{}, samples...)
}

// Nothing of what the script poisons is ever exported.
func TestNoSecrets(t *testing.T) {
	for _, s := range harnesstest.ScriptedSamples(t, Database{}, "cursor.sql", "state.vscdb") {
		if at := bytes.Index(s.Data, []byte("POISON")); at >= 0 {
			t.Errorf("session %s: ...%.80s", s.Name, s.Data[max(0, at-40):])
		}
	}
}

// Only the tables of sessions are read.
func TestNeverReads(t *testing.T) {
	harnesstest.NeverReads(t, Database{}, "cursor.sql", "state.vscdb", "ItemTable")
}

func FuzzDatabase(f *testing.F) {
	harnesstest.Fuzz(f, Database{}, harnesstest.ScriptedSamples(f, Database{}, "cursor.sql", "state.vscdb")...)
}

// An answer that is being written is told as it is now, and decided when it is
// whole.
func TestGrowing(t *testing.T) {
	path := harnesstest.Scripted(t, "cursor.sql", "state.vscdb")
	const id = "c0ffee00-0000-4000-8000-000000000003"
	db := harnesstest.Owner(t, path, "WAL")
	sample := func() harnesstest.Sample {
		return harnesstest.Sample{Data: harnesstest.Export(t, Database{}, path, id)}
	}
	states := []harnesstest.Sample{sample()}
	keys := map[string]bool{}
	for _, do := range []string{
		`INSERT INTO cursorDiskKV VALUES ('bubbleId:c0ffee00-0000-4000-8000-000000000003:l3', '{"type":2,"text":"And now this"}')`,
		`INSERT INTO cursorDiskKV VALUES ('bubbleId:c0ffee00-0000-4000-8000-000000000003:l4', '{"type":2,"text":"","toolFormerData":{"name":"read_file","toolCallId":"x","status":"loading","rawArgs":"{}"}}')`,
		`UPDATE cursorDiskKV SET value = replace(value, '{"bubbleId":"l3","type":2}', '{"bubbleId":"l3","type":2},{"bubbleId":"l4","type":2}') WHERE key = 'composerData:c0ffee00-0000-4000-8000-000000000003'`,
		`INSERT INTO cursorDiskKV VALUES ('bubbleId:c0ffee00-0000-4000-8000-000000000003:l4', '{"type":2,"text":"","toolFormerData":{"name":"read_file","toolCallId":"x","status":"completed","rawArgs":"{}","result":"text"}}')`,
		`UPDATE cursorDiskKV SET value = replace(value, 'generating', 'completed') WHERE key = 'composerData:c0ffee00-0000-4000-8000-000000000003'`,
	} {
		harnesstest.Do(t, db, do)
		key, ok, err := Database{}.Key(path, id)
		if err != nil || !ok || keys[key] {
			t.Errorf("after %.80s the key is as before: %v %v", do, ok, err)
		}
		keys[key] = true
		states = append(states, sample())
	}
	harnesstest.States(t, Database{}, states...)
}
