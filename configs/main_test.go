package configs

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"handoffd/engine/fault"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/name. Directories of the test run stand
// in it by their names in dirs.
func golden(t *testing.T, name, got string, dirs map[string]string) {
	t.Helper()
	for word, dir := range dirs {
		got = strings.ReplaceAll(got, dir, word)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update rewrites it)\ngot\n%s\nwant\n%s", path, got, want)
	}
}

// scratch returns a physical temporary directory of mode 0755.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// write makes a file and what is above it, closed to other users.
func write(t *testing.T, text string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	mkdir(t, filepath.Dir(name))
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if k, v, _ := strings.Cut(p, "="); k == name {
				return v
			}
		}
		return ""
	}
}

// refused asserts a fault.Config that says all of want.
func refused(t *testing.T, err error, want ...string) {
	t.Helper()
	if !fault.Is(err, fault.Config) {
		t.Fatalf("error %v (%v), want a configuration fault", err, fault.KindOf(err))
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}
