package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"handoffd/engine/fault"
	"handoffd/engine/seal"
)

// publishedSealed is a checkpoint as the published engine writes one, of a job
// that was killed after its second step (github.com/Alot1z/agent-handoff,
// tools/runtime-engine.mjs 1.1.0), with this seal.
func publishedSealed(session string) string {
	body := `{"seq":2,"steps":[{"seq":1,"ts":"2026-01-02T03:04:05.006Z","op":"work-log-append"},{"seq":2,"ts":"2026-01-02T03:04:05.007Z","op":"work-log-append"}],` +
		`"steps_total":3,"session":"` + session + `","updated_at":"2026-01-02T03:04:05.007Z"}`
	return `{
  "seq": 2,
  "steps": [
    {
      "seq": 1,
      "ts": "2026-01-02T03:04:05.006Z",
      "op": "work-log-append"
    },
    {
      "seq": 2,
      "ts": "2026-01-02T03:04:05.007Z",
      "op": "work-log-append"
    }
  ],
  "steps_total": 3,
  "session": "` + session + `",
  "updated_at": "2026-01-02T03:04:05.007Z",
  "checkpoint_sha256": "` + seal.Sum([]byte(body)) + `"
}
`
}

func TestShape(t *testing.T) {
	s := &state{seq: 2, total: 3, session: "s", updated: "2026-01-02T03:04:05.007Z"}
	s.steps.add(step{1, "2026-01-02T03:04:05.006Z"})
	s.steps.add(step{2, "2026-01-02T03:04:05.007Z"})
	if got := string(s.encode()); got != publishedSealed("s") {
		t.Errorf("%s\nwant %s", got, publishedSealed("s"))
	}
	s.completed, s.seq = true, 3
	s.steps.add(step{3, "x"})
	if got := string(s.encode()); !strings.HasSuffix(got, "\",\n  \"completed\": true\n}\n") {
		t.Error(got)
	}
	empty := string((&state{total: 1, session: "s"}).encode())
	if !strings.HasPrefix(empty, "{\n  \"seq\": 0,\n  \"steps\": [],\n  \"steps_total\": 1,") {
		t.Error(empty)
	}
}

// What is written is what JSON.stringify writes of it, and is sealed over that.
func TestJavaScriptAgrees(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: JSON.stringify itself is not asked")
	}
	path := filepath.Join(t.TempDir(), "c.json")
	script := `const fs=require('fs'),t=fs.readFileSync(process.argv[1],'utf8'),o=JSON.parse(t),s=o.checkpoint_sha256;` +
		`if(JSON.stringify(o,null,2)+'\n'!==t)throw 'not as JavaScript writes it';delete o.checkpoint_sha256;` +
		`if(require('crypto').createHash('sha256').update(JSON.stringify(o)).digest('hex')!==s)throw 'seal'`
	for _, n := range []int{0, 1, 3, Kept, Kept + 1, Kept + 700} {
		s := &state{total: int64(n) + 1, session: "a \"b\" \u2028\x01\U0001f600</x>", updated: "u"}
		for i := range n {
			s.seq = int64(i) + 1
			s.steps.add(step{s.seq, fmt.Sprintf("t%d", i)})
		}
		if n == 3 {
			s.completed, s.total = true, 3
		}
		if err := os.WriteFile(path, s.encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(node, "-e", script, path).CombinedOutput(); err != nil {
			t.Errorf("%d steps: %v\n%s", n, err, out)
		}
		if got, err := read(path, s.session); err != nil || string(got.encode()) != string(s.encode()) {
			t.Errorf("%d steps do not come back: %v", n, err)
		}
	}
}

func resealed(body string) string {
	return strings.TrimSuffix(body, "}") + `,"checkpoint_sha256":"` + seal.Sum([]byte(body)) + `"}`
}

func TestParse(t *testing.T) {
	one := `{"seq":1,"ts":"t","op":"work-log-append"}`
	for text, want := range map[string]string{
		publishedSealed("s"): "",
		strings.ReplaceAll(publishedSealed("s"), "\n", "\r\n"):             "",
		resealed(`{"seq":0,"steps":[],"session":"s"}`):                     "",
		resealed(`{"seq":1,"steps":[` + one + `],"session":"s","note":1}`): "",
		"":                         "not valid JSON",
		"null":                     "not valid JSON",
		"[]":                       "not valid JSON",
		`{"seq":2`:                 "not valid JSON",
		`{"seq":1,"seq":1}`:        "not valid JSON",
		"\x00\x00\x00":             "not valid JSON",
		publishedSealed("s") + "x": "not valid JSON",
		`{"seq":2,"session":"s"}`:  "integrity seal mismatch",
		strings.Replace(publishedSealed("s"), `"seq": 2,`, `"seq": 3,`, 1): "integrity seal mismatch",
		strings.Replace(publishedSealed("s"), "05.006", "05.005", 1):       "integrity seal mismatch",
		publishedSealed("other"):                                                                                    `of session "other"`,
		resealed(`{"seq":1,"steps":[],"session":"s"}`):                                                              "not as many",
		resealed(`{"seq":-1,"steps":[],"session":"s"}`):                                                             "numbers",
		resealed(`{"seq":1,"steps":[` + one + `],"steps_total":0.5}`):                                               "no checkpoint",
		resealed(`{"seq":"1","steps":[],"session":"s"}`):                                                            "no checkpoint",
		resealed(`{"seq":1,"steps":[` + one + `],"steps_total":-2}`):                                                `of session ""`,
		resealed(`{"seq":2,"steps":[` + one + `,` + one + `],"session":"s"}`):                                       "out of order",
		resealed(`{"seq":3,"steps":[` + one + `],"steps_omitted":2,"steps_total":2,"session":"s"}`):                 "numbers",
		resealed(`{"seq":1,"steps":[` + one + `],"steps_total":2,"session":"s","updated_at":"u","completed":true}`): "completed",
	} {
		_, err := parse([]byte(text), "PATH", "s")
		switch {
		case want == "" && err != nil:
			t.Errorf("%.90s: %v", text, err)
		case want != "" && (!fault.Is(err, fault.CorruptCheckpoint) || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), ": PATH")):
			t.Errorf("%.90s: %v, want %s", text, err, want)
		}
	}
}

// Any byte that is changed is found, but for white space, which says nothing.
func TestTampering(t *testing.T) {
	whole := publishedSealed("s")
	for i := range whole {
		for _, c := range []byte{'0', '1', '"', 'x', 0} {
			changed := whole[:i] + string(c) + whole[i+1:]
			if changed == whole {
				continue
			}
			if _, err := parse([]byte(changed), "p", "s"); !fault.Is(err, fault.CorruptCheckpoint) {
				t.Errorf("byte %d as %q: %v", i, c, err)
			}
		}
		if _, err := parse([]byte(whole[:i]), "p", "s"); i < len(whole)-2 && !fault.Is(err, fault.CorruptCheckpoint) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(publishedSealed("s")))
	f.Add([]byte(resealed(`{"seq":0,"steps":[],"session":"s"}`)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := parse(raw, "p", "s")
		if err != nil {
			if s != nil || !fault.Is(err, fault.CorruptCheckpoint) {
				t.Fatal(s, err)
			}
			return
		}
		again, err := parse(s.encode(), "p", "s")
		if err != nil || again.seq != s.seq || again.total != s.total || again.completed != s.completed || len(again.steps.sizes) != min(len(s.steps.sizes), Kept) {
			t.Fatalf("%+v became %+v, %v", s, again, err)
		}
	})
}

func FuzzLogLine(f *testing.F) {
	f.Add([]byte("step 12 at 2026-01-02T03:04:05.006Z\n"))
	f.Add([]byte("step 1 at  at \n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, ok := parseLine(line)
		if ok && string(logLine(s)) != string(line) {
			t.Fatalf("%q is %+v", line, s)
		}
	})
}

func TestFileNames(t *testing.T) {
	for session, plain := range map[string]bool{
		"s": true, "job-1_a.b": true, "a..b": true, "Job": true, "0": true,
		"": false, ".": false, "..": false, "...": false, ".hidden": false, "a.": false, "a/b": false, `a\b`: false, "../x": false, "a b": false,
		"a\x00": false, "con": false, "NUL.txt": false, "com1": false, "é": false, "a~b": false, strings.Repeat("x", 300): false, "-rf": true,
	} {
		name := fileNameOn("linux", session)
		if (name == session) != plain {
			t.Errorf("%q is %q", session, name)
		}
		if strings.ContainsAny(name, "/\\\x00") || name == "" || name == "." || name == ".." || len(name) > 200 {
			t.Errorf("%q is %q", session, name)
		}
	}
	if fileNameOn("darwin", "Job") == "Job" || strings.EqualFold(fileNameOn("darwin", "Job"), fileNameOn("darwin", "job")) {
		t.Error("names that differ in case only share a file where case does not count")
	}
}

// No two sessions share a file, whatever they are called.
func TestFileNamesAreApart(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`[aA_./~ -]{0,4}`), rapid.String(), rapid.StringMatching(`[ab/]{95,98}`))
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		for _, goos := range []string{"linux", "darwin"} {
			x, y := fileNameOn(goos, a), fileNameOn(goos, b)
			if goos == "darwin" {
				x, y = strings.ToLower(x), strings.ToLower(y)
			}
			if (x == y) != (a == b) {
				t.Fatalf("%q and %q are %q and %q", a, b, x, y)
			}
			if again := fileNameOn(goos, fileNameOn(goos, a)); fileNameOn(goos, a) != a && again == fileNameOn(goos, a) {
				t.Fatalf("the session %q has the file of %q", again, a)
			}
		}
	})
}

// A step costs the same however many went before: the file has a bound.
func TestSizeIsBounded(t *testing.T) {
	s := &state{total: 1 << 40, session: "s", updated: stamp(time.Unix(0, 0))}
	var at int
	for i := range int64(6 * Kept) {
		s.seq = i + 1
		s.steps.add(step{s.seq, stamp(time.Unix(i, 0))})
		if i == Kept {
			at = len(s.encode())
		}
	}
	if n := len(s.encode()); n > at+2*Kept || cap(s.steps.pretty) > 8*at {
		t.Errorf("%d bytes, %d after the first %d steps; %d held", n, at, Kept, cap(s.steps.pretty))
	}
	if s.steps.omitted != 5*Kept {
		t.Errorf("%d omitted", s.steps.omitted)
	}
}
