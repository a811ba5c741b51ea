package mutation

import (
	"regexp"
	"slices"
	"strings"
)

// recoveryFlags are the flags that a denied session may give to the verbs that
// lead out of a deny, of its own session alone.
var recoveryFlags = map[string][]string{
	"bypass": {"session", "ticket"},
	"unlock": {"session", "pid", "started-at", "host", "nonce"},
	"repair": {"session", "ticket", "content-hash", "host"},
	"write":  {"session", "ticket", "host", "content-hash"},
	"resume": {"session", "deny-session"},
}

// switches are flags without a value that every one of them takes.
var switches = []string{"write", "json"}

var (
	plainWord  = regexp.MustCompile(`\A[A-Za-z0-9_./=-]+\z`)
	plainValue = regexp.MustCompile(`\A[A-Za-z0-9_./=:-]+\z`)
)

// MutatingCLI reports whether a shell command names a verb that changes the
// store of records, ours or the published tool's.
func MutatingCLI(command string) bool { return mutatingCLI.MatchString(command) }

var mutatingCLI = regexp.MustCompile(`(?:\bhandoff(?:\.mjs)?|\bhandoffctl(?:\.exe)?['"]?\s+(?:--?\S+\s+)*context)\s+(?:write|resume|bypass|repair|unlock|continue)\b`)

// Recovery reports whether a shell command is one of the few that a denied
// session may run: pwd, or this program with a verb that leads out, for the
// session itself. own says whether a path is that of this program.
//
// The form is strict: single spaces, no quoting but of the whole path, no flag
// twice. Nothing in it is for a shell to interpret.
func Recovery(command, session string, own func(path string) bool) bool {
	if command == "pwd" {
		return true
	}
	if strings.ContainsAny(command, "\r\n") || !plainValue.MatchString(session) || strings.HasPrefix(session, "--") {
		return false
	}
	program, rest, ok := firstWord(command)
	if !ok || !absolute(slashed(program)) || !own(program) {
		return false
	}
	words := strings.Split(rest, " ")
	if len(words) < 2 || words[0] != "context" {
		return false
	}
	allowed, ok := recoveryFlags[words[1]]
	if !ok {
		return false
	}
	seen := map[string]string{}
	for i := 2; i < len(words); i++ {
		name, ok := strings.CutPrefix(words[i], "--")
		if !ok {
			return false
		}
		if _, twice := seen[name]; twice {
			return false
		}
		if slices.Contains(switches, name) {
			seen[name] = ""
			continue
		}
		i++
		if !slices.Contains(allowed, name) || i >= len(words) || !plainValue.MatchString(words[i]) || strings.HasPrefix(words[i], "--") {
			return false
		}
		seen[name] = words[i]
	}
	return seen["session"] == session
}

// firstWord takes a path that is plain or wholly single-quoted.
func firstWord(command string) (word, rest string, ok bool) {
	if quoted, is := strings.CutPrefix(command, "'"); is {
		word, rest, ok = strings.Cut(quoted, "' ")
		return word, rest, ok && !strings.Contains(word, "'")
	}
	word, rest, ok = strings.Cut(command, " ")
	return word, rest, ok && plainWord.MatchString(word)
}

// RecoveryCommand returns a command to copy that runs a verb of this program,
// or "" where nothing can be written that a shell takes as it is meant: then
// prose must do.
func RecoveryCommand(program, verb string, flags ...string) string {
	if strings.ContainsAny(program, "'\r\n") || program == "" {
		return ""
	}
	if !plainWord.MatchString(program) {
		program = "'" + program + "'"
	}
	words := []string{program, "context", verb}
	for i := 0; i+1 < len(flags); i += 2 {
		value := flags[i+1]
		if !plainValue.MatchString(value) || strings.HasPrefix(value, "--") {
			return ""
		}
		words = append(words, "--"+flags[i], value)
	}
	return strings.Join(append(words, "--write"), " ")
}
