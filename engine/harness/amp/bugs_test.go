package amp

import (
	"encoding/json"
	"strings"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
)

// What other readers of these files get wrong, or would.

// TestIDs checks that turns of two threads never share an id, although both
// number their messages from 0: one would be taken for the other's fork.
func TestIDs(t *testing.T) {
	other := strings.Replace(string(document(asked)), id, "T-2", 1)
	a := turns(t, asked)
	b := harnesstest.Read(Thread{}, harness.Env{}, harnesstest.Sample{Data: []byte(other)}).All()
	if a[0].ID == b[0].ID {
		t.Errorf("both are %s", a[0].ID)
	}
}

// TestSameNumber keeps both of two messages with one number, which a merge of
// two clients can leave behind.
func TestSameNumber(t *testing.T) {
	got := turns(t, asked, asked)
	if len(got) != 2 || got[0].ID == got[1].ID {
		t.Errorf("%v", got)
	}
}

// TestEmptyBlock checks that a block keeps its id when one before it had no
// text yet.
func TestEmptyBlock(t *testing.T) {
	message := func(first string) string {
		return `{"role":"assistant","messageId":0,"content":[{"type":"text","text":"` + first + `"},{"type":"text","text":"two"}]}`
	}
	without, with := turns(t, message("")), turns(t, message("one"))
	if len(without) != 1 || len(with) != 2 || without[0].ID != with[1].ID {
		t.Errorf("%v, %v", without, with)
	}
}

// TestPrompt makes one turn of a prompt with pictures, and of what the client
// adds to it another.
func TestPrompt(t *testing.T) {
	got := turns(t, `{"role":"user","messageId":0,"content":[{"type":"text","text":"look"},{"type":"text","text":" \n"},
		{"type":"image","source":{"type":"base64","data":"aGVsbG8="}},{"type":"text","text":"file: a.go","hidden":true},{"type":"text","text":"please"}]}`)
	want := []string{"USER look\n[image]", "OTHER file: a.go", "USER please"}
	for i, w := range want {
		if i >= len(got) || string(got[i].Class)+" "+got[i].Text != w {
			t.Fatalf("turn %d is not %q: %v", i, w, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d turns", len(got))
	}
}

// TestRelationships says which thread one goes on from.
func TestRelationships(t *testing.T) {
	for list, want := range map[string][2]string{
		`{"threadID":"T-9","type":"handoff","role":"parent"}`:                                 {"T-9", ""},
		`{"threadID":"T-9","type":"fork","role":"parent"}`:                                    {"T-9", "fork"},
		`{"threadID":"T-9","type":"handoff","role":"child"}`:                                  {"", ""},
		`{"threadID":"T-9","type":"handoff"}`:                                                 {"", ""},
		`{"threadID":"T-9","type":"mention","role":"parent"}`:                                 {"", ""},
		`{"type":"handoff","role":"parent"},{"threadID":"T-8","type":"fork","role":"parent"}`: {"T-8", "fork"},
	} {
		doc := strings.Replace(string(document(asked)), `{`, `{"relationships":[`+list+`],`, 1)
		m := harnesstest.Read(Thread{}, harness.Env{}, harnesstest.Sample{Data: []byte(doc)}).Meta
		if got := [2]string{m.ForkedFrom, m.Kind}; got != want {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}

// TestResults has results as tools give them.
func TestResults(t *testing.T) {
	file := strings.Repeat("QUJD", 1000)
	for _, c := range []struct {
		run, text string
		exit      int // -1: none
		failed    bool
	}{
		{`{"status":"done","result":"plain"}`, "plain", -1, false},
		{`{"status":"done","result":{"output":"x","exitCode":0}}`, "x", 0, false},
		{`{"status":"done","result":{"output":"","exitCode":2}}`, "(empty)", 2, false},
		{`{"status":"done","result":{"output":"x","exitCode":"2"}}`, "x", -1, false},
		{`{"status":"done","result":{"output":"x","truncation":{"lines":4}}}`, `{"output":"x","truncation":{"lines":4}}`, -1, false},
		{`{"status":"done","result":{"output":"x","content":"y"}}`, `{"output":"x","content":"y"}`, -1, false},
		{`{"status":"done","result":[{"type":"text","text":"a"},{"type":"image","source":{}},{"type":"text","text":"b"}]}`, "a\n[image]\nb", -1, false},
		{`{"status":"done","result":["a","b"]}`, `["a","b"]`, -1, false},
		{`{"status":"done","result":{"content":{"type":"image","data":"` + file + `"},"size":3}}`, `{"content":{"type":"image","data":"[file]"},"size":3}`, -1, false},
		{`{"status":"done","result":{}}`, "(empty)", -1, false},
		{`{"status":"done","result":null}`, "(empty)", -1, false},
		{`{"status":"done","result":false}`, "false", -1, false},
		{`{"status":"done","progress":"older"}`, "older", -1, false},
		{`{"status":"error","error":"broken"}`, "broken", -1, true},
		{`{"status":"error","error":{"message":"broken","code":4}}`, "broken", -1, true},
		{`{"status":"error","error":{"code":4}}`, `{"code":4}`, -1, true},
		{`{"status":"error","error":"broken","result":{"output":"so far","exitCode":1}}`, "broken\nso far", 1, true},
		{`{"status":"cancelled","reason":"stopped","progress":{"output":"half"}}`, "cancelled: stopped\nhalf", -1, true},
		{`{"status":"cancelled","progress":{"output":"half"}}`, "cancelled\nhalf", -1, true},
		{`{"status":"in-progress","progress":{"output":"half"}}`, "half", -1, false},
		{`{"status":"blocked-on-user"}`, "blocked-on-user", -1, false},
		{`{"status":"rejected-by-user"}`, "rejected-by-user", -1, true},
		{`"nothing"`, "(empty)", -1, false},
	} {
		got := turns(t, asked, called, `{"role":"user","messageId":2,"content":[{"type":"tool_result","toolUseID":"c","run":`+c.run+`}]}`, ended)
		result := got[3]
		exit := -1
		if result.Tool.Exit != nil {
			exit = *result.Tool.Exit
		}
		if result.Text != c.text || exit != c.exit || result.Tool.Error != c.failed || result.Tool.Name != "Bash" {
			t.Errorf("%s: %s", c.run, harnesstest.Line(result))
		}
	}
}

// TestResultWithoutRun has the shape of threads that came from the server.
func TestResultWithoutRun(t *testing.T) {
	got := turns(t, asked, called, `{"role":"user","messageId":2,"content":[{"type":"tool_result","toolUseID":"c","status":"error","output":{"output":"x","exitCode":3}}]}`)
	if r := got[3]; r.Text != "x" || r.Tool.Exit == nil || *r.Tool.Exit != 3 || !r.Tool.Error {
		t.Error(harnesstest.Line(r))
	}
}

// TestTypes checks that members of another type than expected cost only
// themselves.
func TestTypes(t *testing.T) {
	for _, bad := range []string{`null`, `17`, `"x"`, `true`, `[]`, `{}`, `[[{}]]`, `{"a":{"b":[1]}}`} {
		for _, member := range []string{"title", "created", "v", "env", "relationships", "usageLedger", "queuedMessages", "meta", "~debug"} {
			doc := strings.Replace(string(document(asked, called, given, ended)), `{`, `{"`+member+`":`+bad+`,`, 1)
			doc = strings.Replace(doc, `,"`+member+`":1`, `,"other":1`, 1) // no name twice
			r := harnesstest.Read(Thread{}, harness.Env{}, harnesstest.Sample{Data: []byte(doc)})
			if len(r.Decided) != 5 {
				t.Errorf("%s %s: %d turns", member, bad, len(r.Decided))
			}
		}
		for _, member := range []string{"usage", "meta", "state", "parentToolUseId", "readAt"} {
			odd := `{"role":"user","content":[{"type":"text","text":"odd"}],"` + member + `":` + bad + `}`
			if got := turns(t, asked, odd); len(got) != 2 {
				t.Errorf("%s %s: %d turns", member, bad, len(got))
			}
		}
		if got := turns(t, bad, asked); len(got) != 1 {
			t.Errorf("message %s: %d turns", bad, len(got))
		}
	}
}

// TestDeep checks that the work does not grow with how deep results stand in
// results.
func TestDeep(t *testing.T) {
	const n = 900
	deep := strings.Repeat(`{"type":"tool_result","run":{"status":"done","result":[`, n) + strings.Repeat(`]}}`, n)
	if !json.Valid([]byte(deep)) {
		t.Fatal("the sample is not JSON")
	}
	got := turns(t, asked, `{"role":"user","messageId":2,"content":[`+deep+`]}`)
	if len(got) != 2 || !strings.HasPrefix(got[1].Text, `[{"type":"tool_result"`) {
		t.Errorf("%d turns", len(got))
	}
}
