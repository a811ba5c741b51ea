package pipeline_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"handoffd/engine/pipeline"
	"handoffd/engine/session"
	"handoffd/engine/store"
	"handoffd/engine/verify"
)

// TestMain keeps the property tests short by default: each check builds a
// store with real syncs. -rapid.checks=N asks for more.
func TestMain(m *testing.M) {
	if f := flag.Lookup("rapid.checks"); f != nil {
		_ = f.Value.Set("15")
	}
	os.Exit(m.Run())
}

// bench is a store with one source in it.
type bench struct {
	t     testing.TB
	root  string
	store store.Store
	b     *pipeline.Builder
	clock time.Time
}

func newBench(t testing.TB) *bench {
	t.Helper()
	x := &bench{t: t, root: t.TempDir(), clock: time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)}
	x.store = store.Store{Root: filepath.Join(x.root, "store")}
	x.restart()
	return x
}

// restart forgets everything that is not on disk.
func (x *bench) restart() {
	x.b = pipeline.New(x.store, pipeline.Options{
		MaxBriefTokens: 30000, Linking: true, MinOverlap: 0.06,
		Now: func() time.Time { x.clock = x.clock.Add(time.Second); return x.clock },
	})
}

func (x *bench) path(rel string) string { return filepath.Join(x.root, filepath.FromSlash(rel)) }

func (x *bench) write(rel string, data []byte) string {
	x.t.Helper()
	p := x.path(rel)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(p, data, 0o644); err != nil {
		x.t.Fatal(err)
	}
	return p
}

func (x *bench) append(rel string, data []byte) {
	x.t.Helper()
	f, err := os.OpenFile(x.path(rel), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		x.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		x.t.Fatal(err)
	}
}

func (x *bench) build(rel string) *pipeline.Result {
	x.t.Helper()
	r, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(rel)})
	if err != nil {
		x.t.Fatalf("build %s: %v", rel, err)
	}
	return r
}

// only returns the one session of the store.
func (x *bench) only() (store.Location, string) {
	x.t.Helper()
	all, err := x.store.Sessions()
	if err != nil || len(all) != 1 {
		x.t.Fatalf("sessions: %v, %v", all, err)
	}
	return all[0], x.store.SessionDir(all[0].Project, all[0].Dir)
}

func (x *bench) verify() {
	x.t.Helper()
	all, err := x.store.Sessions()
	if err != nil {
		x.t.Fatal(err)
	}
	for _, l := range all {
		r, err := verify.Session(context.Background(), x.store, l)
		if err != nil || !r.OK {
			x.t.Fatalf("verify: %v %+v", err, r)
		}
	}
}

// outcome is what must not depend on how a source came to be.
type outcome struct {
	Timeline, Tools, Brief string
	Counts                 session.Counts
	Turns                  int
	Watermark              int64
	Quarantined, Unknown   int
}

var varying = []*regexp.Regexp{
	regexp.MustCompile(`\*\*Updated:\*\* \S+`), regexp.MustCompile(`\*\*Revision:\*\* \d+`),
	regexp.MustCompile(`revisions=\d+`), regexp.MustCompile(`manifest sha256: [0-9a-f]{64}`),
}

func (x *bench) outcome() outcome {
	x.t.Helper()
	_, dir := x.only()
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && name != store.ToolsName {
			x.t.Fatal(err)
		}
		return string(raw)
	}
	m, _, err := store.ReadManifest(dir)
	if err != nil {
		x.t.Fatal(err)
	}
	brief := strings.ReplaceAll(read(store.BriefName), x.root, "ROOT")
	for _, v := range varying {
		brief = v.ReplaceAllString(brief, "VARYING")
	}
	return outcome{
		Timeline: read(store.TimelineName), Tools: read(store.ToolsName), Brief: brief,
		Counts: m.Counts, Turns: m.TurnCount, Watermark: m.Watermark,
		Quarantined: m.Quarantined, Unknown: m.Unknown,
	}
}

func same(t interface{ Fatalf(string, ...any) }, what string, got, want outcome) {
	if got == want {
		return
	}
	diff := func(a, b string) string {
		la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
		for i := 0; i < max(len(la), len(lb)); i++ {
			var p, q string
			if i < len(la) {
				p = la[i]
			}
			if i < len(lb) {
				q = lb[i]
			}
			if p != q {
				return fmt.Sprintf("line %d:\n got %.300s\nwant %.300s", i+1, p, q)
			}
		}
		return "same"
	}
	t.Fatalf("%s:\ntimeline %s\ntools %s\nbrief %s\ncounts %+v / %+v turns %d / %d watermark %d / %d quarantined %d / %d unknown %d / %d", what,
		diff(got.Timeline, want.Timeline), diff(got.Tools, want.Tools), diff(got.Brief, want.Brief),
		got.Counts, want.Counts, got.Turns, want.Turns, got.Watermark, want.Watermark, got.Quarantined, want.Quarantined, got.Unknown, want.Unknown)
}

// sample is a transcript and where its harness would keep it.
type sample struct{ name, rel string }

const sessionFile = "home/projects/-srv-shop/4f1c0a52-6d7e-4c1b-9a51-0b7f1f6c2d10.jsonl"

var samples = []sample{
	{"../harness/claude/testdata/work.jsonl", sessionFile},
	{"../harness/claude/testdata/cumulative.jsonl", sessionFile},
	{"../harness/canonical/testdata/plain.jsonl", "home/plain.jsonl"},
	{"../harness/canonical/testdata/loose.jsonl", "home/loose.jsonl"},
	{"../harness/text/testdata/roles.txt", "home/roles.txt"},
}

func (s sample) data(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile(s.name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// damaged is a sample with every kind of damage in it.
func damaged(data []byte) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	var out []byte
	out = append(out, "\ufeff"...)
	for i, l := range lines {
		out = append(out, l...)
		switch i {
		case 1:
			out = append(out, bytes.Repeat([]byte{0}, 300)...)
			out = append(out, '\n')
		case 2:
			out = append(out, "{\"type\":\"user\",\"uuid\":\"torn\n"...)
		case 3:
			out = append(out, "42\n\n\r\nnot json at all\n"...)
		case 4:
			out = append(out, l[:len(l)/2]...) // a stub, with the next record glued on
		case 5:
			out = append(out[:len(out)-1], l...) // glued
		}
	}
	return out
}

func cases(t testing.TB) map[string]struct {
	rel  string
	data []byte
} {
	out := map[string]struct {
		rel  string
		data []byte
	}{}
	list := slices.Clone(samples)
	for _, pattern := range []string{"codex/testdata/*.jsonl", "gemini/testdata/*.jsonl", "pi/testdata/*.jsonl"} {
		names, err := filepath.Glob("../harness/" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v %v", pattern, names, err)
		}
		for _, n := range names {
			list = append(list, sample{n, "home/" + filepath.Base(filepath.Dir(filepath.Dir(n))) + "-" + filepath.Base(n)})
		}
	}
	for _, s := range list {
		d := s.data(t)
		out[filepath.Base(s.rel)] = struct {
			rel  string
			data []byte
		}{s.rel, d}
		if strings.HasSuffix(s.name, "work.jsonl") || strings.HasSuffix(s.name, "plain.jsonl") {
			out["damaged "+filepath.Base(s.name)] = struct {
				rel  string
				data []byte
			}{s.rel, damaged(d)}
		}
	}
	return out
}

// TestChunkInvariance grows each source in pieces of any size, with builds in
// between, by one process and by many.
func TestChunkInvariance(t *testing.T) {
	for name, c := range cases(t) {
		t.Run(name, func(t *testing.T) {
			whole := newBench(t)
			whole.write(c.rel, c.data)
			whole.build(c.rel)
			want := whole.outcome()
			whole.verify()
			rapid.Check(t, func(rt *rapid.T) {
				x := newBench(t)
				x.write(c.rel, nil)
				cuts := rapid.SliceOfN(rapid.IntRange(0, len(c.data)), 1, 12).Draw(rt, "cuts")
				restart := rapid.Bool().Draw(rt, "restart")
				at := 0
				for _, cut := range sorted(cuts, len(c.data)) {
					x.append(c.rel, c.data[at:cut])
					at = cut
					if restart {
						x.restart()
					}
					if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(c.rel)}); err != nil && at == len(c.data) {
						rt.Fatalf("last build: %v", err)
					}
				}
				same(rt, fmt.Sprint("cuts ", cuts), x.outcome(), want)
				x.verify()
			})
		})
	}
}

func sorted(cuts []int, end int) []int {
	out := append(cuts, end)
	for i := range out {
		for j := i + 1; j < len(out); j++ {
			if out[j] < out[i] {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return out
}
