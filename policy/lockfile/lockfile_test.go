package lockfile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"handoffd/engine/fault"
)

// format reads lock files of the form "host pid [ours]".
func format(body string) Format {
	return Format{Body: []byte(body), Host: "here", Parse: func(raw []byte) Owner {
		f := strings.Fields(string(raw))
		if len(f) < 2 {
			return Owner{}
		}
		pid, err := strconv.Atoi(f[1])
		return Owner{Host: f[0], PID: pid, Known: err == nil, Ours: len(f) > 2}
	}}
}

func TestTake(t *testing.T) {
	const nobody = "4194304"
	live := strconv.Itoa(os.Getppid())
	for _, c := range []struct {
		name, file string
		ok         bool
	}{
		{"none", "", true},
		{"dead", "here " + nobody, true},
		{"live", "here " + live, false},
		{"another machine's", "there " + nobody, false},
		{"not understood", "?", false},
		{"ours, from before, whoever has the id now", "here " + live + " ours", true},
		{"with the id that we have now", "here " + strconv.Itoa(os.Getpid()), true},
	} {
		path := filepath.Join(t.TempDir(), "x.lock")
		if c.file != "" {
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := Take(t.Context(), path, format("here "+strconv.Itoa(os.Getpid())+" ours"))
		if (err == nil) != c.ok || err != nil && !fault.Is(err, fault.Refused) {
			t.Errorf("%s: %v", c.name, err)
		}
		raw, _ := os.ReadFile(path)
		if err != nil {
			if string(raw) != c.file {
				t.Errorf("%s: the lock is now %q", c.name, raw)
			}
			continue
		}
		if !strings.HasSuffix(string(raw), "ours") {
			t.Errorf("%s: the lock says %q", c.name, raw)
		}
		// Somebody took the file over: it is not ours to remove.
		if c.name == "dead" {
			if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Release(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := os.Lstat(path); (err == nil) != (c.name == "dead") {
			t.Errorf("%s: after the release: %v", c.name, err)
		}
	}
}

// What cannot be a lock is not removed.
func TestTakeOdd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(t.Context(), path, format("x")); !fault.Is(err, fault.Refused) {
		t.Error(err)
	}
}
