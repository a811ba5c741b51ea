package execute

import (
	"strings"

	"handoffd/engine/fault"
)

// Split cuts a command line into arguments. White space separates them. What
// is within single quotes is taken as it is. Within double quotes \" and \\
// stand for a quote and a backslash; outside quotes a backslash takes the
// meaning from white space, a quote or a backslash after it. Every other
// backslash is one, so that paths and escapes of other languages come
// through. Nothing is expanded: there is no shell.
func Split(line string) ([]string, error) {
	var args []string
	var arg strings.Builder
	begun, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		next := byte(0)
		if i+1 < len(line) {
			next = line[i+1]
		}
		switch {
		case c == 0:
			return nil, fault.New(fault.Usage, "--args holds a NUL")
		case quote == 0 && isSpace(c):
			if begun {
				args = append(args, arg.String())
				arg.Reset()
				begun = false
			}
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && (quote == 0 && (isSpace(next) || next == '\'') || quote != '\'' && (next == '"' || next == '\\')):
			arg.WriteByte(next)
			i++
		default:
			arg.WriteByte(c)
		}
		begun = true
	}
	if quote != 0 {
		return nil, fault.New(fault.Usage, "--args has a quote %c that is not closed", quote)
	}
	if begun {
		args = append(args, arg.String())
	}
	if len(args) == 0 {
		return nil, fault.New(fault.Usage, "spawn op requires --args")
	}
	return args, nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
