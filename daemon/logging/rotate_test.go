package logging

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRotatedReplacesALongFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	r, err := OpenRotated(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"one\n", "two\n", "three\n", "a line that is longer than the file may be\n", "last\n"} {
		if n, err := r.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path: "last\n", path + ".1": "a line that is longer than the file may be\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", filepath.Base(name), got, err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

func TestRotatedGoesOnAndReopens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRotated(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	long := strings.Repeat("x", 1<<16) + "\n"
	if _, err := r.Write([]byte(long)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "before\n"+long {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := r.Reopen(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write([]byte("new\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "new\n" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := OpenRotated(t.TempDir(), 0); err == nil {
		t.Error("a directory passes for a log")
	}
}
