package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/klauspost/compress/zstd"

	"handoffd/engine/pipeline"
	"handoffd/engine/store"
)

// record is a Claude Code user record with the given id and text.
func record(id int, text string) []byte {
	raw, err := json.Marshal(map[string]any{
		"type": "user", "uuid": fmt.Sprintf("0a0a0a0a-0000-4000-8000-%012d", id), "sessionId": "4f1c0a52-6d7e-4c1b-9a51-0b7f1f6c2d10",
		"cwd": "/srv/shop", "timestamp": fmt.Sprintf("2026-09-01T10:%02d:%02d.000Z", id/60%60, id%60),
		"message": map[string]any{"role": "user", "content": text},
	})
	if err != nil {
		panic(err)
	}
	return append(raw, '\n')
}

// line is a canonical line.
func line(text string) []byte {
	raw, err := json.Marshal(map[string]any{"role": "user", "text": text})
	if err != nil {
		panic(err)
	}
	return append(raw, '\n')
}

// texts lists the captured turns.
func (x *bench) texts() []string {
	x.t.Helper()
	_, dir := x.only()
	var out []string
	for t, err := range store.Turns(dir, -1) {
		if err != nil {
			x.t.Fatal(err)
		}
		out = append(out, t.Text)
	}
	return out
}

// TestHistories plays random histories of a source against a model: appends,
// truncations, rewrites in place, replacement, rotation, repetition. Every
// record that stood in the file at a build is captured, each once.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newBench(t)
		path := x.write(sessionFile, nil)
		var file []int // ids in the file
		captured := map[int]bool{}
		next := 1
		content := func() []byte {
			var b []byte
			for _, id := range file {
				b = append(b, record(id, fmt.Sprint("text ", id))...)
			}
			return b
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"append", "append", "append", "truncate", "rewrite", "replace", "repeat", "restart", "empty"}).Draw(rt, "step") {
			case "append":
				for range rapid.IntRange(1, 3).Draw(rt, "n") {
					file = append(file, next)
					x.append(sessionFile, record(next, fmt.Sprint("text ", next)))
					next++
				}
			case "repeat": // history appended again with the same ids
				n := rapid.IntRange(0, len(file)).Draw(rt, "from")
				for _, id := range file[n:] {
					x.append(sessionFile, record(id, fmt.Sprint("text ", id)))
				}
				file = append(file, file[n:]...)
			case "truncate":
				file = file[:rapid.IntRange(0, len(file)).Draw(rt, "keep")]
				x.write(sessionFile, content())
			case "rewrite": // other content in place, maybe larger
				file = nil
				for range rapid.IntRange(1, 6).Draw(rt, "n") {
					file = append(file, next)
					next++
				}
				x.write(sessionFile, content())
			case "replace": // another file under the name, maybe a longer history
				if rapid.Bool().Draw(rt, "grown") {
					file = append(file, next)
					next++
				}
				tmp := x.write("home/tmp", content())
				if err := os.Rename(tmp, path); err != nil {
					rt.Fatal(err)
				}
			case "empty":
				file = nil
				x.write(sessionFile, nil)
			case "restart":
				x.restart()
				continue
			}
			if _, err := x.b.Build(context.Background(), pipeline.Request{Source: path}); err != nil {
				if len(captured) == 0 && len(file) == 0 {
					continue
				}
				rt.Fatal(err)
			}
			for _, id := range file {
				captured[id] = true
			}
			got := x.texts()
			if len(got) != len(captured) {
				rt.Fatalf("%d turns, %d records were ever seen: %v", len(got), len(captured), got)
			}
			seen := map[string]bool{}
			for _, s := range got {
				if seen[s] {
					rt.Fatalf("%q twice", s)
				}
				seen[s] = true
			}
		}
		if len(captured) > 0 {
			x.verify()
		}
	})
}

// TestRepeatedLines keeps what is said twice, also where lines have no ids,
// and does not double it when the file is replaced by a copy or shrinks and
// grows again.
func TestRepeatedLines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newBench(t)
		const rel = "home/chat.jsonl"
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"continue", "yes", "go on"}), 1, 10).Draw(rt, "words")
		var all []byte
		for _, w := range words {
			all = append(all, line(w)...)
		}
		path := x.write(rel, all)
		x.build(rel)
		for range rapid.IntRange(1, 4).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"copy", "shrink", "grow"}).Draw(rt, "step") {
			case "copy":
				if err := os.Rename(x.write("home/tmp", all), path); err != nil {
					rt.Fatal(err)
				}
			case "shrink":
				n := rapid.IntRange(0, len(words)-1).Draw(rt, "lines")
				x.write(rel, bytes.Join(bytes.SplitAfter(all, []byte("\n"))[:n], nil))
				x.build(rel)
				x.write(rel, all)
			case "grow":
				w := rapid.SampledFrom([]string{"continue", "yes"}).Draw(rt, "word")
				words = append(words, w)
				all = append(all, line(w)...)
				x.write(rel, all)
			}
			x.build(rel)
		}
		if got := x.texts(); fmt.Sprint(got) != fmt.Sprint(words) {
			rt.Fatalf("got %v\nwant %v", got, words)
		}
		x.verify()
	})
}

func TestRepairedLine(t *testing.T) {
	x := newBench(t)
	one, two, three := record(1, "one"), record(2, "two"), record(3, "three")
	broken := append(bytes.Clone(two[:len(two)/2]), '\n')
	x.write(sessionFile, append(append(bytes.Clone(one), broken...), three...))
	if r := x.build(sessionFile); r.Quarantined == 0 {
		t.Fatal("damage is not counted")
	}
	x.write(sessionFile, append(append(bytes.Clone(one), two...), three...))
	x.build(sessionFile)
	if got := x.texts(); fmt.Sprint(got) != "[one three two]" {
		t.Fatal(got)
	}
	x.verify()
}

// TestSecondSource reads a session from two files; numbers without ids go on
// after the watermark, and the same file under another name is no second one.
func TestSecondSource(t *testing.T) {
	x := newBench(t)
	req := func(rel string) pipeline.Request {
		return pipeline.Request{Source: x.path(rel), Session: "both", Project: "p"}
	}
	build := func(rel string) {
		if _, err := x.b.Build(context.Background(), req(rel)); err != nil {
			t.Fatal(err)
		}
	}
	x.write("a.jsonl", append(line("one"), line("two")...))
	x.write("b.jsonl", append(line("one"), line("three")...))
	build("a.jsonl")
	build("b.jsonl")
	x.write("copy.jsonl", append(line("one"), line("two")...))
	build("copy.jsonl")
	x.append("a.jsonl", line("four"))
	build("a.jsonl")
	if got := x.texts(); fmt.Sprint(got) != "[one two one three four]" {
		t.Fatal(got)
	}
	x.verify()
}

func TestMovedAndCompressed(t *testing.T) {
	x := newBench(t)
	data := append(record(1, "one"), record(2, "two")...)
	path := x.write(sessionFile, data)
	x.build(sessionFile)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	x.write(sessionFile+".zst", enc.EncodeAll(data, nil))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r := x.build(sessionFile); r.New != 0 {
		t.Fatalf("%d new turns in the compressed copy", r.New)
	}
	x.write(sessionFile+".zst", enc.EncodeAll(append(data, record(3, "three")...), nil))
	x.build(sessionFile)
	if got := x.texts(); fmt.Sprint(got) != "[one two three]" {
		t.Fatal(got)
	}
	x.verify()
}

// TestTwoProjects keeps one session id apart in two projects.
func TestTwoProjects(t *testing.T) {
	x := newBench(t)
	for _, p := range []string{"alpha", "beta"} {
		x.write(p+".jsonl", line("in "+p))
		if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(p + ".jsonl"), Session: "main", Project: p}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := x.store.Sessions()
	if err != nil || len(all) != 2 {
		t.Fatalf("%v %v", all, err)
	}
	x.verify()
	for _, p := range []string{"alpha", "beta"} {
		e, err := x.b.Index.Find(p + "/main")
		if err != nil || e.Turns != 1 {
			t.Fatalf("%+v %v", e, err)
		}
	}
}

// TestCage builds sessions whose ids, projects, threads and texts try to get
// out.
func TestCage(t *testing.T) {
	evil := []string{
		"..", ".", "../../etc/x", "/abs", "a/b", `a\b`, "a\x00b", "a\nb", "-rf", "$(touch x)", "CON", "nul.txt", "a.", "a ",
		strings.Repeat("x", 300), "\x1b]52;c;AAAA\x07", "é", "e\u0301", "A", "a", "..\\..", ".hidden", ".new-x", "%n", "a_b",
	}
	x := newBench(t)
	outside := x.write("home/outside", []byte("untouched"))
	for i, id := range evil {
		raw, err := json.Marshal(map[string]any{"role": "user", "text": fmt.Sprintf("turn of %d", i), "session": id, "thread": "--" + id + "--"})
		if err != nil {
			t.Fatal(err)
		}
		rel := fmt.Sprintf("home/%d.jsonl", i)
		x.write(rel, append(raw, '\n'))
		for _, req := range []pipeline.Request{{Source: x.path(rel)}, {Source: x.path(rel), Session: id, Project: id}} {
			if _, err := x.b.Build(context.Background(), req); err != nil {
				t.Fatalf("%q: %v", id, err)
			}
		}
	}
	x.verify()
	entries, err := os.ReadDir(x.root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "home" && e.Name() != "store" {
			t.Errorf("outside the store: %q", e.Name())
		}
	}
	if raw, err := os.ReadFile(outside); err != nil || string(raw) != "untouched" {
		t.Errorf("%q %v", raw, err)
	}
	for _, e := range []string{"projects", "links", "INDEX.json", ".locks"} {
		if _, err := os.Stat(filepath.Join(x.store.Root, e)); err != nil && e != "links" {
			t.Error(err)
		}
	}
	top, _ := os.ReadDir(x.store.Root)
	if len(top) > 4 {
		t.Errorf("in the store's root: %v", top)
	}
	list, err := x.b.Index.Entries()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, e := range list {
		found[e.UUID] += e.Turns
	}
	for _, id := range evil {
		id = strings.ToValidUTF8(id, "\ufffd")
		if found[id] == 0 {
			t.Errorf("%q was swallowed by another session", id)
		}
	}
}

// TestDamageCountsOnce reads damage again, in a file that was replaced, and
// counts it as before.
func TestDamageCountsOnce(t *testing.T) {
	x := newBench(t)
	data := damaged(sample{name: "../harness/claude/testdata/work.jsonl"}.data(t))
	x.write(sessionFile, data)
	first := x.build(sessionFile)
	for i := range 3 {
		data = append(record(100+i, "put in front"), bytes.TrimPrefix(data, []byte("\ufeff"))...)
		x.write(sessionFile, data)
		r := x.build(sessionFile)
		o := x.outcome()
		if r.Quarantined != first.Quarantined || o.Unknown != 1 || r.New != 1 {
			t.Fatalf("rewrite %d: %+v, unknown %d", i, r, o.Unknown)
		}
	}
	x.verify()
}

// TestOriginFirst captures a Codex subagent before its parent was, and again
// where the parent can be found: what it replays is then the parent's.
func TestOriginFirst(t *testing.T) {
	const parent, child = "019faaaa-0000-7000-8000-000000000001", "019fbbbb-0000-7000-8000-000000000002"
	envelope := func(typ, payload string) string {
		return `{"timestamp":"2026-08-01T10:00:01.000Z","type":"` + typ + `","payload":` + payload + "}\n"
	}
	say := func(role, kind, text string) string {
		return envelope("response_item", `{"type":"message","role":"`+role+`","content":[{"type":"`+kind+`","text":"`+text+`"}]}`)
	}
	shared := say("user", "input_text", "look at the repository") + say("assistant", "output_text", "I looked")
	parentData := envelope("session_meta", `{"id":"`+parent+`","cwd":"/p"}`) + shared + say("user", "input_text", "thanks")
	childData := envelope("session_meta", `{"id":"`+child+`","cwd":"/p","source":{"subagent":{"thread_spawn":{"parent_thread_id":"`+parent+`","depth":1}}}}`) +
		shared + say("user", "input_text", "only the child") + say("assistant", "output_text", "done")
	for _, known := range []bool{false, true} {
		x := newBench(t)
		dir := "home/.codex/sessions/2026/08/01/rollout-2026-08-01T12-00-00-"
		parentPath := x.write(dir+parent+".jsonl", []byte(parentData))
		x.write(dir+child+".jsonl", []byte(childData))
		opt := pipeline.Options{}
		if known {
			opt.Origin = func(id string) (string, bool) { return parentPath, id == parent }
		}
		x.b = pipeline.New(x.store, opt)
		x.build(dir + child + ".jsonl")
		e, err := x.b.Index.Find(child)
		if err != nil {
			t.Fatal(err)
		}
		want := 4
		if known {
			want = 2
			if _, err := x.b.Index.Find(parent); err != nil {
				t.Error(err)
			}
		}
		if e.Turns != want || e.Parent != parent || e.Kind != "subagent" {
			t.Errorf("known %v: %+v", known, e)
		}
		x.verify()
	}
}

// TestSameIDElsewhere finds a session again whose source was moved, even after
// it was renamed, and keeps a copy in another project apart.
func TestSameIDElsewhere(t *testing.T) {
	in := func(cwd string, id int, text string) []byte {
		return bytes.Replace(record(id, text), []byte(`"cwd":"/srv/shop"`), []byte(`"cwd":"`+cwd+`"`), 1)
	}
	x := newBench(t)
	const name = "4f1c0a52-6d7e-4c1b-9a51-0b7f1f6c2d10.jsonl"
	x.write("home/projects/-srv-shop/"+name, in("/srv/shop", 1, "one"))
	x.build("home/projects/-srv-shop/" + name)
	x.write("home/projects/-srv-mill/"+name, in("/srv/mill", 2, "two"))
	x.build("home/projects/-srv-mill/" + name)
	if all, err := x.store.Sessions(); err != nil || len(all) != 2 {
		t.Fatalf("%v %v", all, err)
	}
	x.verify()
	y := newBench(t)
	y.write("home/projects/-srv-shop/"+name, in("/srv/shop", 1, "one"))
	y.build("home/projects/-srv-shop/" + name)
	if err := os.MkdirAll(y.path("home/projects/-srv-mill"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(y.path("home/projects/-srv-shop/"+name), y.path("home/projects/-srv-mill/"+name)); err != nil {
		t.Fatal(err)
	}
	y.append("home/projects/-srv-mill/"+name, in("/srv/mill", 2, "two"))
	y.restart()
	y.build("home/projects/-srv-mill/" + name)
	if got := y.texts(); fmt.Sprint(got) != "[one two]" {
		t.Fatal(got)
	}
	y.verify()
}
