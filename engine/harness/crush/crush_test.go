package crush

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"handoffd/engine/harness"
	"handoffd/engine/harness/harnesstest"
)

// The databases are found through Crush's list of projects, whatever else is in
// it.
func TestStores(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "work", "site")
	data := filepath.Join(home, ".local", "share", "crush")
	for _, dir := range []string{filepath.Join(project, ".crush"), data} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	list := fmt.Sprintf(`{"projects":[{"path":%q,"data_dir":%q},{"path":%q},{"path":"relative","data_dir":".crush"},{"path":"/nowhere"},7]}`, project, filepath.Join(project, ".crush"), project)
	for _, c := range []struct {
		list string
		want []string
	}{
		{"", []string{data}},
		{"half a li", []string{data}},
		{`{"projects":[{"path":` + fmt.Sprintf("%q", project) + `}]}`, []string{data, filepath.Join(project, ".crush")}},
		{list, []string{data}}, // a list of another shape is not guessed at
	} {
		if err := os.WriteFile(filepath.Join(data, "projects.json"), []byte(c.list), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range (Database{}).Stores(home, func(string) string { return "" }) {
			got = append(got, s.Root)
			for rel, want := range map[string]bool{"crush.db": true, "crush.db-wal": true, "crush.db-shm": false, "logs/crush.log": false, ".crush/crush.db": true, "x/crush.db": false} {
				if s.Keep(rel, false) != want {
					t.Errorf("%s is kept: %v", rel, !want)
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("of %.40s: %v, want %v", c.list, got, c.want)
		}
	}
}

// The project of a session is the one whose directory its database is in.
func TestProject(t *testing.T) {
	s := harnesstest.ScriptedSamples(t, Database{}, "crush.sql", "crush.db")[0]
	for path, want := range map[string]string{"/home/u/site/.crush/crush.db": "/home/u/site", "/tmp/crush.db": ""} {
		r := harnesstest.Read(Database{}, harness.Env{Path: harness.Join(path, s.Name)}, s)
		if r.End.CWD != want {
			t.Errorf("%s is of %q, want %q", path, r.End.CWD, want)
		}
	}
}

// An answer that comes in is told as it is now, and decided when it is whole.
func TestGrowing(t *testing.T) {
	const head = `{"session":{"id":"s","title":"t","created_at":1781674674}}
{"message":{"id":"m1","role":"user","created_at":1781674674,"parts":[{"type":"text","data":{"text":"Go"}}]}}
`
	answer := func(parts string) string {
		return `{"message":{"id":"m2","role":"assistant","created_at":1781674675,"parts":[` + parts + `]}}` + "\n"
	}
	const think = `{"type":"reasoning","data":{"thinking":"Well"}},`
	var states []harnesstest.Sample
	for _, text := range []string{
		head,
		head + answer(`{"type":"text","data":{"text":"I w"}}`),
		head + answer(think+`{"type":"text","data":{"text":"I will"}},{"type":"tool_call","data":{"id":"c1","name":"bash","input":"{\"comm","finished":false}}`),
		head + answer(think+`{"type":"text","data":{"text":"I will"}},{"type":"tool_call","data":{"id":"c1","name":"bash","input":"{\"command\":\"ls\"}","finished":true}},{"type":"finish","data":{"reason":"tool_use","time":1781674677}}`),
		head + answer(think+`{"type":"text","data":{"text":"I will"}},{"type":"tool_call","data":{"id":"c1","name":"bash","input":"{\"command\":\"ls\"}","finished":true}},{"type":"finish","data":{"reason":"tool_use","time":1781674677}}`) +
			`{"message":{"id":"m3","role":"tool","created_at":1781674678,"parts":[{"type":"tool_result","data":{"tool_call_id":"c1","name":"bash","content":"x.go"}}]}}` + "\n",
	} {
		states = append(states, harnesstest.Sample{Data: []byte(text)})
	}
	harnesstest.States(t, Database{}, states...)
}
