package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"handoffd/engine/pipeline"
	"handoffd/engine/verify"
)

// generate writes a synthetic Claude Code session of about size bytes: a
// prompt, tool calls with results, an answer.
func generate(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	vocabulary := strings.Fields("the quick handler returns a stale cursor when retry budget is exhausted so we move lock ordering into store layer and add regression test for watermark rollback under concurrent append next step todo blocked")
	words := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		}
		return b.String()
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	n := 0
	emit := func(typ string, message map[string]any, extra map[string]any) {
		n++
		o := map[string]any{
			"parentUuid": nil, "isSidechain": false, "userType": "external", "cwd": "/srv/shop",
			"sessionId": "4f1c0a52-6d7e-4c1b-9a51-0b7f1f6c2d10", "version": "2.1.200", "gitBranch": "main", "type": typ,
			"uuid": fmt.Sprintf("0a0a0a0a-0000-4000-8000-%012d", n), "timestamp": fmt.Sprintf("2026-09-01T%02d:%02d:%02d.000Z", n/3600%24, n/60%60, n%60),
			"message": message,
		}
		for k, v := range extra {
			o[k] = v
		}
		_ = enc.Encode(o)
	}
	usage := map[string]any{"input_tokens": 5, "output_tokens": 50, "cache_read_input_tokens": 90000, "cache_creation_input_tokens": 100}
	for out.Len() < size {
		emit("user", map[string]any{"role": "user", "content": words(30)}, nil)
		for range 3 {
			id := fmt.Sprintf("toolu_%d", n)
			emit("assistant", map[string]any{"id": fmt.Sprint("msg_", n), "role": "assistant", "model": "claude-opus-4-8", "usage": usage,
				"content": []any{map[string]any{"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{"command": "go test ./... -run " + words(1)}}}}, nil)
			result := words(200)
			emit("user", map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": result}}},
				map[string]any{"toolUseResult": map[string]any{"stdout": result, "stderr": ""}})
		}
		emit("assistant", map[string]any{"id": fmt.Sprint("msg_", n), "role": "assistant", "model": "claude-opus-4-8", "usage": usage,
			"content": []any{map[string]any{"type": "text", "text": words(80)}}}, nil)
	}
	return out.Bytes()
}

// BenchmarkTurn appends one 4 KB turn to a session and builds, as the daemon
// does.
func BenchmarkTurn(b *testing.B) {
	for _, mb := range []int{10, 100, 200} {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			x := newBench(b)
			x.write(sessionFile, generate(mb<<20))
			x.build(sessionFile)
			id := 1 << 30
			for b.Loop() {
				b.StopTimer()
				id++
				x.append(sessionFile, record(id, strings.Repeat("word ", 800)))
				b.StartTimer()
				if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(sessionFile), LazyPayload: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTurnCold is BenchmarkTurn by a new process each time.
func BenchmarkTurnCold(b *testing.B) {
	x := newBench(b)
	x.write(sessionFile, generate(100<<20))
	x.build(sessionFile)
	id := 1 << 30
	for b.Loop() {
		b.StopTimer()
		id++
		x.append(sessionFile, record(id, strings.Repeat("word ", 800)))
		x.restart()
		b.StartTimer()
		if _, err := x.b.Build(context.Background(), pipeline.Request{Source: x.path(sessionFile), LazyPayload: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCold builds a 100 MB session from nothing.
func BenchmarkCold(b *testing.B) {
	data := generate(100 << 20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		b.StopTimer()
		x := newBench(b)
		x.write(sessionFile, data)
		b.StartTimer()
		x.build(sessionFile)
		b.StopTimer()
		_ = os.RemoveAll(x.root)
		b.StartTimer()
	}
}

// BenchmarkVerify verifies a 100 MB session.
func BenchmarkVerify(b *testing.B) {
	x := newBench(b)
	data := generate(100 << 20)
	b.SetBytes(int64(len(data)))
	x.write(sessionFile, data)
	x.build(sessionFile)
	loc, _ := x.only()
	for b.Loop() {
		if r, err := verify.Session(context.Background(), x.store, loc); err != nil || !r.OK {
			b.Fatal(err, r)
		}
	}
}
