package continuation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"handoffd/engine/safefile"
	"handoffd/policy/capture"
	"handoffd/policy/deny"
	"handoffd/policy/mutation"
)

var ctx = context.Background()

var errKilled = errors.New("killed")

// TestKilled stops every verb before each of its effects, as a kill would:
// nothing after it happens, no taking back either. Then the same verb is asked
// again, and leads to where it would have led.
func TestKilled(t *testing.T) {
	const foreign = "theirs"
	for _, c := range []struct {
		name   string
		before func(t tester, o Operator)
		run    func(o Operator) error
		sound  func(o Operator) error
	}{
		{"write", nil, func(o Operator) error {
			_, err := o.Write(ctx, WriteInput{Session: "s1", Ticket: "T1", Hash: "h1"})
			return err
		}, func(o Operator) error { return bound(o, "s1", "h1") }},
		{"write again", func(t tester, o Operator) { write(t, o, "s1", "T1", "h0") }, func(o Operator) error {
			_, err := o.Write(ctx, WriteInput{Session: "s1", Ticket: "T1", Hash: "h1"})
			return err
		}, func(o Operator) error { return bound(o, "s1", "h1") }},
		{"resume", func(t tester, o Operator) { write(t, o, "s1", "T1", "h1") }, func(o Operator) error {
			_, err := o.Resume(ctx, "s2", "s1")
			return err
		}, func(o Operator) error { return consumedBy(o, "s1", "s2") }},
		{"bypass", nil, func(o Operator) error {
			_, err := o.Bypass(ctx, "s1", nil, "")
			return err
		}, func(o Operator) error {
			_, err := os.Stat(o.Store.Grant("s1"))
			return err
		}},
		{"repair", func(t tester, o Operator) { o.Store.Ensure("s1", nil, nil, "", "x") }, func(o Operator) error {
			_, err := o.Repair(ctx, RepairInput{Session: "s1", Ticket: "T1", Hash: "h1"})
			return err
		}, func(o Operator) error { return bound(o, "s1", "h1") }},
		{"repair of a damaged one", func(t tester, o Operator) {
			o.Store.Ensure("s1", nil, nil, "", "x")
			put(t, o.Store.Marker("s1"), "{")
		}, func(o Operator) error {
			_, err := o.Repair(ctx, RepairInput{Session: "s1", Ticket: "T1", Hash: "h1"})
			return err
		}, func(o Operator) error { return bound(o, "s1", "h1") }},
		{"forget", func(t tester, o Operator) {
			o.Store.Ensure("s1", nil, nil, "", "x")
			_ = os.Remove(o.Store.Marker("s1"))
		}, func(o Operator) error {
			_, err := o.Forget(ctx, "")
			if err != nil && !errors.Is(err, errKilled) && strings.Contains(err.Error(), "nothing to forget") {
				return nil
			}
			return err
		}, func(o Operator) error {
			if o.Store.Load().Hot() {
				return errors.New("still stale")
			}
			return nil
		}},
		{"unlock", func(t tester, o Operator) {
			put(t, o.Store.LockPath("s1"), `{"schema":1,"session_id":"s1","pid":4194304,"started_at":"t","host":"here","nonce":"n"}`)
		}, func(o Operator) error {
			_, err := o.Unlock(ctx, UnlockInput{Session: "s1", PID: 4194304, Started: "t", Host: "here", Nonce: "n"})
			if err != nil && strings.Contains(err.Error(), "is not locked") {
				return nil
			}
			return err
		}, func(o Operator) error { return nil }},
		{"continue", func(t tester, o Operator) { write(t, o, "s1", "T1", "h1") }, func(o Operator) error {
			_, err := o.Continue(ctx, ContinueInput{Denier: "s1", Successor: "s2"})
			if err != nil && strings.Contains(err.Error(), "already goes on with other work") {
				// The hint: another successor.
				_, err = o.Continue(ctx, ContinueInput{Denier: "s1", Successor: "s3"})
			}
			return err
		}, func(o Operator) error {
			m, _ := o.Store.Read("s1")
			if _, reason := capture.Verify(o.Store.Capture("s1"), deny.Text(m.Hash)); reason != "" {
				return errors.New(reason)
			}
			return errors.Join(consumedBy(o, "s1", m.ConsumedBy))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for stop := 0; ; stop++ {
				if stop > 200 {
					t.Fatal("it never ends")
				}
				o := operatorIn(filepath.Join(t.TempDir(), fmt.Sprint(stop)))
				put(t, o.Store.Auth("other"), foreign)
				put(t, o.Store.Grant("other"), foreign)
				if c.before != nil {
					c.before(t, o)
				}
				n, dead := 0, false
				restore := safefile.Intercept(func(string, string) error {
					if n++; n > stop {
						dead = true
						return errKilled
					}
					return nil
				})
				err := c.run(o)
				restore()
				if !dead && err == nil {
					if stop < 2 {
						t.Fatalf("only %d effects were seen", stop)
					}
					return
				}
				if err := again(c.run, o); err != nil {
					t.Fatalf("killed before effect %d, then: %v", stop+1, err)
				}
				if err := errors.Join(c.sound(o), o.Ledger.Verify(key)); err != nil {
					t.Fatalf("killed before effect %d: %v", stop+1, err)
				}
				for _, p := range []string{o.Store.Auth("other"), o.Store.Grant("other")} {
					if raw, err := os.ReadFile(p); err != nil || string(raw) != foreign {
						t.Fatalf("killed before effect %d: %s is %q", stop+1, p, raw)
					}
				}
				// A lock that a killed run left keeps nobody out.
				if l, err := o.Store.Lock(ctx, "s1"); err != nil || l.Release() != nil {
					t.Fatalf("killed before effect %d: %v", stop+1, err)
				}
				if left, _ := filepath.Glob(filepath.Join(o.Store.Dir(), "*.lock")); len(left) > 0 {
					t.Fatalf("killed before effect %d: %v is left", stop+1, left)
				}
			}
		})
	}
}

// again runs a verb that was killed: it may have been done to the end already.
func again(run func(Operator) error, o Operator) error {
	err := run(o)
	if err != nil && strings.Contains(err.Error(), "has gone on in session") {
		return nil
	}
	return err
}

func bound(o Operator, session, hash string) error {
	m, outcome := o.Store.Read(session)
	if outcome != deny.OK || m.Status != mutation.Open || deny.Text(m.Hash) != hash || !slices.Contains(o.Store.ReadSentinel().Sessions, session) {
		return fmt.Errorf("%+v %s", m, outcome)
	}
	return nil
}

func consumedBy(o Operator, session, by string) error {
	m, outcome := o.Store.Read(session)
	if outcome != deny.OK || m.Status != mutation.Consumed || m.ConsumedBy != by || by == "" {
		return fmt.Errorf("%+v %s", m, outcome)
	}
	return nil
}
