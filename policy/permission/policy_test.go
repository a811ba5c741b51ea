package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"handoffd/engine/fault"
)

// published is what the published engine ships, Windows roots and all.
const published = `{
  "schema_version": "1.0-permission-policy",
  "approved_workspaces": [".", "repo-upstream", ".agents-handoff", ".context"],
  "system_read_only_roots": ["C:\\Windows", "C:\\Program Files", "C:\\Program Files (x86)"],
  "personal_data_roots": ["C:\\Users"],
  "denied_roots": [],
  "grants": {"DISCOVERY_ONLY": "allow", "READ_ONLY": "allow", "WORKSPACE_WRITE": "allow",
    "EXTERNAL_EFFECT": "needs_auth", "DESTRUCTIVE": "needs_auth", "IRREVERSIBLE": "needs_auth"},
  "risk_to_level": {"R0": "READ_ONLY", "R1": "WORKSPACE_WRITE", "R2": "EXTERNAL_EFFECT", "R3": "DESTRUCTIVE", "R4": "IRREVERSIBLE"}
}`

const least = `"grants":{},"risk_to_level":{}`

func TestParse(t *testing.T) {
	p, err := Parse([]byte(published))
	if err != nil {
		t.Fatal(err)
	}
	b := Builtin("windows", "", "")
	if len(p.ApprovedWorkspaces) != 4 || p.PersonalDataRoots[0] != `C:\Users` || p.Grants[Destructive] != "needs_auth" || p.RiskToLevel["R4"] != Irreversible {
		t.Errorf("%+v", p)
	}
	if p.Program != "node" || p.MaxOutputBytes != b.MaxOutputBytes || p.Retention != b.Retention || p.NamedTargets != NamedClassify {
		t.Errorf("defaults: %+v", p)
	}
	p, err = Parse([]byte(`{` + least + `,"program":"/bin/true","max_output_bytes":7,"retention":{"days":2},"named_targets":"allow","$schema":"x","resolved":{"a":[1]}}`))
	if err != nil || p.Program != "/bin/true" || p.MaxOutputBytes != 7 || p.Retention != (Retention{DefaultRecords, 2}) || p.NamedTargets != NamedAllow {
		t.Errorf("%+v, %v", p, err)
	}
	if p.DeniedRoots == nil || p.ApprovedWorkspaces == nil {
		t.Error("an absent list is null, not empty")
	}
}

// What is printed can be read again and means the same.
func TestBuiltinIsAPolicy(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows", "freebsd"} {
		b := Builtin(goos, "/w", "/h")
		raw, err := json.Marshal(b, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(raw)
		if err != nil {
			t.Fatalf("%s: %v", goos, err)
		}
		twice, err := json.Marshal(again, json.Deterministic(true))
		if err != nil || string(twice) != string(raw) {
			t.Errorf("%s: %s\nbecame %s", goos, raw, twice)
		}
	}
	for goos, root := range map[string]string{"linux": "/usr", "darwin": "/System", "windows": `C:\Windows`} {
		if s := strings.Join(Builtin(goos, "", "").SystemReadOnlyRoots, " "); !strings.Contains(s, root) {
			t.Errorf("%s: %s", goos, s)
		}
	}
	if b := Builtin("linux", "", ""); len(b.ApprovedWorkspaces) != 0 {
		t.Errorf("no workspace, and yet %v", b.ApprovedWorkspaces)
	}
}

func TestBadPolicies(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ text, says string }{
		{``, "policy invalid JSON"},
		{`{`, "policy invalid JSON"},
		{`[]`, "policy invalid"},
		{`null`, "policy invalid"},
		{`"x"`, "policy invalid"},
		{`{} {}`, "policy invalid JSON"},
		{"\xef\xbb\xbf{}", "policy invalid JSON"},
		{"{\"a\":\"\xff\"}", "policy invalid JSON"},
		{`{}`, "policy missing grants/risk_to_level"},
		{`{"grants":{}}`, "policy missing grants/risk_to_level"},
		{`{"risk_to_level":{}}`, "policy missing grants/risk_to_level"},
		{`{"grants":null,"risk_to_level":{}}`, "policy missing grants/risk_to_level"},
		{`{"grants":{},"grants":{},"risk_to_level":{}}`, "policy invalid JSON"},
		{`{"grants":{"A":"allow","A":"deny"},"risk_to_level":{}}`, "policy invalid JSON"},
		{`{"grants":[],"risk_to_level":{}}`, "policy invalid"},
		{`{"grants":{"READ_ONLY":true},"risk_to_level":{}}`, "policy invalid"},
		{`{"grants":{"READ_ONLY":null},"risk_to_level":{}}`, "the grant of READ_ONLY is null"},
		{`{"grants":{},"risk_to_level":{"R0":1}}`, "policy invalid"},
		{`{"grants":{},"risk_to_level":{"R0":null}}`, "the level of R0 is null"},
		{`{` + least + `,"deny_roots":[]}`, "deny_roots"},
		{`{` + least + `,"Denied_Roots":[]}`, "Denied_Roots"},
		{`{` + least + `,"denied_roots":null}`, "denied_roots is null"},
		{`{` + least + `,"denied_roots":"/"}`, "policy invalid"},
		{`{` + least + `,"denied_roots":[null]}`, "empty, null"},
		{`{` + least + `,"denied_roots":[""]}`, "empty, null"},
		{`{` + least + `,"denied_roots":["a\u0000b"]}`, "NUL"},
		{`{` + least + `,"approved_workspaces":[1]}`, "policy invalid"},
		{`{` + least + `,"program":" "}`, "program is empty"},
		{`{` + least + `,"program":["node"]}`, "policy invalid"},
		{`{` + least + `,"max_output_bytes":0}`, "max_output_bytes"},
		{`{` + least + `,"max_output_bytes":1.5}`, "policy invalid"},
		{`{` + least + `,"retention":{"days":0}}`, "retention.days"},
		{`{` + least + `,"retention":{"weeks":1}}`, "weeks"},
		{`{` + least + `,"retention":{"days":null}}`, "retention.days"},
		{`{` + least + `,"named_targets":"maybe"}`, "named_targets"},
		{`{` + least + `,"schema_version":"9.9"}`, "schema_version"},
	} {
		path := filepath.Join(dir, "p.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Load(path)
		if !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%d, %s: %+v, %v", i, c.text, p, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "none.json")); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "policy not found: ") {
		t.Error(err)
	}
	if _, err := Load(dir); !fault.Is(err, fault.Config) {
		t.Error(err)
	}
	big := filepath.Join(dir, "big.json")
	if err := os.WriteFile(big, []byte(`{`+least+`,"program":"`+strings.Repeat("x", maxPolicy)+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big); !fault.Is(err, fault.Config) {
		t.Error("a policy of a megabyte is read")
	}
}

// A policy that is read is one that can be printed and read again, and it never
// allows what it does not say.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(published))
	f.Add([]byte(`{` + least + `,"retention":{"days":2},"named_targets":"allow"}`))
	f.Add([]byte(`{"grants":{"":"allow"},"risk_to_level":{"":""}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := Parse(raw)
		if err != nil {
			return
		}
		printed, err := json.Marshal(p, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%s: %v", printed, err)
		}
		twice, err := json.Marshal(again, json.Deterministic(true))
		if err != nil || string(twice) != string(printed) {
			t.Fatalf("%s became %s, %v", printed, twice, err)
		}
		for _, class := range classes {
			for risk, level := range p.RiskToLevel {
				d := Decide(p, risk, class)
				if d.Allowed() && (p.Grants[level] != GrantAllow || level == "" || class == DeniedRoot || class == PersonalDataPath || class == ExternalPath) {
					t.Fatalf("%s: %+v", raw, d)
				}
			}
			if Decide(p, "a risk that nobody names", class).Allowed() && p.RiskToLevel["a risk that nobody names"] == "" {
				t.Fatal("an unknown risk is allowed")
			}
		}
	})
}
