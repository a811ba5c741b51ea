package execute

import (
	"os"
	"path/filepath"
	"testing"

	"handoffd/policy/permission"
)

// TestRuleHolds does to the policy's file what a child may do.
func TestRuleHolds(t *testing.T) {
	const text = `{"policy":"ours"}`
	for _, c := range []struct {
		name string
		had  bool
		do   func(path string) error
		same bool
	}{
		{"nothing, none there", false, func(string) error { return nil }, true},
		{"nothing", true, func(string) error { return nil }, true},
		{"a new one", false, func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) }, false},
		{"another", true, func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) }, false},
		{"none", true, os.Remove, false},
		{"a directory", true, func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, permission.FileName)
			if c.had {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := &Runner{Scope: permission.Scope{Workspace: dir}}
			before := r.rule()
			if err := c.do(path); err != nil {
				t.Fatal(err)
			}
			if aside := before.restore(); (aside == "") != c.same {
				t.Errorf("moved to %q", aside)
			}
			got, err := os.ReadFile(path)
			if c.had && string(got) != text || !c.had && !os.IsNotExist(err) {
				t.Errorf("%q %v", got, err)
			}
		})
	}
}
