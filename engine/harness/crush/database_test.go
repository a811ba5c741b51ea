package crush

import (
	"bytes"
	"testing"

	"handoffd/engine/harness/harnesstest"
)

// Every session of the scripted database is read as the golden files say.
func TestDatabase(t *testing.T) {
	samples := harnesstest.ScriptedSamples(t, Database{}, "crush.sql", "crush.db")
	harnesstest.Run(t, Database{}, samples...)
	harnesstest.Golden(t, Database{}, samples...)
}

// Nothing of what the script poisons is ever exported.
func TestNoSecrets(t *testing.T) {
	for _, s := range harnesstest.ScriptedSamples(t, Database{}, "crush.sql", "crush.db") {
		if at := bytes.Index(s.Data, []byte("POISON")); at >= 0 {
			t.Errorf("session %s: ...%.80s", s.Name, s.Data[max(0, at-40):])
		}
	}
}

// Only the tables of sessions are read.
func TestNeverReads(t *testing.T) {
	harnesstest.NeverReads(t, Database{}, "crush.sql", "crush.db", "files")
}

func FuzzDatabase(f *testing.F) {
	harnesstest.Fuzz(f, Database{}, harnesstest.ScriptedSamples(f, Database{}, "crush.sql", "crush.db")...)
}
