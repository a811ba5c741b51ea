package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func TestSwapAndCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := Create(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("a second creation: %v", err)
	}
	if err := Swap(path, []byte("three")); err != nil {
		t.Fatal(err)
	}
	if err := Append(path, []byte("+")); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "three+" {
		t.Fatalf("%q, %v", raw, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if Swap(filepath.Join(dir, "d"), nil) == nil || Create(filepath.Join(dir, "d"), nil) == nil || Append(filepath.Join(dir, "d"), nil) == nil {
		t.Error("a directory was written over")
	}
	if got := names(t, dir); !slices.Equal(got, []string{"d", "f"}) {
		t.Errorf("left behind: %v", got)
	}
}

// Whoever creates first wins, and nobody sees half a file.
func TestCreateRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var wg sync.WaitGroup
	won := make(chan string, 16)
	for i := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if Create(path, []byte(strconv.Itoa(i))) == nil {
				won <- strconv.Itoa(i)
			}
		}()
	}
	wg.Wait()
	close(won)
	var winners []string
	for w := range won {
		winners = append(winners, w)
	}
	raw, err := os.ReadFile(path)
	if err != nil || len(winners) != 1 || string(raw) != winners[0] {
		t.Errorf("winners %v, content %q, %v", winners, raw, err)
	}
}

// An effect that does not happen leaves no temporary and the old content.
func TestSwapStopped(t *testing.T) {
	for stop := range 5 {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		restore := Intercept(func(op, _ string) error {
			if n++; n > stop {
				return errors.New("stopped")
			}
			return nil
		})
		err := Swap(path, []byte("new"))
		restore()
		raw, _ := os.ReadFile(path)
		if want := map[bool]string{true: "old", false: "new"}[stop < 4]; err == nil || string(raw) != want || len(names(t, dir)) != 1 {
			t.Errorf("after %d effects: %q, %v, %v", stop, raw, err, names(t, dir))
		}
	}
}
