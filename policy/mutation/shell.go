package mutation

import (
	"path"
	"regexp"
	"strings"
)

// Touch is a place that a command changes, as it is written.
type Touch struct {
	Word string // without its trailing slashes
	Dir  string // the directory that it is from, absolute, or "" when unknown
	// Whole says that everything below it goes too.
	Whole bool
	// All says that nothing of it is left.
	All bool
	// Perhaps says that the program is not known, which may only read.
	Perhaps bool
}

// maxNesting bounds commands within commands.
const maxNesting = 8

// Touches returns what a shell command started in dir would change, as far as
// its text tells: what variables hold and what programs do on their own is not
// seen. Commands that only read change nothing, whatever they name.
func Touches(command, dir string) []Touch {
	r := &reader{dir: slashed(dir)}
	r.read(command, 0)
	return r.out
}

// reader walks over the simple commands of a command.
type reader struct {
	dir string
	out []Touch
}

// simple is one simple command.
type simple struct {
	args []token
	here string // standard input from a here-document or here-string
	// piped says that what it acts on comes from the command before.
	piped []token
}

func (r *reader) read(command string, depth int) {
	if depth > maxNesting {
		return
	}
	tokens, nested := lex(command)
	for _, n := range nested {
		inner := &reader{dir: r.dir}
		inner.read(n, depth+1)
		r.out = append(r.out, inner.out...)
	}
	var stack []string
	var cmd, before simple
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		if !t.op {
			cmd.args = append(cmd.args, t)
			continue
		}
		switch t.text {
		case "<", "<&", "<<", "<<-", "<<<":
			if i+1 < len(tokens) && !tokens[i+1].op {
				i++
				if t.text == "<<<" {
					cmd.here = tokens[i].text
				}
			}
			if t.here != "" {
				cmd.here = t.here
			}
		case ">", ">>", ">|", "&>", "&>>", "<>", ">&":
			if i+1 < len(tokens) && !tokens[i+1].op {
				i++
				r.touch(tokens[i], false)
			}
		default:
			cmd.piped = before.args
			r.run(cmd, depth)
			before = simple{}
			if t.text == "|" || t.text == "|&" {
				before = cmd
			}
			cmd = simple{}
			switch t.text {
			case "(":
				stack = append(stack, r.dir)
			case ")":
				if n := len(stack); n > 0 {
					r.dir, stack = stack[n-1], stack[:n-1]
				}
			}
		}
	}
	cmd.piped = before.args
	r.run(cmd, depth)
}

// touch notes that a word names something that is changed.
func (r *reader) touch(t token, whole bool) { r.note(t, whole, false) }

func (r *reader) note(t token, whole, perhaps bool) {
	word := strings.TrimRight(t.text, "/")
	if word == "" {
		word = t.text
	}
	if word == "" || word == "-" {
		return
	}
	t.text = word
	if dir := r.dir; t.dynamic || strings.HasPrefix(word, "~") {
		// Where it begins only the shell knows, but its end may tell.
		if t.text = fromLedger(word); t.text == "" {
			return
		}
		r.dir = ""
		defer func() { r.dir = dir }()
	}
	r.out = append(r.out, Touch{Word: t.text, Dir: r.dir, Whole: whole, Perhaps: perhaps})
}

// fromLedger returns the end of a path from the ledger's directory on, or "".
func fromLedger(word string) string {
	parts := strings.Split(slashed(word), "/")
	for i := len(parts) - 1; i >= 0; i-- {
		if strings.EqualFold(parts[i], Ledger) {
			return strings.Join(parts[i:], "/")
		}
	}
	return ""
}

// reserved are words that may stand before a command.
var reserved = map[string]bool{
	"{": true, "}": true, "!": true, "if": true, "then": true, "else": true, "elif": true, "fi": true,
	"do": true, "done": true, "while": true, "until": true, "time": true, "in": true, "esac": true,
}

// wrappers run the command that follows, after their own flags and the given
// number of operands.
var wrappers = map[string]int{
	"sudo": 0, "doas": 0, "env": 0, "nohup": 0, "command": 0, "builtin": 0, "exec": 0, "nice": 0, "ionice": 0,
	"stdbuf": 0, "setsid": 0, "time": 0, "busybox": 0, "timeout": 1, "chronic": 0, "unbuffer": 0, "caffeinate": 0,
}

// wrapperValues are flags of wrappers that take the next word.
var wrapperValues = map[string]bool{
	"-u": true, "-g": true, "-C": true, "-n": true, "-c": true, "-k": true, "-s": true,
}

var assignment = regexp.MustCompile(`\A[A-Za-z_][A-Za-z0-9_]*\+?=`)

// run notes what a simple command changes.
func (r *reader) run(c simple, depth int) {
	args := c.args
	for len(args) > 0 && (assignment.MatchString(args[0].text) || !args[0].quoted && reserved[args[0].text]) {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	name := strings.ToLower(path.Base(slashed(args[0].text)))
	name = strings.TrimSuffix(name, ".exe")
	rest := args[1:]
	if operands, ok := wrappers[name]; ok {
		r.wrapped(c, name, rest, operands, depth)
		return
	}
	if strings.HasPrefix(name, "python3.") || strings.HasPrefix(name, "python2.") {
		name = "python"
	}
	switch name {
	case "cd", "pushd":
		r.move(rest)
		return
	case "eval", "watch":
		r.read(join(operandsOf(rest)), depth+1)
		return
	case "su", "script":
		if i := indexOf(rest, "-c"); i >= 0 && i+1 < len(rest) {
			r.read(rest[i+1].text, depth+1)
		}
		return
	case "trap":
		if len(rest) > 0 {
			r.read(rest[0].text, depth+1)
		}
		return
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "ash":
		r.shell(c, rest, depth)
		return
	case "xargs", "parallel":
		// What comes through the pipe is what the commands before name.
		inner := strip(rest, map[string]bool{"-n": true, "-P": true, "-I": true, "-L": true, "-d": true, "-a": true, "-s": true})
		piped := c.piped
		if len(piped) > 0 && path.Base(slashed(piped[0].text)) == "find" {
			piped, _ = found(piped[1:])
		}
		r.some(simple{args: append(append([]token{}, inner...), piped...), here: c.here}, depth)
		return
	case "python", "python2", "python3", "node", "perl", "ruby", "deno", "bun", "php", "lua":
		r.interpreter(c, rest)
		return
	}
	if known, ok := lookup(name); ok {
		known(r, rest)
		return
	}
	for _, t := range rest {
		r.unknown(t)
	}
}

// unknown notes a word of a program that nobody knows.
func (r *reader) unknown(t token) {
	if strings.HasPrefix(t.text, "-") {
		_, value, ok := strings.Cut(t.text, "=")
		if !ok {
			return
		}
		t.text = value
	}
	r.note(t, false, true)
}

func (r *reader) wrapped(c simple, name string, rest []token, operands, depth int) {
	if name == "command" && len(rest) > 0 && (rest[0].text == "-v" || rest[0].text == "-V") {
		return
	}
	for len(rest) > 0 {
		t := rest[0].text
		switch {
		case t == "--":
			rest = rest[1:]
		case strings.HasPrefix(t, "-"):
			rest = rest[1:]
			if wrapperValues[t] && len(rest) > 0 {
				rest = rest[1:]
			}
			continue
		case assignment.MatchString(t) && !rest[0].quoted, operands > 0:
			if !assignment.MatchString(t) {
				operands--
			}
			rest = rest[1:]
			continue
		}
		break
	}
	r.run(simple{args: rest, here: c.here, piped: c.piped}, depth)
}

func (r *reader) move(rest []token) {
	rest = operandsOf(rest)
	if len(rest) == 0 || rest[0].dynamic || rest[0].text == "-" || strings.HasPrefix(rest[0].text, "~") || r.dir == "" {
		r.dir = ""
		return
	}
	to := slashed(rest[0].text)
	if absolute(to) {
		r.dir = path.Clean(to)
		return
	}
	r.dir = path.Join(r.dir, to)
}

// shell reads the command that is given to another shell.
func (r *reader) shell(c simple, rest []token, depth int) {
	for i, t := range rest {
		if strings.HasPrefix(t.text, "-") && !strings.HasPrefix(t.text, "--") && strings.Contains(t.text, "c") {
			if i+1 < len(rest) {
				inner := &reader{dir: r.dir}
				inner.read(rest[i+1].text, depth+1)
				r.out = append(r.out, inner.out...)
			}
			return
		}
		if !strings.HasPrefix(t.text, "-") {
			for _, t := range rest[i+1:] { // a script and its arguments
				r.unknown(t)
			}
			return
		}
	}
	text := c.here
	if text == "" && len(c.piped) > 0 { // echo '...' | sh
		text = join(c.piped[1:])
	}
	inner := &reader{dir: r.dir}
	inner.read(text, depth+1)
	r.out = append(r.out, inner.out...)
}

var (
	writing = regexp.MustCompile(`(?i)rmtree|unlink|rmdir|\brm(Sync)?\b|remove|delete|rename|replace|write|truncate|\bmove\b|\bcopy|utime|chmod|mkdir|open\s*\(|['"][wax]\+?b?['"]|>`)
	naming  = regexp.MustCompile("(?i)[^\\s'\"`(),;=+\\[\\]{}<>]*\\.adlc[^\\s'\"`(),;+\\[\\]{}<>]*")
)

// interpreter notes what a program text names, if it writes anything.
func (r *reader) interpreter(c simple, rest []token) {
	code := []string{c.here}
	inline := false
	for _, t := range rest {
		switch {
		case inline:
			code = append(code, t.text)
			inline = false
		case strings.HasPrefix(t.text, "-") && !strings.HasPrefix(t.text, "--") && strings.ContainsAny(t.text, "ceEpr"), t.text == "--eval":
			inline = true
		default:
			r.unknown(t)
		}
	}
	for _, text := range code {
		if !writing.MatchString(text) {
			continue
		}
		for _, name := range naming.FindAllString(text, -1) {
			r.note(token{text: name}, true, false)
		}
	}
}

// operandsOf returns the words that are no flags.
func operandsOf(args []token) []token {
	var out []token
	for i, t := range args {
		if t.text == "--" && !t.quoted {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(t.text, "-") || t.text == "-" {
			out = append(out, t)
		}
	}
	return out
}

// strip returns the words behind the flags; values lists flags that take the
// next word.
func strip(args []token, values map[string]bool) []token {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		takes := values[args[0].text]
		args = args[1:]
		if takes && len(args) > 0 {
			args = args[1:]
		}
	}
	return args
}

func join(words []token) string {
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = w.text
	}
	return strings.Join(text, " ")
}
