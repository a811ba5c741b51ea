package harness_test

import (
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/harness"
)

// A name gives back the path and the id that it was made of, whatever they are.
func TestJoinSplit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := "/" + rapid.String().Draw(rt, "path")
		id := rapid.StringN(1, -1, -1).Draw(rt, "id")
		bundle, back, ok := harness.Split(harness.Join(path, id))
		if !ok || bundle != path || back != id {
			t.Errorf("%q and %q came back as %q and %q, %v", path, id, bundle, back, ok)
		}
	})
	for _, path := range []string{"", "#", "/a/b.jsonl", "/a#b/c.jsonl", "/a.db#", "/a.db#%zz", "#x"} {
		if _, id, ok := harness.Split(path); ok {
			t.Errorf("%q names session %q", path, id)
		}
	}
}
