package session_test

import (
	"bytes"
	"strings"
	"testing"

	"handoffd/engine/session"
)

func TestEncodeDecode(t *testing.T) {
	m := &session.Manifest{
		Session: "s \u2028<&>", Project: "p", Harness: "claude-code", CreatedAt: "2026-09-01T10:00:00.000Z",
		Counts: session.Counts{User: 1}, Schema: 1, Sources: []session.Source{{Path: "/x", Bytes: 7}},
		PromotedGate: "REJECTED", Extra: []byte(`{"later":{"b":1,"a":2}}`),
	}
	raw, err := session.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Sealed(raw); err != nil {
		t.Fatal(err)
	}
	back, err := session.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	again, err := session.Encode(back)
	if err != nil || !bytes.Equal(raw, again) {
		t.Fatalf("%v\n%s\n%s", err, raw, again)
	}
	if !strings.Contains(string(raw), "\"later\": {") || !strings.HasPrefix(string(raw), "{\n  \"session\": \"s") || raw[len(raw)-1] != '}' {
		t.Errorf("%s", raw)
	}
	order := []string{"session", "project", "harness", "model", "created_at", "source_paths", "watermark", "raw_sha256", "revisions", "updated_at", "turn_count", "counts"}
	at := 0
	for _, k := range order {
		i := strings.Index(string(raw)[at:], "\n  \""+k+"\":")
		if i < 0 {
			t.Fatalf("%s is out of the reference's order", k)
		}
		at += i + 1
	}
	tampered := bytes.Replace(raw, []byte(`"USER": 1`), []byte(`"USER": 2`), 1)
	if session.Sealed(tampered) == nil {
		t.Error("tampering passes")
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"session":"s","manifest_sha256":""}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := session.Decode(raw)
		if err != nil {
			return
		}
		once, err := session.Encode(m)
		if err != nil {
			return // what it holds cannot be sealed; nothing was written
		}
		if err := session.Sealed(once); err != nil {
			t.Fatalf("%v: %s", err, once)
		}
		back, err := session.Decode(once)
		if err != nil {
			t.Fatalf("%v: %s", err, once)
		}
		if twice, err := session.Encode(back); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n%s\n%s", err, once, twice)
		}
	})
}
