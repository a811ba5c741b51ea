package fault

import (
	"errors"
	"fmt"
	"testing"
)

// The table is one to one, in the order of the exit statuses, and every kind
// is in it.
func TestTable(t *testing.T) {
	names, kinds := map[string]bool{}, map[Kind]bool{}
	last := 0
	for _, r := range Table {
		if names[r.Name] || kinds[r.Kind] || r.Name == "" || r.Title == "" {
			t.Errorf("%+v is there twice, or says nothing", r)
		}
		names[r.Name], kinds[r.Kind] = true, true
		if r.Exit < last || r.Exit < 1 || r.Exit > 125 || r.Status < 300 || r.Status > 599 {
			t.Errorf("%+v: out of order, or no status", r)
		}
		last = r.Exit
		if k, ok := ParseKind(r.Name); !ok || k != r.Kind || k.Exit() != r.Exit || k.Status() != r.Status || k.Title() != r.Title {
			t.Errorf("%s does not come back", r.Name)
		}
	}
	for k := Internal; int(k) < len(Table); k++ {
		if !kinds[k] {
			t.Errorf("kind %d is not in the table", k)
		}
	}
}

// The statuses that the permission gateway promises.
func TestGatewayStatuses(t *testing.T) {
	for k, want := range map[Kind]int{
		Internal: 1, Usage: 2, Config: 2, Denied: 3, Locked: 3, NeedsAuth: 4, NoCheckpoint: 4, CorruptCheckpoint: 5,
	} {
		if err := fmt.Errorf("around: %w", New(k, "x")); ExitOf(err) != want || !Is(err, k) {
			t.Errorf("%s ends with %d, want %d", k, ExitOf(err), want)
		}
	}
	if ExitOf(nil) != 0 || ExitOf(errors.New("x")) != 1 {
		t.Error("no error is 0, an unknown one 1")
	}
}
