package plain

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	long := strings.Repeat("iVBORw0K", 20)
	for in, want := range map[string]string{
		"":       "",
		"plain":  "plain",
		"a\xffb": "a\ufffdb",
		"see data:image/png;base64," + long + " end":          "see [image] end",
		"x(data:image/png;base64," + long + ")":               "x([image])",
		"data:application/pdf;base64," + long + "":            "[file]",
		"write data:image/png;base64,AAAA in css":             "write data:image/png;base64,AAAA in css",
		"a;base64," + long:                                    "a;base64," + long,
		"data: no;base64," + long:                             "data: no;base64," + long,
		strings.Repeat("data:image/gif;base64,"+long+"\n", 2): "[image]\n[image]\n",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%.60q) = %.60q, want %q", in, got, want)
		}
	}
}

func TestLater(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "2026-01-01T00:00:00Z", true},
		{"2026-01-01T00:00:00Z", "", false},
		{"2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z", true},
		{"2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.25Z", false},
		{"2026-01-01T02:00:00+02:00", "2026-01-01T00:00:01Z", true},
		{"2026-01-01T00:00:00Z", "yesterday", false},
	} {
		if got := Later(c.a, c.b); got != c.want {
			t.Errorf("Later(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func TestLetters(t *testing.T) {
	if Letters("a b", "c") != Letters("a\nbc") {
		t.Error("white space changes Letters")
	}
	if Hash("a", "b") == Hash("ab") {
		t.Error("Hash does not part its arguments")
	}
}

func TestClip(t *testing.T) {
	if got := Clip("aé", 2); got != "a" {
		t.Errorf("Clip cuts a rune: %q", got)
	}
}

func TestCompact(t *testing.T) {
	for in, want := range map[string]string{
		"{ \"a\": 1 }":           "{ \"a\": 1 }",
		"{\n \"a\": \"b\\n\"\n}": "{\"a\":\"b\\n\"}",
		"{\n":                    "{\n",
	} {
		if got := Compact([]byte(in)); got != want {
			t.Errorf("Compact(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestStamp(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"2026-05-01T09:30:00Z":     "2026-05-01T09:30:00Z",
		"yesterday":                "yesterday",
		"1770000000":               "2026-02-02T02:40:00.000Z",
		"1770000005.5":             "2026-02-02T02:40:05.500Z",
		"1770000010.25":            "2026-02-02T02:40:10.250Z",
		"1770000005500":            "2026-02-02T02:40:05.500Z",
		"1770000005500000":         "2026-02-02T02:40:05.500Z",
		"1770000005500000000":      "2026-02-02T02:40:05.500Z",
		"99999999999999999999":     "",
		"0":                        "",
		"-5":                       "",
		"2026":                     "",
		"1770000005.x":             "2026-02-02T02:40:05.000Z",
		"2026-05-01 09:30 (local)": "2026-05-01 09:30 (local)",
	} {
		if got := Stamp(in); got != want {
			t.Errorf("Stamp(%q) = %q, want %q", in, got, want)
		}
	}
}
