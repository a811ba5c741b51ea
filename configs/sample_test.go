package configs

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"handoffd/configs/document"
)

// stripComments blanks the // comments of a sample, which stand on lines of
// their own.
func stripComments(text []byte) []byte {
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "//") {
			lines[i] = ""
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

func TestSamples(t *testing.T) {
	for _, c := range []struct {
		file   string
		format format
		schema []byte
	}{
		{"handoff.config.sample.jsonc", storeFormat, storeSchemaText},
		{"handoffd.sample.jsonc", daemonFormat, daemonSchemaText},
	} {
		t.Run(c.file, func(t *testing.T) {
			raw, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			text := stripComments(raw)
			l, err := c.format.parse(c.file, text)
			if err != nil {
				t.Fatal(err)
			}
			doc, _, err := document.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := newOracle(t, c.schema).faults(t, doc); len(got) > 0 {
				t.Error(got)
			}
			for _, k := range c.format.schema().Keys() {
				v, ok := l.values[k.Path]
				if !ok {
					t.Errorf("%s is not in the sample", k.Path)
				} else if k.HasDefault && !reflect.DeepEqual(v, k.Default) {
					t.Errorf("%s is %v in the sample and %v by default", k.Path, v, k.Default)
				}
			}
			for _, word := range []string{"harness", "root", "include", "exclude"} {
				if c.format.name == DaemonFile && !strings.Contains(string(text), `"`+word+`"`) {
					t.Errorf("sources[].%s is not in the sample", word)
				}
			}
		})
	}
}

// sameJSON compares a default of the schema with a value of the program.
func sameJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

func TestStoreDefaultsAreTheSchemas(t *testing.T) {
	r := found{}.resolved()
	values := map[string]any{
		"version":                        1,
		"handoff_dir":                    discoverDir + "/",
		"project_name":                   nil,
		"auto_capture":                   r.AutoCapture,
		"max_brief_tokens":               r.MaxBriefTokens,
		"exclude_from_handoff":           r.ExcludeFromHandoff,
		"capture.exclude_patterns":       r.Capture.ExcludePatterns,
		"capture.include_tool_outputs":   r.Capture.IncludeToolOutputs,
		"capture.truncate_tool_outputs":  r.Capture.TruncateToolOutputs,
		"capture.max_tool_output_length": r.Capture.MaxToolOutputLength,
		"linking.enabled":                r.LinkingEnabled,
		"linking.min_overlap_score":      r.MinOverlap,
		"integrity.sha256_manifest":      true,
		"integrity.verify_on_read":       r.VerifyOnRead,
		"storage.type":                   "filesystem",
		"gate.enforce":                   r.Gate.Enforce,
		"gate.mode":                      r.Gate.Mode,
	}
	for _, k := range storeSchema().Keys() {
		if v, ok := values[k.Path]; k.HasDefault && (!ok || !sameJSON(t, k.Default, v)) {
			t.Errorf("%s: schema %v, program %v", k.Path, k.Default, v)
		}
		if r.Origin[k.Path] != OriginDefault {
			t.Errorf("%s: origin %q", k.Path, r.Origin[k.Path])
		}
	}
}

func TestDaemonDefaultsAreTheSchemas(t *testing.T) {
	d, err := LoadDaemon(DaemonInput{Getenv: noEnv, HomeDir: t.TempDir(), CPUs: 3})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	for _, v := range d.Explain() {
		values[v.Key] = v.Value
	}
	keys := daemonSchema().Keys()
	for _, k := range keys {
		v, ok := values[k.Path]
		if !ok && k.Path != "$schema" {
			t.Errorf("%s is not explained", k.Path)
		}
		if k.HasDefault && !sameJSON(t, k.Default, v) {
			t.Errorf("%s: schema %v, program %v", k.Path, k.Default, v)
		}
		if d.Origin[k.Path] != OriginDefault {
			t.Errorf("%s: origin %q", k.Path, d.Origin[k.Path])
		}
	}
	if len(values) != len(keys)-1 {
		t.Errorf("%d values for %d keys", len(values), len(keys))
	}
	if d.Workers != 3 || d.Sources != nil || d.File != "" {
		t.Errorf("%+v", d)
	}
}

func noEnv(string) string { return "" }
