package verb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"handoffd/engine/fault"
	"handoffd/engine/federate"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/safefile"
	"handoffd/engine/store"
	"handoffd/engine/turn"
	"handoffd/engine/verb"
	"handoffd/engine/verify"
)

// killed is what an operation dies of at a chosen effect.
type killed struct{}

// dieAt runs f and stops it dead before its n-th effect on the disk.
func dieAt(n int, f func()) (died bool) {
	var mu sync.Mutex
	count := 0
	undo := safefile.Intercept(func(string, string) error {
		mu.Lock()
		defer mu.Unlock()
		if count++; count >= n {
			panic(killed{})
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

// machine is a home with a store and transcripts.
type machine struct {
	t       failer
	dir     string
	store   store.Store
	b       *pipeline.Builder
	lines   map[string][]string // what each transcript holds
	renamed int
}

// The sessions have ids that no two sessions have by chance, so that they are
// the same ones on both machines wherever they were moved to.
const (
	one = "11111111-1111-4111-8111-111111111111"
	two = "22222222-2222-4222-8222-222222222222"
)

type failer interface {
	Fatalf(string, ...any)
	Helper()
}

func newMachine(t failer, dir string) *machine {
	m := &machine{t: t, dir: dir, store: store.Store{Root: filepath.Join(dir, "store")}, lines: map[string][]string{}}
	m.restart()
	return m
}

func (m *machine) restart() {
	m.b = pipeline.New(m.store, pipeline.Options{Linking: true, MinOverlap: 0.06})
}

func (m *machine) path(session string) string { return filepath.Join(m.dir, session+".jsonl") }

// say appends a line to a transcript. The texts repeat; the time is unique
// over all machines.
func (m *machine) say(session, text string, at int) {
	m.t.Helper()
	role := "user"
	if at%2 == 0 {
		role = "assistant"
	}
	ts := time.Date(2026, 1, 1, 0, 0, at, 0, time.UTC).Format(time.RFC3339)
	line := fmt.Sprintf(`{"role":%q,"text":%q,"ts":%q,"thread":"--shared--"}`, role, text, ts)
	m.lines[session] = append(m.lines[session], line)
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		m.t.Fatalf("%v", err)
	}
	if err := os.WriteFile(m.path(session), []byte(strings.Join(m.lines[session], "\n")+"\n"), 0o600); err != nil {
		m.t.Fatalf("%v", err)
	}
}

func (m *machine) build(session string) error {
	if len(m.lines[session]) == 0 {
		return nil
	}
	return m.buildPath(session)
}

func (m *machine) buildPath(session string) error {
	_, err := m.b.Build(context.Background(), pipeline.Request{Source: m.path(session), Session: session})
	return err
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) entry(id string) (index.Entry, bool) {
	list, err := m.b.Index.ByID(id)
	if err != nil || len(list) == 0 {
		return index.Entry{}, false
	}
	return list[0], true
}

func (m *machine) from(other *machine) (verb.Federated, error) {
	var f verb.Federated
	root, err := federate.Open(other.dir, other.store.Root)
	if err != nil {
		return f, err
	}
	defer root.Close()
	err = f.Import(context.Background(), m.b, root, verb.Federation{Now: time.Now()})
	return f, err
}

// sound checks that every session on the disk verifies.
func (m *machine) sound(after string) {
	m.t.Helper()
	all, err := m.store.Sessions()
	if err != nil {
		m.t.Fatalf("after %s: %v", after, err)
	}
	for _, l := range all {
		r, err := verify.Session(context.Background(), m.store, l)
		if fault.Is(err, fault.NotFound) {
			continue // never committed
		}
		if err != nil || !r.OK && !strings.Contains(r.Reason, "never rendered") {
			m.t.Fatalf("after %s: %v %+v", after, err, r)
		}
	}
}

// turns reads the turns of a session.
func (m *machine) turns(e index.Entry) []turn.Turn {
	m.t.Helper()
	dir := m.store.SessionDir(e.Project, e.ID)
	mf, _, err := store.ReadManifest(dir)
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	a, _ := mf.Artifact(store.TimelineName)
	out, err := store.ReadTurnsFrom(dir, 0, a.Bytes)
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	return out
}

// times are the unique times of turns, in order.
func times(list []turn.Turn) []string {
	var out []string
	for _, t := range list {
		out = append(out, t.TS)
	}
	slices.Sort(out)
	return out
}

// said are the unique times of a transcript's lines.
func (m *machine) said(session string) []string {
	var out []string
	for _, l := range m.lines[session] {
		_, rest, _ := strings.Cut(l, `"ts":"`)
		ts, _, _ := strings.Cut(rest, `"`)
		out = append(out, ts)
	}
	return out
}

// TestInterleaving lets two machines work on one project: build, promote,
// merge, rename, import from one another, and be killed before any effect of
// any of these. Every session verifies at every moment, and in the end every
// turn is there once.
func TestInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "interleaving")
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer os.RemoveAll(root)
		machines := []*machine{newMachine(t, filepath.Join(root, "a")), newMachine(t, filepath.Join(root, "b"))}
		sessions := []string{one, two}
		clock := 0
		ctx := context.Background()
		for range rapid.IntRange(1, 14).Draw(t, "steps") {
			m := rapid.SampledFrom(machines).Draw(t, "machine")
			session := rapid.SampledFrom(sessions).Draw(t, "session")
			op := rapid.SampledFrom([]string{"say", "say", "build", "promote", "contract", "merge", "rename", "import"}).Draw(t, "op")
			if op == "say" {
				clock++
				m.say(session, rapid.SampledFrom([]string{"continue", "done"}).Draw(t, "text"), clock)
				op = "build"
			}
			do := func() error {
				e, ok := m.entry(session)
				switch {
				case op == "build":
					return m.build(session)
				case op == "import":
					other := machines[0]
					if other == m {
						other = machines[1]
					}
					f, err := m.from(other)
					if fault.Is(err, fault.Missing) {
						return nil // nothing there yet
					}
					for _, x := range f.Failed {
						if !fault.Is(x.Err, fault.Integrity) {
							return x.Err
						}
					}
					return err
				case !ok:
					return nil
				case op == "promote":
					_, err := verb.Promote(ctx, m.b, e, false, time.Now())
					return err
				case op == "contract":
					_, _, err := verb.SetContract(ctx, m.b, e, map[string]string{"RISKS": fmt.Sprint(clock)})
					return err
				case op == "rename":
					m.renamed++
					_, err := verb.Rename(ctx, m.b, e, fmt.Sprintf("p%d", m.renamed))
					return err
				case op == "merge":
					second, ok := m.entry(two)
					first, ok2 := m.entry(one)
					if !ok || !ok2 {
						return nil
					}
					_, err := verb.Merge(ctx, m.b, first, second, true)
					return err
				}
				return nil
			}
			kill := rapid.IntRange(0, 60).Draw(t, "kill")
			if kill == 0 {
				kill = 1 << 30
			}
			died := dieAt(kill, func() {
				if err := do(); err != nil && !fault.Is(err, fault.Integrity) {
					t.Fatalf("%s: %v", op, err)
				}
			})
			if died {
				m.restart()
			}
			for _, m := range machines {
				m.sound(fmt.Sprintf("%s of %s (killed: %t)", op, session, died))
			}
		}
		settle(t, machines, sessions)
	})
}

// settle lets everything run undisturbed, twice, and looks for every turn.
func settle(t *rapid.T, machines []*machine, sessions []string) {
	for range 2 {
		for i, m := range machines {
			m.restart()
			for _, s := range sessions {
				if err := m.build(s); err != nil {
					t.Fatalf("build: %v", err)
				}
			}
			if f, err := m.from(machines[1-i]); err != nil && !fault.Is(err, fault.Missing) || len(f.Failed) > 0 {
				t.Fatalf("import: %v %+v", err, f.Failed)
			}
			first, ok := m.entry(one)
			second, ok2 := m.entry(two)
			if ok && ok2 {
				if _, err := verb.Merge(context.Background(), m.b, first, second, true); err != nil {
					t.Fatalf("merge: %v", err)
				}
			}
			m.sound("the end")
		}
	}
	for i, m := range machines {
		if f, err := m.from(machines[1-i]); err == nil && len(f.Imported)+len(f.Conflicts) > 0 && i == 1 {
			t.Fatalf("an import that changes nothing imported %+v", f.Imported)
		}
		var both []string
		for _, s := range sessions {
			var want []string
			for _, x := range machines {
				want = append(want, x.said(s)...)
			}
			slices.Sort(want)
			e, ok := m.entry(s)
			if !ok {
				if len(want) > 0 {
					t.Fatalf("machine %d has no session %s of %d turns", i, s, len(want))
				}
				continue
			}
			if got := times(m.turns(e)); !slices.Equal(got, want) {
				t.Fatalf("machine %d, session %s: %v, want %v", i, s, got, want)
			}
			both = append(both, want...)
		}
		if e, ok := m.entry(one + "+merge+" + two); ok {
			slices.Sort(both)
			if got := times(m.turns(e)); !slices.Equal(got, both) {
				t.Fatalf("machine %d, the merge: %v, want %v", i, got, both)
			}
		}
	}
}
