package render_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/render"
)

func TestSetFields(t *testing.T) {
	for _, c := range []struct {
		name, block string
		set         map[string]string
		want        string
	}{
		{"new", "", map[string]string{"RISKS": "some", "RESULT": "DONE"}, "RESULT: DONE\nRISKS: some"},
		{"in its place", "RESULT: x\nRISKS: y", map[string]string{"RESULT": "z"}, "RESULT: z\nRISKS: y"},
		{"with its continuation", "RESULT: x\n  more\nnote\nRISKS: y", map[string]string{"RESULT": "z"}, "RESULT: z\nnote\nRISKS: y"},
		{"prose stays", "intro\n\nRESULT: x\n\nby hand", map[string]string{"RESULT": "z"}, "intro\n\nRESULT: z\n\nby hand"},
		{"several lines", "", map[string]string{"RESULT": "a\nEVIDENCE: b\r\n\nc"}, "RESULT: a\n  EVIDENCE: b\n  c"},
		{"doubled", "RESULT: x\nRESULT: y", map[string]string{"RESULT": "z"}, "RESULT: z"},
		{"blank", "RESULT: x", map[string]string{"RESULT": " \n "}, "RESULT:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := render.SetFields(c.block, c.set); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestFieldsHold sets values of every kind: each is found again, none becomes
// another field, and what was not set stays.
func TestFieldsHold(t *testing.T) {
	piece := rapid.SampledFrom([]string{"RESULT:", "EVIDENCE: x", "\n", "\r", " ", "DONE", "```", "## Evidence contract (hand-authored — preserved across rebuilds)", "- contract sha256: ", "é"})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "text"), "") })
	rapid.Check(t, func(t *rapid.T) {
		block := "BLOCKERS: kept\nby hand"
		want := map[string]string{"BLOCKERS": "kept"}
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			set := map[string]string{}
			for _, name := range []string{"RESULT", "RISKS", "FOLLOW_UP"} {
				if rapid.Bool().Draw(t, name) {
					set[name] = text.Draw(t, "value")
				}
			}
			block = render.SetFields(block, set)
			for name, v := range set {
				first, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(v, "\r", "\n")), "\n")
				want[name] = strings.TrimSpace(first)
			}
		}
		got := render.Fields(block)
		if len(got) != len(want) {
			t.Fatalf("%q has %v, want %v", block, got, want)
		}
		for name, v := range want {
			if got[name] != v {
				t.Fatalf("%q has %s=%q, want %q", block, name, got[name], v)
			}
		}
		if !strings.Contains("\n"+block+"\n", "\nby hand\n") {
			t.Fatalf("%q lost what was written by hand", block)
		}
	})
}
