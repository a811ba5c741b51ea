package journal

import (
	"slices"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// Targets finds in a call's arguments the command line, and the file that the
// last of the members named by files names. Both are empty for what is no JSON.
func Targets(raw []byte, files ...string) (command string, edits []string) {
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		command, edits = "", nil
		v.Fields(func(name string) {
			switch {
			case name == "command":
				command = plain.Text(v.Text())
			case slices.Contains(files, name):
				if s := plain.Text(v.Text()); s != "" {
					edits = []string{s}
				}
			}
		})
	})
	if err != nil {
		return "", nil
	}
	return command, edits
}
