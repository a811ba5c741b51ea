package opencode

import (
	"path/filepath"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
)

// Every session of the real stores at hand is read.
func TestReal(t *testing.T) {
	for _, s := range harnesstest.Fixtures(t, "opencode", ".db") {
		harnesstest.Real(t, Database{}, harnesstest.Exports(t, Database{}, s.Path)...)
	}
	for _, s := range harnesstest.Fixtures(t, "opencode", ".json") {
		if (Tree{}).Holds(s.Path) {
			harnesstest.Real(t, Tree{}, harnesstest.Exports(t, Tree{}, s.Path)...)
		}
	}
}

// The two formats of a store that is at hand tell their own databases from
// others.
func TestRealIsKnown(t *testing.T) {
	for _, s := range harnesstest.Fixtures(t, "opencode", ".db") {
		if !(Database{}).Holds(s.Path) {
			t.Errorf("%s is not known by its name", filepath.Base(s.Path))
		}
		var b harness.Bundle = Database{}
		if _, ok, err := b.Key(s.Path, "none"); ok || err != nil {
			t.Errorf("a session that is not there: %v %v", ok, err)
		}
	}
}
