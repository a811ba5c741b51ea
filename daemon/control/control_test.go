package control

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/go-json-experiment/json"

	"handoffd/engine/fault"
)

// Every kind of failure survives the wire.
func TestProblemsCarryTheFault(t *testing.T) {
	for _, row := range fault.Table {
		sent := fault.New(row.Kind, "what happened: %w", errors.New("cause")).WithHint("do this")
		raw, err := json.Marshal(ProblemOf(fmt.Errorf("wrapped: %w", sent)))
		if err != nil {
			t.Fatal(err)
		}
		var p Problem
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		got := p.Err()
		if got.Kind != row.Kind || got.Msg != "wrapped: what happened: cause" || got.Hint != "do this" {
			t.Errorf("%s became %+v", row.Name, got)
		}
		if p.OK || p.Status != row.Status || p.Exit != row.Exit || p.Title == "" || p.Type != "urn:handoffd:"+row.Name {
			t.Errorf("%+v", p)
		}
	}
	if p := ProblemOf(WithStatus(fault.New(fault.Usage, "no"), http.StatusMethodNotAllowed)); p.Status != 405 || p.Exit != 2 || p.Kind != "usage" {
		t.Errorf("%+v", p)
	}
	if e := (Problem{Kind: "from-the-future", Title: "new"}).Err(); e.Kind != fault.Internal || e.Msg != "new" {
		t.Errorf("unknown kind: %+v", e)
	}
}

// The shapes that old clients and scripts rely on.
func TestWireShapes(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{BuildRequest{Source: "/a", ForceModel: true}, `{"source":"/a","force_model":true}`},
		{AutoRequest{Source: "/a", MinFreshMS: new(int64)}, `{"source":"/a","min_fresh_ms":0}`},
		{AutoAnswer{OK: true, Action: ActionSkipFresh, Session: "s", SourceMtimeMS: 1.5, ManifestAt: 2}, `{"ok":true,"action":"skip-fresh","session":"s","source_mtime_ms":1.5,"manifest_at":2}`},
		{AutoAnswer{OK: true, Action: ActionCaptured, Session: "s", Output: "o"}, `{"ok":true,"action":"captured","session":"s","output":"o"}`},
		{IndexAnswer{OK: true, Action: Index, StaleSessions: []string{}, Damaged: []string{}}, `{"ok":true,"action":"index","sessions":0,"stale":0,"stale_sessions":[],"damaged":[]}`},
		{PokeRequest{Session: "s", Wait: true}, `{"session":"s","wait":true}`},
		{StopRequest{}, `{}`},
		{VersionAnswer{OK: true, Program: "handoffd", Release: Release{Version: "1", Go: "go"}, PID: 7, Store: "/s"}, `{"ok":true,"program":"handoffd","version":"1","go":"go","pid":7,"store":"/s"}`},
	} {
		raw, err := json.Marshal(c.value)
		if err != nil || string(raw) != c.want {
			t.Errorf("%T: %s, %v\nwant %s", c.value, raw, err, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	built := BuildAnswer{Action: ActionBuilt, Session: "s", Project: "p", Turns: 3, New: 2, Revision: 1, Dir: "/d"}
	if got := built.Line(); got != "handoff: built s project=p turns=3 new=2 rev=1 -> /d" {
		t.Error(got)
	}
	built.CrossLinks, built.Suggest = 1, "handoffctl retitle s x"
	if got := built.Line(); got != "handoff: built s project=p turns=3 new=2 rev=1 xlink-notes=1 suggest: handoffctl retitle s x -> /d" {
		t.Error(got)
	}
	if got := (BuildAnswer{Action: ActionUpToDate, Session: "s", Watermark: 4, Revision: 2}).Line(); got != "handoff: up-to-date (s, watermark 4, rev 2)" {
		t.Error(got)
	}
	s := Session{ID: "i", Project: "p", Harness: "h", Turns: 1, Revisions: 2, Updated: "u"}
	for _, c := range []struct {
		change func(*Session)
		want   string
	}{
		{func(*Session) {}, ""},
		{func(s *Session) { s.Kind, s.Parent = "subagent", "x" }, "  subagent of x"},
		{func(s *Session) { s.Kind, s.ForkedFrom = "fork", "x" }, "  fork of x"},
		{func(s *Session) { s.Kind = "warmup" }, "  warmup"},
		{func(s *Session) { s.Damaged = "why" }, "  damaged: why"},
	} {
		e := s
		c.change(&e)
		if got := e.Line(); got != "[p] i  harness=h  turns=1  rev=2  updated=u"+c.want {
			t.Error(got)
		}
	}
}

func TestThisRelease(t *testing.T) {
	if r := ThisRelease(); r.Version == "" || r.Go == "" {
		t.Errorf("%+v", r)
	}
}
