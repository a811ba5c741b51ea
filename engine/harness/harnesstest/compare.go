package harnesstest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"handoffd/engine/turn"
)

// differ says where two lists of turns first differ, or "".
func differ(what string, got, want []turn.Turn) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("%s: %d turns, want %d; missing %s", what, len(got), len(want), Line(want[i]))
		case i >= len(want):
			return fmt.Sprintf("%s: %d turns, want %d; extra %s", what, len(got), len(want), Line(got[i]))
		case !reflect.DeepEqual(got[i], want[i]):
			return fmt.Sprintf("%s: turn %d\n got %s\nwant %s", what, i, Line(got[i]), Line(want[i]))
		}
	}
	return ""
}

func sameTurns(a, b []turn.Turn) bool { return differ("", a, b) == "" }

func sortInts(list []int) { slices.Sort(list) }

// Line writes a turn on one line, every field of it.
func Line(t turn.Turn) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-7s", t.Class)
	for _, f := range []struct{ name, value string }{
		{"ts", t.TS}, {"id", t.ID}, {"mark", t.Mark}, {"agent", t.Agent}, {"session", t.Session},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, " %s=%s", f.name, f.value)
		}
	}
	if t.Tool != nil {
		fmt.Fprintf(&b, " %s=%s", t.Tool.Phase, t.Tool.Name)
		if t.Tool.CallID != "" {
			fmt.Fprintf(&b, " call=%s", t.Tool.CallID)
		}
		if t.Tool.Exit != nil {
			fmt.Fprintf(&b, " exit=%d", *t.Tool.Exit)
		}
		if t.Tool.Error {
			b.WriteString(" error")
		}
		if t.Tool.Command != "" {
			fmt.Fprintf(&b, " command=%q", t.Tool.Command)
		}
		if len(t.Tool.Edits) > 0 {
			fmt.Fprintf(&b, " edits=%q", t.Tool.Edits)
		}
	}
	fmt.Fprintf(&b, " %q", t.Text)
	return b.String()
}
