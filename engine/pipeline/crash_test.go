package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/pipeline"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
	"handoffd/engine/verify"
)

// killed is what a build dies of at a chosen effect.
type killed struct{ at int }

// dieAt runs f and stops it dead before its n-th effect on the disk. It
// reports whether f got that far.
func dieAt(n int, f func()) (died bool) {
	var mu sync.Mutex
	count := 0
	undo := safefile.Intercept(func(op, path string) error {
		mu.Lock()
		defer mu.Unlock()
		count++
		if count == n {
			panic(killed{n})
		}
		return nil
	})
	defer undo()
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			died = true
		}
	}()
	f()
	return false
}

// TestCrashInvariance kills a first build, a growing one and one that replaces
// an unfinished end, before every single effect, and builds again.
func TestCrashInvariance(t *testing.T) {
	data := sample{name: "../harness/claude/testdata/work.jsonl"}.data(t)
	text := sample{name: "../harness/text/testdata/roles.txt"}.data(t)
	for _, c := range []struct {
		name, rel string
		data      []byte
		first     int // bytes that are built undisturbed before
	}{
		{"first build", sessionFile, damaged(data), 0},
		{"growing", sessionFile, damaged(data), len(data) / 2},
		{"replacing the end", "home/roles.txt", text, len(text) / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := newBench(t)
			whole.write(c.rel, c.data)
			whole.build(c.rel)
			want := whole.outcome()
			points := 0
			for n := 1; ; n++ {
				x := newBench(t)
				if c.first > 0 {
					x.write(c.rel, c.data[:c.first])
					x.build(c.rel)
				}
				x.write(c.rel, c.data[:c.first])
				x.append(c.rel, c.data[c.first:])
				died := dieAt(n, func() {
					if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(c.rel)}); err != nil {
						t.Fatalf("undisturbed build: %v", err)
					}
				})
				x.restart()
				x.build(c.rel)
				same(t, fmt.Sprintf("killed before effect %d", n), x.outcome(), want)
				x.verify()
				x.noLeavings()
				if !died {
					break
				}
				points++
			}
			t.Logf("%d points of death, all recovered", points)
			if points < 10 {
				t.Fatalf("only %d effects were seen", points)
			}
		})
	}
}

// TestFailingDisk makes every single effect fail instead.
func TestFailingDisk(t *testing.T) {
	data := sample{name: "../harness/claude/testdata/work.jsonl"}.data(t)
	whole := newBench(t)
	whole.write(sessionFile, data)
	whole.build(sessionFile)
	want := whole.outcome()
	full := errors.New("no space left on device")
	for n := 1; ; n++ {
		x := newBench(t)
		x.write(sessionFile, data[:len(data)/2])
		x.build(sessionFile)
		x.append(sessionFile, data[len(data)/2:])
		count, failed := 0, false
		var mu sync.Mutex
		undo := safefile.Intercept(func(string, string) error {
			mu.Lock()
			defer mu.Unlock()
			if count++; count >= n { // the disk stays full
				failed = true
				return full
			}
			return nil
		})
		_, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(sessionFile)})
		undo()
		if failed && err == nil && !strings.Contains(fmt.Sprint(x.committed()), "turns=27") {
			t.Fatalf("effect %d failed and the build was acknowledged", n)
		}
		x.verifyManifest()
		x.build(sessionFile)
		same(t, fmt.Sprintf("effect %d failed", n), x.outcome(), want)
		x.verify()
		if !failed {
			return
		}
	}
}

func (x *bench) committed() string {
	_, dir := x.only()
	m, _, err := store.ReadManifest(dir)
	if err != nil {
		x.t.Fatal(err)
	}
	return fmt.Sprintf("turns=%d", m.TurnCount)
}

// verifyManifest checks that what is committed can still be read.
func (x *bench) verifyManifest() {
	_, dir := x.only()
	if _, _, err := store.ReadManifest(dir); err != nil {
		x.t.Fatal(err)
	}
}

// noLeavings checks that no temporary or unfinished directory stays behind.
func (x *bench) noLeavings() {
	x.t.Helper()
	states := 0
	err := filepath.WalkDir(filepath.Join(x.store.Root, store.ProjectsDir), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if safefile.IsTemp(d.Name()) || strings.HasPrefix(d.Name(), ".new-") {
			x.t.Errorf("left behind: %s", p)
		}
		if filepath.Base(filepath.Dir(p)) == store.StateDir && strings.HasSuffix(p, ".json") {
			states++
		}
		return nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
	if states != 1 {
		x.t.Errorf("%d state files", states)
	}
}

// TestRepair damages or removes each file of a session and builds again.
func TestRepair(t *testing.T) {
	data := damaged(sample{name: "../harness/claude/testdata/work.jsonl"}.data(t))
	whole := newBench(t)
	whole.write(sessionFile, data)
	whole.build(sessionFile)
	want := whole.outcome()
	_, dir := whole.only()
	var files []string
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, p)
			files = append(files, rel)
		}
		return err
	})
	harm := map[string]func(string) error{
		"removed": os.Remove,
		"emptied": func(p string) error { return os.Truncate(p, 0) },
		"cut": func(p string) error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			return os.Truncate(p, info.Size()-min(info.Size(), 7))
		},
	}
	for _, name := range files {
		for how, do := range harm {
			for _, grow := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s grow=%v", strings.ReplaceAll(name, "/", "_"), how, grow), func(t *testing.T) {
					x := newBench(t)
					first := len(data)
					if grow {
						first = len(data) * 3 / 4
					}
					x.write(sessionFile, data[:first])
					x.build(sessionFile)
					_, dir := x.only()
					if err := do(filepath.Join(dir, name)); err != nil {
						t.Skipf("not there in this case: %v", err)
					}
					x.append(sessionFile, data[first:])
					x.restart()
					x.build(sessionFile)
					got, want := x.outcome(), want
					if name == store.ManifestName { // what was provisional is lost with it
						got.Brief, want.Brief = withoutProvisional(got.Brief), withoutProvisional(want.Brief)
					}
					same(t, "after repair", got, want)
					x.verify()
				})
			}
		}
	}
}

// TestIdempotence builds again and again when there is nothing new.
func TestIdempotence(t *testing.T) {
	for name, c := range cases(t) {
		t.Run(name, func(t *testing.T) {
			x := newBench(t)
			x.write(c.rel, c.data)
			x.build(c.rel)
			before := x.snapshot()
			for i := range 3 {
				if i == 1 {
					x.restart()
				}
				r := x.build(c.rel)
				if r.Built || len(r.Repaired) > 0 {
					t.Fatalf("built again: %+v", r)
				}
			}
			if after := x.snapshot(); after != before {
				t.Fatalf("something was written:\n%s\n---\n%s", before, after)
			}
		})
	}
}

// snapshot lists every file of the store with its size, inode and times.
func (x *bench) snapshot() string {
	var b strings.Builder
	err := filepath.WalkDir(x.store.Root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inode, ctime := safefile.Identity(info)
		fmt.Fprintln(&b, p, info.Size(), inode, ctime, info.ModTime())
		return nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return b.String()
}

// TestConcurrency has six builders of their own, one verifier and a source
// that grows.
func TestConcurrency(t *testing.T) {
	data := damaged(sample{name: "../harness/claude/testdata/work.jsonl"}.data(t))
	whole := newBench(t)
	whole.write(sessionFile, data)
	whole.build(sessionFile)
	want := whole.outcome()
	x := newBench(t)
	x.write(sessionFile, data[:len(data)/4])
	x.build(sessionFile)
	loc, _ := x.only()
	var builders, reader sync.WaitGroup
	stop := make(chan struct{})
	reader.Add(1)
	go func() {
		defer reader.Done()
		for {
			select {
			case <-stop:
				return
			default:
				readWhole(t, x, loc)
			}
		}
	}()
	for range 6 {
		builders.Add(1)
		go func() {
			defer builders.Done()
			y := &bench{t: t, root: x.root, store: x.store, clock: x.clock}
			y.restart()
			for range 20 {
				if _, err := y.b.Build(context.Background(), pipeline.Request{Source: x.path(sessionFile)}); err != nil {
					t.Errorf("build: %v", err)
				}
			}
		}()
	}
	for at := len(data) / 4; at < len(data); {
		n := min(at+97, len(data))
		x.append(sessionFile, data[at:n])
		at = n
	}
	builders.Wait()
	close(stop)
	reader.Wait()
	x.build(sessionFile)
	same(t, "six builders", x.outcome(), want)
	x.verify()
}

// readWhole reads what an outsider would, without any lock: every file must
// parse.
func readWhole(t *testing.T, x *bench, loc store.Location) {
	dir := x.store.SessionDir(loc.Project, loc.Dir)
	m, _, err := store.ReadManifest(dir)
	if err != nil {
		t.Errorf("manifest: %v", err)
		return
	}
	_ = m
	for _, name := range []string{store.SummaryName, store.PayloadName} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !parses(raw) {
			t.Errorf("%s: %v, %d bytes do not parse", name, err, len(raw))
		}
	}
	if raw, err := os.ReadFile(filepath.Join(dir, store.BriefName)); err != nil || !strings.HasPrefix(string(raw), "# Handoff") {
		t.Errorf("brief: %v, %d bytes", err, len(raw))
	}
}

func TestNothingLeftBehind(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "newlines": "\n\n \n\r\n", "bookkeeping": `{"type":"mode","sessionId":"4f1c0a52-6d7e-4c1b-9a51-0b7f1f6c2d10"}` + "\n",
		"torn": `{"type":"user","uu`,
	} {
		t.Run(name, func(t *testing.T) {
			x := newBench(t)
			x.write(sessionFile, []byte(content))
			_, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(sessionFile)})
			if k := fault.KindOf(err); err == nil || k.Exit() != 4 {
				t.Fatalf("got %v", err)
			}
			if all, err := x.store.Sessions(); err != nil || len(all) > 0 {
				t.Fatalf("left behind: %v %v", all, err)
			}
		})
	}
}

func parses(raw []byte) bool { return jsontext.Value(raw).IsValid() }

func withoutProvisional(brief string) string {
	var kept []string
	for _, l := range strings.Split(brief, "\n") {
		if !strings.HasPrefix(l, "- Provisional:") {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

// TestStrictWritesNothing refuses damage behind good records and leaves the
// store as it was.
func TestStrictWritesNothing(t *testing.T) {
	x := newBench(t)
	data := sample{name: "../harness/claude/testdata/work.jsonl"}.data(t)
	half := strings.Index(string(data), "\n") + 1
	for range 12 {
		half += strings.Index(string(data[half:]), "\n") + 1
	}
	x.write(sessionFile, data[:half])
	x.build(sessionFile)
	before := x.snapshot()
	x.append(sessionFile, append(append([]byte{}, data[half:]...), "{\"torn\nnot json\n"...))
	_, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(sessionFile), Strict: true})
	if !fault.Is(err, fault.Unparsable) {
		t.Fatalf("got %v", err)
	}
	withoutTimes := func(s string) string { // a cut file has another time
		var kept []string
		for _, l := range strings.Split(s, "\n") {
			f := strings.Fields(l)
			kept = append(kept, strings.Join(f[:min(len(f), 3)], " "))
		}
		return strings.Join(kept, "\n")
	}
	if after := x.snapshot(); withoutTimes(after) != withoutTimes(before) {
		t.Fatalf("something was written:\n%s\n---\n%s", before, after)
	}
	x.verify()
	x.build(sessionFile)
	x.verify()
	y := newBench(t)
	y.write(sessionFile, []byte("{\"torn\n"+string(data)))
	if _, err := y.b.Build(context.Background(), pipeline.Request{Source: y.path(sessionFile), Strict: true}); !fault.Is(err, fault.Unparsable) {
		t.Fatalf("got %v", err)
	}
	if all, err := y.store.Sessions(); err != nil || len(all) > 0 {
		t.Fatalf("left behind: %v %v", all, err)
	}
}

// TestHeal alters the timeline and TOOLS.md in ways that keep or change their
// length. A build of the unchanged source finds it and reads it again.
func TestHeal(t *testing.T) {
	data := damaged(sample{name: "../harness/claude/testdata/work.jsonl"}.data(t))
	whole := newBench(t)
	whole.write(sessionFile, data)
	whole.build(sessionFile)
	want := whole.outcome()
	lines := func(f func(l []string) []string) func(string) string {
		return func(s string) string { return strings.Join(f(strings.SplitAfter(s, "\n")), "") }
	}
	for name, alter := range map[string]func(string) string{
		"letter":      func(s string) string { return strings.Replace(s, "discount", "discouNt", 1) },
		"text":        func(s string) string { return strings.Replace(s, "discount", "EVIL", 1) },
		"zeros":       func(s string) string { return s[:200] + strings.Repeat("\x00", 30) + s[230:] },
		"swapped":     lines(func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }),
		"deleted":     lines(func(l []string) []string { return append(l[:3], l[4:]...) }),
		"doubled":     lines(func(l []string) []string { return append(l[:4], l[3:]...) }),
		"appended":    func(s string) string { return s + `{"seq":99,"ts":"","class":"USER","text":"forged"}` + "\n" },
		"half a line": func(s string) string { return s + `{"seq":99,"ts":"` },
	} {
		for _, file := range []string{store.TimelineName, store.ToolsName} {
			t.Run(name+" "+file, func(t *testing.T) {
				x := newBench(t)
				x.write(sessionFile, data)
				x.build(sessionFile)
				_, dir := x.only()
				path := filepath.Join(dir, file)
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				altered := alter(string(raw))
				if altered == string(raw) {
					altered += "more"
				}
				if err := os.WriteFile(path, []byte(altered), 0o600); err != nil {
					t.Fatal(err)
				}
				x.restart()
				x.build(sessionFile)
				same(t, "healed", x.outcome(), want)
				x.verify()
			})
		}
	}
}

// TestSalvageSaysSo alters a timeline whose source is gone: what was found is
// taken over, and never again called proved.
func TestSalvageSaysSo(t *testing.T) {
	x := newBench(t)
	data := sample{name: "../harness/claude/testdata/work.jsonl"}.data(t)
	x.write(sessionFile, data)
	x.build(sessionFile)
	loc, dir := x.only()
	path := filepath.Join(dir, store.TimelineName)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw[:len(raw)-40], 0o600); err != nil {
		t.Fatal(err)
	}
	x.restart()
	x.write(sessionFile, record(500, "another history"))
	x.build(sessionFile)
	r, err := verify.Session(context.Background(), x.store, loc)
	if err != nil || !r.OK || !strings.Contains(r.Line(), "taken over as found") {
		t.Fatalf("%v %s", err, r.Line())
	}
}

// TestGone notes that a source is missing, once, and that it is back.
func TestGone(t *testing.T) {
	x := newBench(t)
	path := x.write(sessionFile, record(1, "one"))
	loc := x.build(sessionFile).Location
	gone := func() bool {
		m, _, err := store.ReadManifest(x.store.SessionDir(loc.Project, loc.Dir))
		if err != nil {
			t.Fatal(err)
		}
		return m.Sources[0].Gone
	}
	if err := x.b.SourceGone(context.Background(), loc, path); err != nil || gone() {
		t.Fatalf("%v, gone %v while it is there", err, gone())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := x.b.SourceGone(context.Background(), loc, path); err != nil || !gone() {
			t.Fatalf("%v, gone %v", err, gone())
		}
	}
	x.verify()
	x.write(sessionFile, record(1, "one"))
	x.build(sessionFile)
	if gone() {
		t.Fatal("still gone when it is back as it was")
	}
	x.write(sessionFile, append(record(1, "one"), record(2, "two")...))
	x.build(sessionFile)
	if gone() || fmt.Sprint(x.texts()) != "[one two]" {
		t.Fatal(gone(), x.texts())
	}
	x.verify()
}

// TestOddPath captures a source whose directory's name is no text.
func TestOddPath(t *testing.T) {
	x := newBench(t)
	rel := "home/projects/-\xff\xfebad/4f1c0a52-6d7e-4c1b-9a51-0b7f1f6c2d10.jsonl"
	x.write(rel, record(1, "one"))
	x.build(rel)
	x.append(rel, record(2, "two"))
	x.restart()
	if r := x.build(rel); r.New != 1 {
		t.Fatalf("%+v", r)
	}
	x.verify()
}
