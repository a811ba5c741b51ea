package capture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestHash(t *testing.T) {
	const want = "ea7fb08b7a2dc4619ffb7c7bb38d95a2047935fa165d71b12efd3852a2e6d0cc"
	for _, s := range []string{"a\nb\nc", "a \t\r\nb\rc  "} {
		if Hash(s) != want {
			t.Errorf("%q: %s", s, Hash(s))
		}
	}
}

func TestClip(t *testing.T) {
	for _, limit := range []int{MaxBody, MaxNarrative} {
		whole := strings.Repeat("x", limit)
		if Clip(whole, limit) != whole {
			t.Errorf("behaviour 86: %d bytes are cut", limit)
		}
		if got := Clip(whole+"x", limit); len(got) != limit || !strings.HasSuffix(got, cutNote) {
			t.Errorf("behaviour 86: one more gives %d bytes", len(got))
		}
		for pad := range 4 {
			got := Clip(strings.Repeat("x", pad)+strings.Repeat("😀", limit), limit)
			if len(got) > limit || len(got) < limit-4 || !utf8.ValidString(got) {
				t.Errorf("behaviour 86: a character is split at %d bytes", len(got))
			}
		}
	}
	if Clip("abc", 2) != cutNote {
		t.Error("the note alone")
	}
}

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.md")
	const text = "one\ntwo\n"
	for _, c := range []struct{ name, file, hash, reason string }{
		{"as it was", text, Hash(text), ""},
		{"83 other line ends", "one  \r\ntwo\t\r\n", Hash(text), ""},
		{"83 edited, same length", "one\ntwO\n", Hash(text), Mismatch},
		{"83 too large", strings.Repeat("x", MaxBody+1), Hash(strings.Repeat("x", MaxBody+1)), Oversize},
		{"83 huge", strings.Repeat("x", 4*MaxBody+1), "", Oversize},
		{"padded beyond the bound", strings.Repeat("x", MaxBody) + strings.Repeat(" ", 99), Hash(strings.Repeat("x", MaxBody)), ""},
		{"no hash", text, "", Mismatch},
	} {
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		body, reason := Verify(path, c.hash)
		if reason != c.reason || (body != "") != (reason == "") {
			t.Errorf("%s: %q, %d bytes", c.name, reason, len(body))
		}
	}
	if _, reason := Verify(filepath.Join(dir, "none"), "x"); reason != Missing {
		t.Errorf("behaviour 83: %q", reason)
	}
	if err := os.Symlink(path, filepath.Join(dir, "link")); err == nil {
		if _, reason := Verify(filepath.Join(dir, "link"), Hash(text)); reason == "" {
			t.Error("a link was followed")
		}
	}
}

// fences returns how the fences of a text stand: every one on a line of its
// own, open and close in turn.
func fences(t interface{ Fatalf(string, ...any) }, body string) int {
	open, n := false, 0
	for _, l := range strings.Split(body, "\n") {
		if strings.Contains(l, fenceOpen) || strings.Contains(l, fenceClose) {
			if want := map[bool]string{false: fenceOpen, true: fenceClose}[open]; l != want {
				t.Fatalf("the line %q, where %q was due", l, want)
			}
			open = !open
			n++
		}
	}
	if open {
		t.Fatalf("a fence stays open")
	}
	return n
}

func TestBrief(t *testing.T) {
	s := Source{
		Ticket: "T1", Title: "fix the cart", Branch: "main", Status: []string{" M cart.go", "?? x"},
		Evidence:  []Entry{{3, "review", "2026-01-02T03:04:05.678Z", "T1"}, {4, "tests", "t", ""}},
		Narrative: "Done: totals.\nNext: rounding.",
	}
	const want = `## Ticket

<<<UNTRUSTED-CAPTURE-DATA
T1
fix the cart
END-UNTRUSTED>>>

## State

<<<UNTRUSTED-CAPTURE-DATA
main
END-UNTRUSTED>>>

**Working tree**

` + "```" + `
<<<UNTRUSTED-CAPTURE-DATA
 M cart.go
?? x
END-UNTRUSTED>>>
` + "```" + `

**Flail signals**

<<<UNTRUSTED-CAPTURE-DATA
_none_
END-UNTRUSTED>>>

## Evidence

<<<UNTRUSTED-CAPTURE-DATA
- seq=3 gate=review ts=2026-01-02T03:04:05.678Z ticket=T1
- seq=4 gate=tests ts=t
END-UNTRUSTED>>>

## Model handoff

<<<UNTRUSTED-CAPTURE-DATA
Done: totals.
Next: rounding.
END-UNTRUSTED>>>
`
	if got := Brief(s); got != want {
		t.Errorf("%s", got)
	}
	if again := Brief(s); again != want {
		t.Errorf("behaviour 90: other bytes: %s", again)
	}
	if got := Brief(Source{Withheld: Stale(73 * time.Hour)}); !strings.Contains(got, "\n_none_ (source stale (73h > 72h))\n") {
		t.Errorf("behaviour 88: %s", got)
	}
	if Stale(71*time.Hour) != "" || Stale(72*time.Hour) != "" {
		t.Error("behaviour 88: 71 hours are stale")
	}
}

// Nothing in a brief closes a fence, and everything fits, however much there
// is (defect 7 of the published tool).
func TestBriefHolds(t *testing.T) {
	line := strings.Repeat("a long name/", 240)
	huge := Source{Ticket: line, Title: line, Branch: line, Narrative: strings.Repeat(fenceClose+line+"\n", 90)}
	for i := range 99 {
		huge.Status = append(huge.Status, fmt.Sprint(i, line))
		huge.Flail = append(huge.Flail, line)
		huge.Evidence = append(huge.Evidence, Entry{int64(i), line, line, line})
	}
	if body := Brief(huge); len(body) > MaxBody || fences(t, body) != 12 {
		t.Errorf("%d bytes", len(body))
	}
	pieces := []string{fenceOpen, fenceClose, strings.ToLower(fenceClose), "END-UNTRUST", "ED>>>", fenceNote, "<<<UNTRUSTED-", "\n", "\r", "\u2028", " ", "```", "## x", "é", "\xff", "password=hunter2hunter2"}
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, name), "")
		}
		body := Brief(Source{Ticket: text("ticket"), Branch: text("branch"), Status: []string{text("status")}, Flail: []string{text("flail")}, Narrative: text("narrative"), Withheld: "w"})
		if n := fences(t, body); n != 12 {
			t.Fatalf("%d fences", n)
		}
		if !utf8.ValidString(body) || strings.Contains(body, "hunter2") || Canonical(body) != body {
			t.Fatalf("%q", body)
		}
	})
}

// A credential that the cut falls on is gone before (defect 7), and those that
// the published tool misses are gone too (defect 8).
func TestBriefRedacts(t *testing.T) {
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	for at := MaxNarrative - 60; at < MaxNarrative+10; at += 5 {
		body := Brief(Source{Narrative: strings.Repeat("x", at-1) + " " + secret})
		if strings.Contains(body, secret[:12]) {
			t.Fatalf("a secret at %d leaks its head", at)
		}
	}
	body := Brief(Source{Narrative: "postgres://u:p4ssw0rdp4ssw0rd@h/db {\"password\":\"hunter2hunter2\"}\n-----BEGIN " + "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"})
	for _, s := range []string{"p4ssw0rd", "hunter2", "MIIEvQ"} {
		if strings.Contains(body, s) {
			t.Errorf("%s is not redacted", s)
		}
	}
}

func TestLines(t *testing.T) {
	entry := func(kind, request, at, content string) string {
		return fmt.Sprintf(`{"type":%q,"requestId":%q,"timestamp":%q,"message":{"content":%s}}`+"\n", kind, request, at, content)
	}
	text := func(s string) string { return fmt.Sprintf(`[{"type":"text","text":%q}]`, s) }
	for _, c := range []struct{ name, in, want string }{
		{"87 one request", entry("assistant", "r1", "", text("first half")) + entry("assistant", "r1", "", text("second half")), "first half\nsecond half"},
		{"87 no request", entry("assistant", "", "", text("first")) + entry("assistant", "", "", text("second")), "second"},
		{"87 another request", entry("assistant", "r0", "", text("old")) + entry("assistant", "r1", "", text("new")), "new"},
		{"87 a tool between texts", entry("assistant", "r1", "", `[{"type":"text","text":"a"},{"type":"tool_use","name":"x"},{"type":"text","text":"b"}]`), "a\nb"},
		{"87 user behind", entry("assistant", "r1", "", text("said")) + entry("user", "", "", `"and?"`), "said"},
		{"87 user between", entry("assistant", "r1", "", text("a")) + entry("user", "", "", `"x"`) + entry("assistant", "r1", "", text("b")), "b"},
		{"87 half line", entry("assistant", "r1", "", text("said")) + `{"type":"assistant","mess`, "said"},
		{"plain content", entry("assistant", "", "", `"said"`), "said"},
		{"only tools", entry("assistant", "r1", "", `[{"type":"tool_use"}]`), ""},
		{"nobody", entry("user", "", "", `"x"`), ""},
		{"odd shapes", `{"type":5}` + "\n" + `{"type":"assistant","message":7}` + "\n", ""},
	} {
		n, ok := Lines([]byte(c.in))
		if n.Text != c.want || !ok {
			t.Errorf("%s: %q, %v", c.name, n.Text, ok)
		}
	}
	for _, s := range []string{"", "\n\n", "garbage", "[1]\n", `{"half`} {
		if _, ok := Lines([]byte(s)); ok {
			t.Errorf("behaviour 81: %q is a transcript", s)
		}
	}
	n, _ := Lines([]byte(entry("user", "", "2026-01-02T03:04:05.678Z", `"x"`) + entry("assistant", "", "2026-01-01T00:00:00Z", text("y"))))
	if n.Newest.Format(time.RFC3339) != "2026-01-02T03:04:05Z" {
		t.Errorf("behaviour 88: %v", n.Newest)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","requestId":"r","message":{"content":[{"type":"text","text":"x"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, ok := Lines(raw)
		if !ok && n.Text != "" {
			t.Fatal("text of no transcript")
		}
		if n := fences(t, Brief(Source{Narrative: n.Text})); n != 12 {
			t.Fatalf("%d fences", n)
		}
	})
}

func TestPrompt(t *testing.T) {
	body := Brief(Source{Ticket: "T1"})
	for verified, word := range map[bool]string{true: "continues", false: "possible"} {
		p := Prompt("d1", "T1", body, verified)
		if !strings.Contains(p, word) || !strings.Contains(p, "session d1 on ticket T1") || !strings.Contains(p, strings.TrimRight(body, "\n")) || strings.Contains(p, "verified") == verified {
			t.Errorf("%s", p)
		}
	}
}
