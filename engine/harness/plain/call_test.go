package plain

import "testing"

func TestFirstOf(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{nil, ""},
		{[]string{"", " \t\n"}, ""},
		{[]string{"", " a ", "b"}, " a "},
		{[]string{"\n", Empty}, Empty},
	} {
		if got := FirstOf(c.texts...); got != c.want {
			t.Errorf("FirstOf(%q) = %q, want %q", c.texts, got, c.want)
		}
	}
}

func TestCall(t *testing.T) {
	for _, c := range []struct{ tool, args, name, text string }{
		{"", "", "unknown", "tool_call unknown"},
		{"bash", "", "bash", "tool_call bash"},
		{"bash", `{"command": "ls"} `, "bash", `tool_call bash {"command": "ls"} `},
	} {
		if name, text := Call(c.tool, c.args); name != c.name || text != c.text {
			t.Errorf("Call(%q, %q) = %q, %q, want %q, %q", c.tool, c.args, name, text, c.name, c.text)
		}
	}
}
