package mutation

import (
	"strings"
	"testing"
)

// changes reports whether a command changes a protected place of /p, run
// there.
func changes(command string) string {
	for _, t := range Touches(command, "/p") {
		if t.Hits("/p") {
			return t.Word
		}
	}
	return ""
}

func TestShellChanges(t *testing.T) {
	for command, word := range map[string]string{
		// Behaviour 51.
		"rm -rf .adlc":             ".adlc",
		"rm -rf .adlc/":            ".adlc",
		"rm -rf ./.adlc":           "./.adlc",
		"rm -rf /p/.adlc/handoffs": "/p/.adlc/handoffs",
		"mv .adlc/handoffs /tmp":   ".adlc/handoffs",
		// The same, otherwise.
		"mv .adlc /tmp":                                                    ".adlc",
		"rm -rf .ADLC/Handoffs":                                            ".ADLC/Handoffs",
		"rm .adlc/.deny-store":                                             ".adlc/.deny-store",
		"rm '.adlc/handoffs/denies/a.json'":                                ".adlc/handoffs/denies/a.json",
		`rm ".adlc"/handoffs/denies/a.json`:                                ".adlc/handoffs/denies/a.json",
		`rm \.adlc/handoffs -r`:                                            ".adlc/handoffs",
		"rm -rf src/../.adlc/handoffs":                                     "src/../.adlc/handoffs",
		"cd .adlc && rm -rf handoffs":                                      "handoffs",
		"(cd .adlc; rm -rf handoffs)":                                      "handoffs",
		"cd .adlc/handoffs\nrm -f denies/a.json":                           "denies/a.json",
		"true; sudo -u root rm -rf .adlc":                                  ".adlc",
		"FOO=1 env -i BAR=2 rm -rf .adlc":                                  ".adlc",
		"timeout -s KILL 5 rm -rf .adlc":                                   ".adlc",
		"if true; then rm -rf .adlc; fi":                                   ".adlc",
		"bash -c 'rm -rf .adlc'":                                           ".adlc",
		"bash -lc \"cd .adlc && rm -rf handoffs\"":                         "handoffs",
		"sh <<'EOF'\nrm -rf .adlc\nEOF":                                    ".adlc",
		"echo 'rm -rf .adlc' | sh":                                         ".adlc",
		"eval rm -rf .adlc":                                                ".adlc",
		"echo $(rm -rf .adlc)":                                             ".adlc",
		"echo `rm -rf .adlc`":                                              ".adlc",
		"ls \"$(mv .adlc /tmp)\"":                                          ".adlc",
		"find .adlc -name '*.json' -delete":                                ".adlc",
		"find .adlc/handoffs -type f -exec rm {} +":                        ".adlc/handoffs",
		"find .adlc | xargs rm":                                            ".adlc",
		"ls .adlc/handoffs/denies/* | xargs -n 1 rm -f":                    ".adlc/handoffs/denies/*",
		"echo x > .adlc/.deny-store":                                       ".adlc/.deny-store",
		"echo x >>.adlc/handoffs/denies/a.json":                            ".adlc/handoffs/denies/a.json",
		": 2>.adlc/handoffs/a.lock":                                        ".adlc/handoffs/a.lock",
		"echo '{}' | tee .adlc/handoffs/denies/a.json":                     ".adlc/handoffs/denies/a.json",
		"cp x .adlc/handoffs/denies/a.json":                                ".adlc/handoffs/denies/a.json",
		"cp -r other/handoffs .adlc/":                                      ".adlc/handoffs",
		"cp -t .adlc/handoffs x":                                           ".adlc/handoffs",
		"mv x/.deny-store .adlc":                                           ".adlc/.deny-store",
		"rsync -a --delete x/ .adlc":                                       ".adlc",
		"sed -i s/open/consumed/ .adlc/handoffs/denies/a.json":             ".adlc/handoffs/denies/a.json",
		"sed --in-place=.bak s/a/b/ .adlc/handoffs/denies/a":               ".adlc/handoffs/denies/a",
		"dd if=/dev/null of=.adlc/.deny-store":                             ".adlc/.deny-store",
		"truncate -s 0 .adlc/.deny-store":                                  ".adlc/.deny-store",
		"chmod 000 .adlc":                                                  ".adlc",
		"ln -sf /dev/null .adlc/.deny-store":                               ".adlc/.deny-store",
		"rm -rf .adl*":                                                     ".adl*",
		"rm -rf .adlc/*":                                                   ".adlc/*",
		"rm -rf .adlc/h?ndoffs":                                            ".adlc/h?ndoffs",
		"rm -rf .adlc/{handoffs,tickets}":                                  ".adlc/{handoffs,tickets}",
		"rm -rf $PWD/.adlc":                                                ".adlc",
		"rm -rf ~/p/.adlc/handoffs":                                        ".adlc/handoffs",
		"rm -rf .":                                                         ".",
		"rm -rf /p":                                                        "/p",
		"git rm -r .adlc":                                                  ".adlc",
		"git -C .adlc clean -fdx handoffs":                                 "handoffs",
		"git checkout -- .adlc/handoffs":                                   ".adlc/handoffs",
		"git clean -fdx":                                                   ".adlc",
		`python3 -c "import shutil; shutil.rmtree('.adlc')"`:               ".adlc",
		`node -e "fs.writeFileSync('.adlc/.deny-store','')"`:               ".adlc/.deny-store",
		"python3 - <<'EOF'\nopen('.adlc/handoffs/denies/a.json','w')\nEOF": ".adlc/handoffs/denies/a.json",
		"sqlite3 .adlc/handoffs/x.db vacuum":                               ".adlc/handoffs/x.db",
		"tool --out=.adlc/.deny-store":                                     ".adlc/.deny-store",
		"tar xf a.tar .adlc/handoffs":                                      ".adlc/handoffs",
		"tar -czf x.tgz .adlc --remove-files":                              ".adlc",
		"find . -path './.adlc/*' -delete":                                 "./.adlc/*",
		"find . -name .adlc -exec rm -rf {} +":                             ".adlc",
		"trap 'rm -rf .adlc' EXIT":                                         ".adlc",
		"watch rm -rf .adlc":                                               ".adlc",
		"su root -c 'rm -rf .adlc'":                                        ".adlc",
		"tar -C .adlc/handoffs -xf a.tar":                                  ".adlc/handoffs",
		"unzip a.zip -d .adlc/handoffs":                                    ".adlc/handoffs",
		"cd .. && rm -rf p":                                                "p",
		"mv /p /q":                                                         "/p",
		"rm -rf .[a-z]*":                                                   ".[a-z]*",
		"cat <<EOF > .adlc/handoffs/denies/a.json\n{}\nEOF":                ".adlc/handoffs/denies/a.json",
	} {
		if got := changes(command); got != word {
			t.Errorf("%q changes %q, want %q", command, got, word)
		}
	}
}

// TestShellReads: what only reads, or changes something else, is no mutation
// (github.com/voodootikigod/adlc issue 970).
func TestShellReads(t *testing.T) {
	for _, command := range []string{
		"ls .adlc", "ls -la .adlc/handoffs/denies", "cat .adlc/tickets.json", "cat .adlc/.deny-store", "head -n1 .adlc/handoffs/denies/*.json",
		"git add .adlc/tickets", `git commit -m "touch .adlc docs"`, `git commit -m "rm -rf .adlc"`, "git diff .adlc", "git log -- .adlc", "git rm --cached -r .adlc",
		"grep -r foo .", "grep -rn rm .adlc", "rg open .adlc | wc -l", "jq . .adlc/handoffs/denies/a.json", "find .adlc -name '*.json'", "find . -name '*.o' -delete",
		"tree .adlc 2>/dev/null", "stat .adlc/handoffs", "test -d .adlc && echo yes", "[ -f .adlc/.deny-store ]", "[[ -d .adlc ]] || true",
		"cat .adlc/.deny-store > /tmp/copy", "cp .adlc/handoffs/denies/a.json /tmp/", "cp -r .adlc /tmp/adlc", "tar czf /tmp/a.tgz .adlc", "diff -r .adlc /tmp/adlc",
		"sed -n 1,5p .adlc/handoffs/denies/a.json", "awk '{print $1}' .adlc/manifest.jsonl", "echo 'do not rm -rf .adlc' # rm -rf .adlc", "echo rm -rf .adlc",
		"touch .adlc/tickets.json", "echo x > .adlc/notes.md", "mkdir -p .adlc/tickets", "rm .adlc/tickets.json", "rm -rf .adlc/handoffs-other", "mv .adlc/a .adlc/b",
		"cat ./src/a", "git -C . status", "rm -rf build/out", "rm -rf /tmp/.adlc/handoffs", "adlc ticket list --dir .adlc", "handoffctl context gate --dir .adlc --tool shell",
		`python3 -c "print(open('.adlc/tickets.json').read())"`, "python3 tool.py --dir .adlc", "cat <<'EOF' > notes.md\nrm -rf .adlc\nEOF", "xargs -n1 echo < .adlc/.deny-store",
		"for f in .adlc/handoffs/denies/*; do cat \"$f\"; done", "sort .adlc/manifest.jsonl -o /tmp/x", "git stash", "git clean -nfdx", "rm -rf *", "rm -rf node_modules && ls .adlc",
		"cd .adlc && ls handoffs", "find . -name '*.tmp' -not -path './.adlc/*' -delete", "find . -name '*.go' -exec grep -l adlc {} +", "find . ! -path './.adlc/*' -name x -delete",
		"find . -name '*.o' -exec rm {} +", "find . -name '*.o' | xargs rm -f", "find . -not -path './.adlc/*' -name x | xargs rm", "ls | xargs rm -rf", "docker run -v $PWD/.adlc:/x image", "npx adlc handoff write --dir .adlc --write", "cp -r .adlc/handoffs backup", "trap - EXIT", "tar -C .adlc -cf /tmp/x.tar handoffs",
		"make clean", "rm -rf ./*", "code .adlc", "gh pr create --title 'rm -rf .adlc'", "rm -rf ../other/.adlc", "(cd .adlc; ls); rm -rf handoffs", "sha256sum .adlc/handoffs/content/a.md", "", "   ", "'", "$(", "`", "<<", ">", "a <<EOF", "((((",
	} {
		if got := changes(command); got != "" {
			t.Errorf("%q changes %q", command, got)
		}
	}
}

func TestPlace(t *testing.T) {
	for rel, want := range map[string]Cover{
		// Behaviours 49, 50, 54.
		".adlc/handoffs/denies/x.json": Within, ".adlc/handoffs/content/x.md": Within, ".adlc/handoffs/x.lock": Within, ".adlc/.deny-store": Within,
		".adlc/handoffs/x.resume-auth.json": Within, ".adlc/handoffs/x.bypass-grant.json": Within, ".adlc/handoffs/x.model-ok": Within,
		".adlc/handoffs/x/../denies/a.json": Within, `.adlc\handoffs\denies\a.json`: Within, ".Adlc/HANDOFFS/denies/a.json": Within,
		".adlc/tickets.json": Apart, ".adlc/handoffs-other/x": Apart, ".adlc/.deny-store.bak": Apart,
		".adlc": Above, ".adlc/": Above, "./.adlc": Above, ".": Apart, "src": Apart, "": Apart,
	} {
		if got := Place(rel); got != want {
			t.Errorf("%q stands %d, want %d", rel, got, want)
		}
	}
}

func TestRecovery(t *testing.T) {
	own := func(p string) bool { return p == "/opt/a/handoffctl" || p == "/opt/my $x/handoffctl" }
	const ctl = "/opt/a/handoffctl context "
	for command, want := range map[string]bool{
		// Behaviours 61 to 63.
		"pwd": true, "pwd ": false, " pwd": false, "pwd; ls": false,
		ctl + "bypass --session s1 --write":                                                                     true,
		ctl + "repair --session s1 --ticket T --content-hash h --write":                                         true,
		ctl + "write --session s1 --ticket T --host local --json":                                               true,
		ctl + "resume --session s1 --deny-session other --write":                                                true,
		ctl + "unlock --session s1 --pid 4 --started-at 2026-01-02T03:04:05.678Z --host h --nonce 0123 --write": true,
		ctl + "bypass --write":                                        false,
		ctl + "bypass --session s2 --write":                           false,
		ctl + "bypass --session $S --write":                           false,
		ctl + "continue --deny-session s1 --write":                    false,
		ctl + "supervise --session s1":                                false,
		ctl + "bypass --session s1 --unbound-reason x --write":        false,
		ctl + "bypass --session s1 --dir .adlc --write":               false,
		ctl + "bypass --session s1; ls":                               false,
		ctl + "bypass --session s1 && ls":                             false,
		ctl + "bypass --session s1 `ls`":                              false,
		ctl + "bypass --session s1\n":                                 false,
		ctl + "bypass  --session s1":                                  false,
		ctl + "bypass --session s1 --write --write":                   false,
		ctl + "bypass --session s1 --session s1":                      false,
		ctl + "bypass --session --write":                              false,
		ctl + "bypass --session":                                      false,
		ctl + "bypass --session=s1":                                   false,
		ctl + "bypass --session s1 --nope x":                          false,
		"handoffctl context bypass --session s1 --write":              false,
		"/opt/b/handoffctl context bypass --session s1 --write":       false,
		"'/opt/a''/handoffctl' context bypass --session s1 --write":   false,
		"'/opt/my $x/handoffctl' context bypass --session s1 --write": true,
		"'/opt/a/handoffctl' context bypass --session s1":             true,
		"/opt/my $x/handoffctl context bypass --session s1":           false,
		"/opt/a/handoffctl bypass --session s1":                       false,
		"/opt/a/handoffctl":                                           false,
	} {
		if got := Recovery(command, "s1", own); got != want {
			t.Errorf("%q: %v, want %v", command, got, want)
		}
	}
	if Recovery(ctl+"bypass --session  --write", "", own) || Recovery(ctl+"bypass --session --x", "--x", own) {
		t.Error("a session that is nobody's recovers")
	}
}

func TestRecoveryCommand(t *testing.T) {
	for _, c := range []struct{ program, session, want string }{
		{"/bin/handoffctl", "s1", "/bin/handoffctl context bypass --session s1 --write"},
		{"/my bin/handoffctl", "s1", "'/my bin/handoffctl' context bypass --session s1 --write"},
		{"/bin/handoffctl", "x; env #", ""}, // behaviour 64
		{"/it's/handoffctl", "s1", ""},
		{"/a\nb/handoffctl", "s1", ""},
		{"", "s1", ""},
		{"/bin/handoffctl", "--write", ""},
	} {
		got := RecoveryCommand(c.program, "bypass", "session", c.session)
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if got != "" && !Recovery(got, c.session, func(p string) bool { return p == c.program }) {
			t.Errorf("%q is no recovery", got)
		}
	}
	for command, want := range map[string]bool{
		"adlc handoff repair --write": true, "node handoff.mjs bypass": true, "handoffctl context continue --deny-session x": true,
		"handoffctl --json context write": true, "handoffctl context gate": false, "handoffctl list": false, "grep handoff writer": false,
	} {
		if MutatingCLI(command) != want {
			t.Errorf("behaviour 47: %q", command)
		}
	}
}

// FuzzTouches: no text breaks the reader, and a comment changes nothing.
func FuzzTouches(f *testing.F) {
	for _, s := range []string{"rm -rf .adlc", "a $(b `c` ${d}) | e", "cat <<E\nx\nE", "'\"\\", "find x -exec sh -c 'rm {}' ;", "$(((((((((", "{a,{b,c},d}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		for _, touch := range Touches(command, "/p") {
			touch.Hits("/p")
		}
		if !strings.ContainsAny(command, "\n\r") && len(Touches("# "+command, "/p")) > 0 {
			t.Fatalf("the comment %q changes something", command)
		}
		Recovery(command, "s1", func(string) bool { return true })
	})
}
