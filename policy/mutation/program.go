package mutation

import (
	"path"
	"strings"
	"sync"
)

// program notes what a known program changes.
type program func(r *reader, args []token)

// programs are those whose manual says what they change (GNU coreutils and
// findutils manuals, POSIX.1-2024 Utilities, git-scm.com/docs). Everything
// else may change what it is given.
//
// The table refers to programs that run others, which look into it: it is made
// when it is first asked.
var programs struct {
	once  sync.Once
	known map[string]program
}

func lookup(name string) (program, bool) {
	programs.once.Do(fill)
	p, ok := programs.known[name]
	return p, ok
}

func fill() {
	programs.known = map[string]program{
		"rm": removal, "rmdir": removal, "unlink": removal, "shred": removal, "trash": removal, "srm": removal,
		"touch": operands, "truncate": operands, "mkdir": operands, "mkfifo": operands, "mknod": operands,
		"tee": operands, "split": nothing, "chmod": modes, "chown": modes, "chgrp": modes, "chattr": modes, "setfacl": modes,
		"mv": movement, "cp": copying, "install": copying, "ln": copying, "rsync": rsync, "scp": copying,
		"dd": assigned("of"), "sed": inPlace, "awk": awk, "gawk": awk, "mawk": awk,
		"find": find, "fd": find, "sort": outputFlag("-o", "--output"), "curl": outputFlag("-o", "--output"), "wget": outputFlag("-O", "--output-document"),
		"tar": tar, "zip": firstOperand, "unzip": outputFlag("-d", "--directory"), "patch": operands, "ed": operands, "ex": operands, "vi": operands, "vim": operands,
		"nano": operands, "emacs": operands, "uniq": secondOperand, "git": git, "jq": nothing, "yq": inPlace, "gzip": operands, "gunzip": operands,
		"prettier": nothing, "xxd": secondOperand, "iconv": outputFlag("-o", "--output"), "gpg": outputFlag("-o", "--output"),
	}
	for _, name := range strings.Fields(`ls cat head tail tac grep egrep fgrep rg ag ack wc stat file less more most bat diff cmp comm
		tree du df sha1sum sha256sum sha512sum md5sum shasum cksum b2sum readlink realpath basename dirname echo printf test [ [[
		cut tr column paste join nl od hexdump strings pwd true false : which type whereis whoami id date env printenv
		set export unset read wait sleep seq expr getfacl lsattr lsof fuser namei code open xdg-open exit return break
		continue local declare alias hash popd dirs history zcat zgrep bzcat xzcat zstdcat man help for case select function`) {
		programs.known[name] = nothing
	}
}

func nothing(*reader, []token) {}

// removal takes everything, of the root too.
func removal(r *reader, args []token) {
	from := len(r.out)
	wholes(r, args)
	for i := from; i < len(r.out); i++ {
		r.out[i].All = true
	}
}

func wholes(r *reader, args []token) {
	for _, t := range operandsOf(args) {
		r.touch(t, true)
	}
}

func operands(r *reader, args []token) {
	for _, t := range operandsOf(args) {
		r.touch(t, false)
	}
}

// modes takes a mode or an owner first.
func modes(r *reader, args []token) {
	for i, t := range operandsOf(args) {
		if i > 0 {
			r.touch(t, true)
		}
	}
}

// target splits the operands of a copying program, whose last one, or the one
// of -t, is where it goes.
func target(args []token) (from []token, to *token) {
	for i := 0; i < len(args); i++ {
		t := args[i]
		switch {
		case t.text == "-t" || t.text == "--target-directory":
			if i+1 < len(args) {
				to = &args[i+1]
				i++
			}
		case strings.HasPrefix(t.text, "--target-directory="):
			t.text = strings.TrimPrefix(t.text, "--target-directory=")
			to = &t
		case strings.HasPrefix(t.text, "-") && t.text != "-":
		default:
			from = append(from, t)
		}
	}
	if to == nil && len(from) > 1 {
		to, from = &from[len(from)-1], from[:len(from)-1]
	}
	return from, to
}

// into notes that the sources arrive at a place, or in it if it is a
// directory, which the text does not tell.
func (r *reader) into(from []token, to *token) {
	if to == nil {
		return
	}
	r.touch(*to, false)
	for _, f := range from {
		t := *to
		t.text = strings.TrimRight(t.text, "/") + "/" + path.Base(slashed(f.text))
		if f.text != "" && !f.dynamic {
			r.touch(t, true)
		}
	}
}

func copying(r *reader, args []token) { r.into(target(args)) }

func movement(r *reader, args []token) {
	from, to := target(args)
	removal(r, from)
	r.into(from, to)
}

// rsync with --delete makes the target what the source is; with
// --remove-source-files it empties the source.
func rsync(r *reader, args []token) {
	from, to := target(args)
	for _, t := range args {
		if strings.HasPrefix(t.text, "--delete") && to != nil {
			r.touch(*to, true)
		}
		if t.text == "--remove-source-files" {
			for _, f := range from {
				r.touch(f, true)
			}
		}
	}
	r.into(from, to)
}

// assigned is for operands of the form name=value.
func assigned(name string) program {
	return func(r *reader, args []token) {
		for _, t := range args {
			if v, ok := strings.CutPrefix(t.text, name+"="); ok {
				t.text = v
				r.touch(t, false)
			}
		}
	}
}

// outputFlag is for programs that write to what a flag names.
func outputFlag(short, long string) program {
	return func(r *reader, args []token) {
		for i, t := range args {
			value := t
			switch {
			case (t.text == short || t.text == long) && i+1 < len(args):
				value = args[i+1]
			case strings.HasPrefix(t.text, long+"="):
				value.text = strings.TrimPrefix(t.text, long+"=")
			case strings.HasPrefix(t.text, short) && len(t.text) > 2:
				value.text = t.text[2:]
			default:
				continue
			}
			r.touch(value, false)
		}
	}
}

func firstOperand(r *reader, args []token) {
	if o := operandsOf(args); len(o) > 0 {
		r.touch(o[0], false)
	}
}

func secondOperand(r *reader, args []token) {
	if o := operandsOf(args); len(o) > 1 {
		r.touch(o[1], false)
	}
}

// inPlace is for stream editors, which write only when told -i.
func inPlace(r *reader, args []token) {
	for _, t := range args {
		if strings.HasPrefix(t.text, "--in-place") || strings.HasPrefix(t.text, "-") && !strings.HasPrefix(t.text, "--") && strings.Contains(t.text, "i") {
			operands(r, args)
			return
		}
	}
	scripted(r, args, `w `)
}

// awk writes to what its program redirects to.
func awk(r *reader, args []token) { scripted(r, args, ">") }

// scripted notes the places that a script names behind a mark.
func scripted(r *reader, args []token, mark string) {
	for _, t := range args {
		if strings.Contains(t.text, mark) {
			for _, name := range naming.FindAllString(t.text, -1) {
				r.note(token{text: name}, false, false)
			}
		}
	}
}

// found returns the words for what find finds: its places, and what its
// patterns name unless that is left out. rest begins behind the places.
func found(args []token) (where, rest []token) {
	places := 0
	for places < len(args) && !strings.HasPrefix(args[places].text, "-") && args[places].text != "(" && args[places].text != "!" {
		places++
	}
	where, rest = args[:places:places], args[places:]
	for i := 0; i+1 < len(rest); i++ {
		switch rest[i].text {
		case "-path", "-wholename", "-ipath", "-name", "-iname":
			if i == 0 || rest[i-1].text != "-not" && rest[i-1].text != "!" {
				where = append(where, rest[i+1])
			}
		}
	}
	return where, rest
}

// find changes what it finds with -delete and with commands.
func find(r *reader, args []token) {
	where, rest := found(args)
	for i := 0; i < len(rest); i++ {
		switch rest[i].text {
		case "-delete":
			wholes(r, where)
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			inner := simple{}
			for i++; i < len(rest) && rest[i].text != ";" && rest[i].text != "+"; i++ {
				if rest[i].text == "{}" {
					inner.args = append(inner.args, where...)
					continue
				}
				inner.args = append(inner.args, rest[i])
			}
			r.some(inner, 1)
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i++; i < len(rest) {
				r.touch(rest[i], false)
			}
		}
	}
}

// some runs a command on a part of what it names.
func (r *reader) some(c simple, depth int) {
	from := len(r.out)
	r.run(c, depth)
	for i := from; i < len(r.out); i++ {
		r.out[i].All = false
	}
}

// tar reads what it packs; it writes the archive, and with a flag deletes.
func tar(r *reader, args []token) {
	extract, removes, archive := false, false, false
	for i, t := range args {
		short := i == 0 && !strings.HasPrefix(t.text, "--") || strings.HasPrefix(t.text, "-") && !strings.HasPrefix(t.text, "--")
		extract = extract || short && strings.Contains(t.text, "x") || t.text == "--extract" || t.text == "--get"
	}
	for i, t := range args {
		flags := strings.TrimLeft(t.text, "-")
		long := strings.HasPrefix(t.text, "--")
		if i == 0 && !long || strings.HasPrefix(t.text, "-") && !long {
			if strings.Contains(flags, "f") && i+1 < len(args) && !archive {
				archive = true
				if strings.ContainsAny(flags, "cru") {
					r.touch(args[i+1], false)
				}
			}
			if strings.HasSuffix(flags, "C") && i+1 < len(args) && extract {
				r.touch(args[i+1], false)
			}
		}
		removes = removes || t.text == "--remove-files"
	}
	if removes {
		wholes(r, args)
	}
	if extract { // the members that are named are overwritten
		operands(r, args[min(1, len(args)):])
	}
}

// git changes the files that these subcommands name.
func git(r *reader, args []token) {
	dir := r.dir
	defer func() { r.dir = dir }()
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		flag := args[0].text
		args = args[1:]
		if (flag == "-C" || flag == "-c" || flag == "--git-dir" || flag == "--work-tree") && len(args) > 0 {
			if flag == "-C" {
				r.move(args[:1])
			}
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return
	}
	rest := args[1:]
	has := func(names ...string) bool {
		for _, t := range rest {
			for _, n := range names {
				if t.text == n || len(n) == 2 && strings.HasPrefix(t.text, "-") && !strings.HasPrefix(t.text, "--") && strings.Contains(t.text, n[1:]) {
					return true
				}
			}
		}
		return false
	}
	switch args[0].text {
	case "rm":
		if !has("--cached", "-n", "--dry-run") {
			wholes(r, rest)
		}
	case "mv":
		movement(r, rest)
	case "checkout", "restore":
		if !has("--staged") || has("--worktree") {
			wholes(r, rest)
		}
	case "clean":
		if has("-n", "--dry-run") || !has("-f", "--force") {
			return
		}
		if o := operandsOf(rest); len(o) > 0 {
			wholes(r, rest)
		} else if has("-d") && has("-x", "-X") {
			// It empties the tree of what is not in it, which a ledger rarely is.
			r.touch(token{text: Ledger}, true)
		}
	case "stash", "reset":
		if i := indexOf(rest, "--"); i >= 0 {
			wholes(r, rest[i+1:])
		}
	}
}

func indexOf(args []token, text string) int {
	for i, t := range args {
		if t.text == text {
			return i
		}
	}
	return -1
}
