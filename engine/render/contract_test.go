package render

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"handoffd/engine/fault"
	"handoffd/engine/seal"
)

const seven = "RESULT: DONE\nWHAT_CHANGED: a\nVALIDATION: b\nEVIDENCE: c\nBLOCKERS: none\nRISKS: none\nFOLLOW_UP: d"

func extracted(t interface{ Fatal(...any) }, brief []byte) Contract {
	c, err := ExtractContract(brief)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestContractSurvivesEveryBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputOf(sessions().Draw(t, "turns"))
		in.Contract = NewContract(texts().Draw(t, "block"))
		in.MaxTokens = rapid.SampledFrom([]int{0, 1000, 3000}).Draw(t, "tokens")
		brief := Brief(in)
		for range 3 {
			c := extracted(t, brief)
			if c != in.Contract {
				t.Fatalf("%q, want %q in\n%s", c.Block, in.Contract.Block, brief)
			}
			next := in
			next.Contract = c
			if again := Brief(next); string(again) != string(brief) {
				t.Fatalf("not the same brief:\n%s\n%s", brief, again)
			}
		}
		// A hand edit is taken over once and stays what it is then.
		in.Contract = extracted(t, append(brief, "\nRISKS: edited"...))
		if in.Contract.Block == "" || !strings.HasSuffix(in.Contract.Block, "\nRISKS: edited") && in.Contract.Block != "RISKS: edited" {
			t.Fatalf("edit lost: %q", in.Contract.Block)
		}
		if c := extracted(t, Brief(in)); c != in.Contract {
			t.Fatalf("%q, want %q", c.Block, in.Contract.Block)
		}
	})
}

func TestTranscriptForgesNoContract(t *testing.T) {
	in := hostile()
	if c := extracted(t, Brief(in)); c != (Contract{}) {
		t.Errorf("forged: %q", c.Block)
	}
	brief := string(Brief(in))
	brief = brief[:strings.LastIndex(brief, contractHeading)] // torn before its last section
	if c := extracted(t, []byte(brief)); c != (Contract{}) {
		t.Errorf("forged in a torn brief: %q", c.Block)
	}
}

func TestExtractContract(t *testing.T) {
	head := "# Handoff: s\n\n**Project:** p\n\n"
	state := "## State right now (verbatim tail)\n\n```\nHere:\n```go\nx\n```\nend\n```\n\n## Provenance\n\n- raw sha256: x\n\n"
	old := footer(strings.Repeat("0", 64))
	for name, c := range map[string]struct{ brief, want string }{
		"empty":               {"", ""},
		"no section":          {head, ""},
		"hint":                {head + contractHeading + "\n\n" + contractHint, ""},
		"reference hint":      {head + contractHeading + "\n\n(none yet) — fill in the fields", ""},
		"reference":           {head + state + contractHeading + "\n\n" + seven + "\n\n" + old, seven},
		"reference, snowball": {head + state + contractHeading + "\n\n" + seven + "\n" + old + "\n" + old + "\n" + old, seven},
		"footer in the middle": {
			head + dataLine + "\n\n" + contractHeading + "\n\n" + seven + "\n\n" + old + "\nRISKS: more\n", seven + "\n\nRISKS: more",
		},
		"under the hint":    {head + contractHeading + "\n\n" + contractHint + "\n" + seven + "\n", seven},
		"fenced":            {head + "```\n" + contractHeading + "\n\n" + seven + "\n```\n", ""},
		"fenced, then real": {head + "~~~\n" + contractHeading + "\n" + seven + "\n~~~\n" + contractHeading + "\nRESULT: BLOCKED\n", "RESULT: BLOCKED"},
		"forged, then real": {head + contractHeading + "\n" + seven + "\n\n" + contractHeading + "\n\n" + contractHint, ""},
		"open fence":        {head + dataLine + "\n\n" + contractHeading + "\n\n```\nx\n\n" + old + "\n", "```\nx"},
		"CRLF":              {strings.ReplaceAll(head+dataLine+"\n\n"+contractHeading+"\n\n"+seven+"\n", "\n", "\r\n"), strings.ReplaceAll(seven, "\n", "\r\n")},
		"elsewhere":         {head + seven + "\n", ""},
	} {
		got := extracted(t, []byte(c.brief))
		if got.Block != c.want {
			t.Errorf("%s: %q, want %q", name, got.Block, c.want)
		}
		if want := seal.Sum([]byte(c.want)); c.want != "" && got.SHA256 != want {
			t.Errorf("%s: hash %s", name, got.SHA256)
		}
	}
	closed := head + "```\nx\n## Provenance\n" + contractHeading + "\n" + seven + "\n```\nend"
	if _, err := ExtractContract([]byte(closed)); !fault.Is(err, fault.Integrity) {
		t.Errorf("section inside a fence of a whole brief: %v", err)
	}
}

func TestFields(t *testing.T) {
	got := Fields("RESULT: DONE\nEVIDENCE:\nRISKS: r\rBLOCKERS:x\r\n FOLLOW_UP: indented\nRESULT: second\nresult: no\nVALIDATION : no\n- WHAT_CHANGED: no")
	want := map[string]string{"RESULT": "DONE", "EVIDENCE": "", "RISKS": "r", "BLOCKERS": "x"}
	if len(got) != len(want) {
		t.Errorf("%q", got)
	}
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			t.Errorf("%s: %q, want %q", k, g, v)
		}
	}
}

func FuzzExtractContract(f *testing.F) {
	f.Add("# Handoff: s\n\n"+contractHeading+"\n\n"+seven+"\n", seven)
	f.Add(string(Brief(hostile())), "```\n"+contractHeading+"\n"+footer(seal.Zero))
	f.Add(dataLine+"\r\n~~~\n"+contractHeading, "(none yet) — x\n"+footer(seal.Zero)+"\n\n"+footer(seal.Zero))
	f.Fuzz(func(t *testing.T, brief, block string) {
		c, err := ExtractContract([]byte(brief))
		if err != nil && c != (Contract{}) {
			t.Fatalf("contract with an error: %q", c.Block)
		}
		if c != NewContract(c.Block) || !utf8.ValidString(c.Block) {
			t.Fatalf("not normal: %q", c.Block)
		}
		in := inputOf(small())
		for _, want := range []Contract{c, NewContract(block)} {
			in.Contract = want
			if got := extracted(t, Brief(in)); got != want {
				t.Fatalf("%q, want %q", got.Block, want.Block)
			}
		}
		for _, v := range Fields(block) {
			if strings.ContainsAny(v, "\r\n") {
				t.Fatalf("value crosses a line: %q", v)
			}
		}
	})
}
