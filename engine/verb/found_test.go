package verb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"handoffd/engine/fault"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
	"handoffd/engine/verb"
	"handoffd/engine/verify"
)

var full = map[string]string{
	"RESULT": "DONE", "WHAT_CHANGED": "x", "VALIDATION": "x", "EVIDENCE": "log of run 7", "BLOCKERS": "x", "RISKS": "kept", "FOLLOW_UP": "x",
}

// TestHeadingOfContract lets an editor touch the heading: the contract stays,
// and what was edited below it counts.
func TestHeadingOfContract(t *testing.T) {
	const heading = "## Evidence contract (hand-authored — preserved across rebuilds)"
	for _, h := range []string{
		heading + " ", "## Evidence contract", "## evidence Contract", "# Evidence contract (hand-authored)", "### Evidence contract ##",
		"##  Evidence contract (hand-authored -- preserved across rebuilds)", "  " + heading,
	} {
		m := newMachine(t, t.TempDir())
		m.say(one, "go", 1)
		try(t, m.build(one))
		e, _ := m.entry(one)
		_, _, err := verb.SetContract(context.Background(), m.b, e, full)
		try(t, err)
		path := filepath.Join(m.store.SessionDir(e.Project, e.ID), store.BriefName)
		raw, err := os.ReadFile(path)
		try(t, err)
		text := strings.Replace(strings.Replace(string(raw), heading, h, 1), "RISKS: kept", "RISKS: edited", 1)
		write(t, path, text)
		m.say(one, "on", 2)
		try(t, m.build(one))
		c, err := verify.Written(m.store.SessionDir(e.Project, e.ID))
		if err != nil || !strings.Contains(c.Block, "RISKS: edited") || !strings.Contains(c.Block, "EVIDENCE: log of run 7") {
			t.Errorf("%q: %q %v", h, c.Block, err)
		}
		m.sound(h)
	}
}

// TestGateCoversContent alters what a manifest covers, keeping lengths.
func TestGateCoversContent(t *testing.T) {
	for _, name := range []string{store.TimelineName, store.SummaryName, store.PayloadName, store.BriefName, store.KeysName} {
		m := newMachine(t, t.TempDir())
		m.say(one, "continue with it", 1)
		try(t, m.build(one))
		e, _ := m.entry(one)
		_, _, err := verb.SetContract(context.Background(), m.b, e, full)
		try(t, err)
		if v, err := verify.Gate(m.store, e.Location()); err != nil || !v.OK {
			t.Fatalf("%+v %v", v, err)
		}
		path := filepath.Join(m.store.SessionDir(e.Project, e.ID), name)
		raw, err := os.ReadFile(path)
		try(t, err)
		text := strings.Replace(string(raw), "continue with it", "continue WITH it", 1)
		if name == store.KeysName {
			text = strings.Repeat("x", len(raw))
		}
		write(t, path, text)
		if v, err := verify.Gate(m.store, e.Location()); err != nil || v.OK {
			t.Errorf("%s: %+v %v", name, v, err)
		}
		if _, err := verb.Promote(context.Background(), m.b, e, true, time.Now()); !fault.Is(err, fault.Rejected) {
			t.Errorf("%s: promoted: %v", name, err)
		}
	}
}

// TestNumbersAfterImport lets a session with numbers of its own go on in two
// stores: no two turns of one have the same number.
func TestNumbersAfterImport(t *testing.T) {
	dir := t.TempDir()
	a, b := newMachine(t, filepath.Join(dir, "a")), newMachine(t, filepath.Join(dir, "b"))
	clock := 0
	for range 3 {
		clock++
		a.say(one, "common", clock)
		b.say(one, "common", clock)
	}
	for round := range 3 {
		for _, m := range []*machine{a, b} {
			for range 2 {
				clock++
				m.say(one, fmt.Sprint("own ", round), clock)
			}
			try(t, m.build(one))
		}
		try(t, imported(a, b))
		try(t, imported(b, a))
	}
	for _, m := range []*machine{a, b} {
		e, _ := m.entry(one)
		seen := map[int64]bool{}
		last := int64(-1)
		for _, x := range m.turns(e) {
			if seen[x.Seq] {
				t.Errorf("seq %d twice", x.Seq)
			}
			seen[x.Seq] = true
			last = max(last, x.Seq)
		}
		mf, _, err := store.ReadManifest(m.store.SessionDir(e.Project, e.ID))
		if err != nil || mf.Watermark != last || len(seen) != 15 {
			t.Errorf("watermark %d, last %d, %d turns, %v", mf.Watermark, last, len(seen), err)
		}
	}
}

// TestMovedAndImported moves a session with a short id on one side: it stays
// one session on both.
func TestMovedAndImported(t *testing.T) {
	dir := t.TempDir()
	a, b := newMachine(t, filepath.Join(dir, "a")), newMachine(t, filepath.Join(dir, "b"))
	a.say("s", "go", 1)
	try(t, a.build("s"))
	try(t, imported(b, a))
	e, _ := a.entry("s")
	_, err := verb.Rename(context.Background(), a.b, e, "elsewhere")
	try(t, err)
	try(t, imported(b, a))
	b.say("other", "go", 2)
	try(t, b.build("other"))
	try(t, imported(a, b))
	for _, m := range []*machine{a, b} {
		if list, err := m.b.Index.ByID("s"); err != nil || len(list) != 1 {
			t.Errorf("%v %v", list, err)
		}
	}
}

// TestMergesOfOneName merges a session with two others of one id.
func TestMergesOfOneName(t *testing.T) {
	m := newMachine(t, t.TempDir())
	m.say("a", "go", 1)
	m.say("same", "go", 2)
	try(t, m.build("a"))
	for _, p := range []string{"p1", "p2"} {
		_, err := m.b.Build(context.Background(), pipeline.Request{Source: m.path("same"), Session: "same", Project: p})
		try(t, err)
	}
	a, _ := m.entry("a")
	list, err := m.b.Index.ByID("same")
	if err != nil || len(list) != 2 {
		t.Fatalf("%v %v", list, err)
	}
	_, err = verb.Merge(context.Background(), m.b, a, list[0], true)
	try(t, err)
	if _, err := verb.Merge(context.Background(), m.b, a, list[1], true); !fault.Is(err, fault.Exists) {
		t.Errorf("a merge of others went into the same: %v", err)
	}
	_, err = verb.Merge(context.Background(), m.b, a, list[0], true)
	try(t, err)
}

// TestSameContractAgain sets what is set.
func TestSameContractAgain(t *testing.T) {
	m := newMachine(t, t.TempDir())
	m.say(one, "go", 1)
	try(t, m.build(one))
	e, _ := m.entry(one)
	_, first, err := verb.SetContract(context.Background(), m.b, e, full)
	try(t, err)
	_, again, err := verb.SetContract(context.Background(), m.b, e, full)
	if err != nil || again.Revisions != first.Revisions {
		t.Errorf("revision %d after %d, %v", again.Revisions, first.Revisions, err)
	}
}
