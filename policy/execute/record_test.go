package execute

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/policy/permission"
)

// newRunner is a runner over a workspace of its own.
func newRunner(t *testing.T, change func(*permission.Policy)) *Runner {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(dir, "home", "ws")
	if err := os.MkdirAll(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := permission.Resolve(permission.Input{CWD: ws, Home: filepath.Join(dir, "home"), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&s.Policy)
	}
	records, err := OpenRecords(s, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{Scope: s, Records: records, Path: os.Getenv("PATH")}
}

// records reads all decision records, oldest first.
func records(t *testing.T, r *Runner) []map[string]any {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.Scope.StateDir, RecordsDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, name := range names {
		out = append(out, decode(t, name))
	}
	return out
}

func decode(t *testing.T, name string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var rec map[string]any
	if err := json.Unmarshal(raw, &rec); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, raw)
	}
	if rec["id"] != strings.TrimSuffix(filepath.Base(name), ".json") || rec["enforced_before_execution"] != true {
		t.Errorf("%s: %v", name, rec)
	}
	return rec
}

// keys are the members of a JSON object in their order.
func keys(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	d := json.NewDecoder(f)
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(key))
	}
	return strings.Join(out, " ")
}

func TestEvaluateRecords(t *testing.T) {
	r := newRunner(t, nil)
	for _, c := range []struct {
		risk    permission.Risk
		target  string
		verdict string
	}{{"R0", "x", "ALLOWED"}, {"R1", "..", "DENIED"}, {"R2", "", "NEEDS_AUTH"}, {"R9", "a\xffb\x1b[2J", "DENIED"}} {
		d, err := r.Evaluate(c.risk, c.target)
		if err != nil || string(d.Verdict) != c.verdict {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
	}
	all := records(t, r)
	if len(all) != 4 {
		t.Fatalf("%d records of 4 decisions", len(all))
	}
	verdicts := map[any]int{}
	for _, rec := range all {
		verdicts[rec["verdict"]]++
		if rec["op"] != "evaluate" || rec["executed"] != false {
			t.Errorf("%v", rec)
		}
	}
	if verdicts["DENIED"] != 2 || verdicts["ALLOWED"] != 1 {
		t.Errorf("%v", verdicts)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, name := range []string{"", RecordsDir} {
		if info, err := os.Stat(filepath.Join(r.Scope.StateDir, name)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	names, _ := filepath.Glob(filepath.Join(r.Scope.StateDir, RecordsDir, "*"))
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 || !recordName.MatchString(filepath.Base(name)) {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestRead(t *testing.T) {
	r := newRunner(t, nil)
	content := []byte("\xff\xfe\x00 bytes \xf0\x9f\x98\x80, not text")
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.Scope.Workspace, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("file", content)
	out, err := r.Read(t.Context(), "R0", "file")
	if err != nil || !out.Executed || out.Bytes != int64(len(content)) || out.SHA256 != seal.Sum(content) {
		t.Fatalf("%+v, %v", out, err)
	}
	path := filepath.Join(r.Scope.Workspace, out.Record)
	if got := keys(t, path); got != "id enforced_before_execution op risk verdict reason target executed bytes content_sha256 level classification real_target" {
		t.Error(got)
	}
	if rec := decode(t, path); rec["content_sha256"] != out.SHA256 || rec["bytes"] != float64(len(content)) {
		t.Errorf("%v", rec)
	}
	out, err = r.Read(t.Context(), "R0", "none")
	if err != nil || out.Executed || out.Err == nil || !out.Decision.Allowed() {
		t.Errorf("%+v, %v", out, err)
	}
	if rec := decode(t, filepath.Join(r.Scope.Workspace, out.Record)); rec["execution_error"] == nil || rec["executed"] != false {
		t.Errorf("%v", rec)
	}
	out, err = r.Read(t.Context(), "R0", filepath.Join("..", "none"))
	if err != nil || out.Executed || out.Err != nil || out.Decision.Verdict != permission.Denied {
		t.Errorf("%+v, %v", out, err)
	}
	if got := keys(t, filepath.Join(r.Scope.Workspace, out.Record)); !strings.HasPrefix(got, "id enforced_before_execution op risk verdict reason target executed level") {
		t.Error(got)
	}
}

func TestRetention(t *testing.T) {
	r := newRunner(t, nil)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r.Records.now = func() time.Time { return now }
	r.Records.keep = permission.Retention{Records: 5, Days: 10}
	dir := filepath.Join(r.Scope.StateDir, RecordsDir)
	// What is no record is not ours to delete.
	for _, name := range []string{"notes.txt", "2020-01-01.json", ".hidden"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	count := func() int {
		names, err := filepath.Glob(filepath.Join(dir, "2026-*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	write := func(n int) {
		for range n {
			if _, err := r.Evaluate("R0", "x"); err != nil {
				t.Fatal(err)
			}
		}
		r.Records.Close()
	}
	write(3)
	if count() != 3 {
		t.Errorf("%d of 3", count())
	}
	now = now.AddDate(0, 0, 11)
	write(1)
	if count() != 1 {
		t.Errorf("%d of 1 that is young enough", count())
	}
	write(20)
	if count() != 5 {
		t.Errorf("%d of 5", count())
	}
	// A long job does not wait for its end.
	for range 2 * pruneEvery {
		if _, err := r.Evaluate("R0", "x"); err != nil {
			t.Fatal(err)
		}
		if count() > 5+pruneEvery {
			t.Fatalf("%d records", count())
		}
	}
	for _, name := range []string{"notes.txt", "2020-01-01.json", ".hidden"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// Records of one instant and one process do not overwrite one another.
func TestRecordsAreUnique(t *testing.T) {
	r := newRunner(t, nil)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r.Records.now = func() time.Time { return at }
	seen := map[string]bool{}
	for range 300 {
		rec := r.Records.New("x", permission.Decision{})
		path, err := rec.Write()
		if err != nil || seen[path] {
			t.Fatalf("%s twice, or %v", path, err)
		}
		seen[path] = true
	}
	taken := r.Records.New("x", permission.Decision{})
	if err := os.WriteFile(filepath.Join(r.Records.dir, taken.id+".json"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := taken.id
	if _, err := taken.Write(); err != nil || taken.id == first {
		t.Errorf("%s, %v", taken.id, err)
	}
	if raw, err := os.ReadFile(filepath.Join(r.Records.dir, first+".json")); err != nil || string(raw) != "mine" {
		t.Errorf("a record was overwritten: %q, %v", raw, err)
	}
}

// A noted record is there at once, and durable after Close.
func TestNote(t *testing.T) {
	r := newRunner(t, nil)
	var synced []string
	defer safefile.Intercept(func(op, path string) error {
		if op == "syncdir" {
			synced = append(synced, path)
		}
		return nil
	})()
	rec := r.Records.New("x", permission.Decision{})
	if _, err := rec.Note(); err != nil {
		t.Fatal(err)
	}
	if all := records(t, r); len(all) != 1 || all[0]["op"] != "x" || len(synced) != 0 {
		t.Errorf("%v, synced %v", all, synced)
	}
	r.Records.Close()
	if len(synced) != 1 || synced[0] != r.Records.dir {
		t.Errorf("synced %v", synced)
	}
	if left, _ := filepath.Glob(filepath.Join(r.Records.dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What cannot be recorded is not done.
func TestUnrecordedIsNotDone(t *testing.T) {
	r := newRunner(t, func(p *permission.Policy) { p.Program = "/bin/sh" })
	defer safefile.Intercept(func(op, path string) error {
		if op == "rename" && strings.Contains(path, RecordsDir) {
			return errors.New("the disk is full")
		}
		return nil
	})()
	if _, err := r.Evaluate("R0", "x"); !fault.Is(err, fault.Internal) {
		t.Error(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	out, err := r.Spawn(t.Context(), "R1", `-c 'echo > ran'`)
	if err == nil || out.Executed {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(r.Scope.Workspace, "ran")); err == nil {
		t.Error("it ran without a record")
	}
}

func TestPlantedRecords(t *testing.T) {
	r := newRunner(t, nil)
	dir := filepath.Join(r.Scope.StateDir, RecordsDir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Skipf("symbolic links cannot be made here: %v", err)
	}
	if _, err := OpenRecords(r.Scope, time.Now); !fault.Is(err, fault.Config) {
		t.Errorf("records go where a link leads: %v", err)
	}
}

// Whoever owns the state directory decides what is in it.
func TestSomebodyElsesState(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("root may use any directory, and Windows does not say whose it is")
	}
	info, err := os.Stat("/tmp")
	if err != nil || safefile.OwnedByUs(info) {
		t.Skip("/tmp is not somebody else's here")
	}
	r := newRunner(t, nil)
	r.Scope.StateDir = "/tmp"
	if _, err := OpenRecords(r.Scope, time.Now); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("the state directory of somebody else is used: %v", err)
	}
}
