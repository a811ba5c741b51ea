package store_test

import (
	"bytes"
	"reflect"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"handoffd/engine/store"
	"handoffd/engine/turn"
)

func anyTurn() *rapid.Generator[turn.Turn] {
	return rapid.Custom(func(t *rapid.T) turn.Turn {
		v := turn.Turn{
			Seq: rapid.Int64().Draw(t, "seq"), TS: rapid.String().Draw(t, "ts"),
			Class: rapid.SampledFrom([]turn.Class{turn.User, turn.Agent, turn.Thought, turn.ToolUse, turn.Other}).Draw(t, "class"),
			Text:  rapid.String().Draw(t, "text"), ID: rapid.String().Draw(t, "id"), Source: rapid.IntRange(0, 9).Draw(t, "source"),
			Agent: rapid.String().Draw(t, "agent"), Session: rapid.String().Draw(t, "session"), Mark: rapid.String().Draw(t, "mark"),
		}
		if rapid.Bool().Draw(t, "tool") {
			v.Tool = &turn.Tool{
				Phase: rapid.SampledFrom([]turn.Phase{turn.Call, turn.Result}).Draw(t, "phase"), Name: rapid.String().Draw(t, "name"),
				CallID: rapid.String().Draw(t, "call"), Error: rapid.Bool().Draw(t, "error"), Command: rapid.String().Draw(t, "command"),
			}
			if n := rapid.IntRange(-1, 255).Draw(t, "exit"); n >= 0 {
				v.Tool.Exit = &n
			}
			if e := rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "edits"); len(e) > 0 {
				v.Tool.Edits = e
			}
		}
		return v
	})
}

func TestTurnRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyTurn().Draw(t, "turn")
		line := store.AppendTurn(nil, &want)
		if bytes.Count(line, []byte("\n")) != 1 || !utf8.Valid(line) {
			t.Fatalf("not one line of UTF-8: %q", line)
		}
		got, err := store.ParseTurn(line[:len(line)-1])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got, want)
		}
	})
}

// FuzzTurn holds that whatever parses is written again as it was read.
func FuzzTurn(f *testing.F) {
	f.Add([]byte(`{"seq":0,"ts":"","class":"USER","text":"hi"}`))
	f.Add([]byte(`{"seq":7,"ts":"2026","class":"TOOL","text":"x","id":"u","source":1,"tool":{"phase":"result","name":"Bash","call_id":"c","exit":1,"error":true,"command":"ls","edits":["a"]},"agent":"a","session":"s","mark":"queued"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		first, err := store.ParseTurn(line)
		if err != nil {
			return
		}
		written := store.AppendTurn(nil, &first)
		second, err := store.ParseTurn(written[:len(written)-1])
		if err != nil || !bytes.Equal(written, store.AppendTurn(nil, &second)) {
			t.Fatalf("%v: %q becomes %q", err, line, written)
		}
	})
}

// TestNames holds that directory names are safe on every file system and do
// not meet.
func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		for _, name := range []string{store.DirName(a), store.HashedDirName(a), store.Slug(a)} {
			if name == "." || name == ".." || len(name) > 128 || bytes.ContainsAny([]byte(name), "/\\\x00\n:*?\"<>| ") || len(name) > 0 && name[0] == '.' {
				t.Fatalf("%q gives %q", a, name)
			}
		}
		if store.DirName(a) == "" {
			t.Fatalf("%q gives no name", a)
		}
		if a != b && store.DirName(a) == store.DirName(b) {
			t.Fatalf("%q and %q are both %q", a, b, store.DirName(a))
		}
	})
	for in, want := range map[string]string{
		"My Project": "my-project", "..": "", "a/b": "a-b", "--x--": "x", "": "", "UPPER_case.1": "upper_case.1",
	} {
		if got := store.Slug(in); got != want {
			t.Errorf("slug of %q: %q, want %q", in, got, want)
		}
	}
	if store.Slug("외주") == store.Slug("개인") || store.Slug("외주") == "" {
		t.Error("names in other scripts meet")
	}
}
