package codex

import (
	"path"
	"strings"

	"handoffd/engine/harness"
)

// readCommand reads a command line: a string, or an argument vector. The
// script of "bash -lc SCRIPT" is the command line itself.
func readCommand(v *harness.Value) string {
	if v.Kind() == '"' {
		return v.Text()
	}
	var argv []string
	v.Items(func() { argv = append(argv, v.Text()) })
	if len(argv) == 3 && strings.HasPrefix(argv[1], "-") && strings.HasSuffix(argv[1], "c") {
		switch path.Base(argv[0]) {
		case "bash", "sh", "zsh", "dash":
			return argv[2]
		}
	}
	return strings.Join(argv, " ")
}

// shells are the tools whose arguments hold a command line.
var shells = map[string]bool{
	"shell": true, "container.exec": true, "local_shell": true, "shell_command": true,
	"exec_command": true, "exec": true, "unified_exec": true,
}

// commandOf returns the command line and the files changed of a call.
func commandOf(name, args string) (command string, edits []string) {
	switch {
	case shells[name]:
		var v harness.Value
		_, err := v.Walk([]byte(args), func(v *harness.Value) {
			command = ""
			v.Fields(func(field string) {
				switch field {
				case "command", "cmd":
					command = readCommand(v)
				}
			})
		})
		if err != nil {
			command = ""
		}
		return command, patched(command)
	case name == "apply_patch":
		return "", patched(args)
	}
	return "", nil
}

// patched returns the files that a patch in the form of apply_patch changes,
// also one inside a shell command or, with escaped newlines, inside JSON.
func patched(s string) []string {
	if !strings.Contains(s, "*** Begin Patch") {
		return nil
	}
	if !strings.Contains(s, "\n*** ") {
		s = strings.ReplaceAll(s, `\n`, "\n")
	}
	var files []string
	for line := range strings.Lines(s) {
		for _, mark := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if file, ok := strings.CutPrefix(line, mark); ok {
				if file = strings.TrimSpace(file); file != "" {
					files = append(files, file)
				}
			}
		}
	}
	return files
}
