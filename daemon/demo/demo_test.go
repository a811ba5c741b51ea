package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"handoffd/engine/harness/all"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The demonstration captures every record, says so, and leaves nothing.
func TestRun(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var out bytes.Buffer
	if err := Run(t.Context(), Options{Out: &out, Formats: all.Formats(), Pace: 50 * time.Millisecond, Signals: make(chan os.Signal)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"captured 15 turns", "the handoff: ", "# Handoff: 5d0f3a52", "removed now"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("does not say %q:\n%s", want, &out)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// An interrupt ends it in order.
func TestInterrupt(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	var out bytes.Buffer
	if err := Run(t.Context(), Options{Out: &out, Formats: all.Formats(), Pace: time.Hour, Signals: signals, Keep: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "interrupted") || !strings.Contains(out.String(), "kept in ") {
		t.Error(out.String())
	}
	if kept, err := filepath.Glob(filepath.Join(tmp, "handoffd-demo-*", "home", ".claude", "projects")); err != nil || len(kept) != 1 {
		t.Errorf("kept %v %v", kept, err)
	}
}
