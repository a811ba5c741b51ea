package continuation

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/policy/capture"
	"handoffd/policy/deny"
	"handoffd/policy/mutation"
	"handoffd/policy/signed"
)

func TestContinue(t *testing.T) {
	said := `{"type":"assistant","timestamp":"2026-01-02T00:00:00Z","message":{"content":"Done: totals."}}` + "\n"
	t.Run("80", func(t *testing.T) {
		o := newOperator(t)
		write(t, o, "s1", "T1", "h1")
		from := filepath.Join(o.Store.Root, "t.jsonl")
		put(t, from, said)
		r, err := o.Continue(ctx, ContinueInput{Denier: "s1", Successor: "s2", From: from})
		if err != nil {
			t.Fatal(err)
		}
		m := marker(t, o, "s1")
		body, reason := capture.Verify(r.Path, r.Hash)
		var f Final
		raw, _ := os.ReadFile(o.Store.Final("s1"))
		_ = json.Unmarshal(raw, &f)
		a, ok, _ := signed.ReadAuth(o.Store, "s2")
		if reason != "" || deny.Text(m.Hash) != r.Hash || f.Hash != r.Hash || !ok || deny.Text(a.Hash) != r.Hash || !a.Verified(key) {
			t.Errorf("%q %+v %+v %+v", reason, m, f, a)
		}
		if m.Status != mutation.Consumed || m.ConsumedBy != "s2" || m.Kind != mutation.KindCapture || !strings.Contains(body, "Done: totals.") || !strings.Contains(r.Prompt, "s1 on ticket T1") {
			t.Errorf("%+v %s", m, r.Prompt)
		}
		_, err = o.Continue(ctx, ContinueInput{Denier: "s1"})
		wants(t, err, fault.Refused)
	})
	t.Run("81", func(t *testing.T) {
		for name, c := range map[string]struct {
			before func(t *testing.T, o *Operator)
			in     ContinueInput
			kind   fault.Kind
		}{
			"unbound":         {func(t *testing.T, o *Operator) { o.Store.Ensure("u", nil, nil, "", "x") }, ContinueInput{Denier: "u"}, fault.Refused},
			"no marker":       {nil, ContinueInput{Denier: "zz"}, fault.Refused},
			"self":            {nil, ContinueInput{Denier: "s1", Successor: "s1"}, fault.Refused},
			"no capture":      {nil, ContinueInput{Denier: "s1", From: "none"}, fault.Refused},
			"directory":       {nil, ContinueInput{Denier: "s1", From: "/"}, fault.Refused},
			"corrupt capture": {func(t *testing.T, o *Operator) { put(t, filepath.Join(o.Store.Root, "bad"), "garbage") }, ContinueInput{Denier: "s1", From: "bad"}, fault.Refused},
			"ticket flag":     {nil, ContinueInput{Denier: "s1", Ticket: "T9"}, fault.Refused},
			"ticket env":      {func(t *testing.T, o *Operator) { o.Ticket = "T9" }, ContinueInput{Denier: "s1"}, fault.Refused},
			"ticket pointer": {func(t *testing.T, o *Operator) {
				put(t, filepath.Join(o.Store.Ledger(), "current-ticket.json"), `"T9"`)
			}, ContinueInput{Denier: "s1"}, fault.Refused},
			"bad pointer":    {func(t *testing.T, o *Operator) { put(t, filepath.Join(o.Store.Ledger(), "current-ticket.json"), `{`) }, ContinueInput{Denier: "s1"}, fault.Refused},
			"used successor": {func(t *testing.T, o *Operator) { put(t, o.Store.Auth("s2"), "anything") }, ContinueInput{Denier: "s1", Successor: "s2"}, fault.Refused},
			"91 id with LF":  {func(t *testing.T, o *Operator) { o.Store.Ensure("a\nb", deny.Bind("T1"), deny.Bind("h"), "", "x") }, ContinueInput{Denier: "a\nb"}, fault.Refused},
			"unsafe id":      {nil, ContinueInput{Denier: "../x"}, fault.Operational},
			"no id":          {nil, ContinueInput{}, fault.Operational},
		} {
			o := newOperator(t)
			write(t, o, "s1", "T1", "h1")
			if c.before != nil {
				c.before(t, &o)
			}
			if c.in.From == "bad" {
				c.in.From = filepath.Join(o.Store.Root, "bad")
			}
			before := files(t, o)
			for _, dry := range []bool{false, true} {
				o.DryRun = dry
				if _, err := o.Continue(ctx, c.in); !fault.Is(err, c.kind) {
					t.Errorf("%s, dry %v: %v", name, dry, err)
				}
			}
			if !equal(files(t, o), before) {
				t.Errorf("%s: something moved", name)
			}
		}
	})
	t.Run("82", func(t *testing.T) {
		o := newOperator(t)
		write(t, o, "d1", "T1", "h1")
		write(t, o, "d2", "T1", "h1")
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, d := range []string{"d1", "d2"} {
			wg.Add(1)
			go func() {
				defer wg.Done()
				_, errs[i] = o.Continue(ctx, ContinueInput{Denier: d, Successor: "one"})
			}()
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatal(errs)
		}
		a, ok, _ := signed.ReadAuth(o.Store, "one")
		for i, d := range []string{"d1", "d2"} {
			m := marker(t, o, d)
			if won := errs[i] == nil; won != (m.Status == mutation.Consumed) || !ok || won != (a.Denier == d) || won == (m.Kind == "") {
				t.Errorf("%s: %+v, %+v", d, m, a)
			}
		}
	})
	t.Run("88", func(t *testing.T) {
		for age, kept := range map[time.Duration]bool{71 * time.Hour: true, 73 * time.Hour: false} {
			o := newOperator(t)
			write(t, o, "s1", "T1", "h1")
			from := filepath.Join(o.Store.Root, "t.jsonl")
			at := o.Store.Now().Add(-age)
			put(t, from, strings.Replace(said, "2026-01-02T00:00:00Z", at.Format(time.RFC3339), 1))
			r, err := o.Continue(ctx, ContinueInput{Denier: "s1", From: from})
			if err != nil || strings.Contains(r.Prompt, "Done: totals.") != kept || (r.Withheld == "") != kept {
				t.Errorf("%v: %+v, %v", age, r, err)
			}
			// Without a time in it the file's own counts.
			write(t, o, "s9", "T1", "h1")
			put(t, from, strings.Replace(said, "timestamp", "x", 1))
			if err := os.Chtimes(from, at, at); err != nil {
				t.Fatal(err)
			}
			r, err = o.Continue(ctx, ContinueInput{Denier: "s9", From: from})
			if err != nil || (r.Withheld == "") != kept {
				t.Errorf("%v by the file's time: %+v, %v", age, r, err)
			}
		}
	})
}

// Behaviour 85: what another writes in the middle stays, and is named.
func TestForeignBytesStay(t *testing.T) {
	for name, path := range map[string]func(Operator) string{
		"final":  func(o Operator) string { return o.Store.Final("s1") },
		"marker": func(o Operator) string { return o.Store.Marker("s1") },
		"auth":   func(o Operator) string { return o.Store.Auth("s2") },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t)
			write(t, o, "s1", "T1", "h1")
			target := path(o)
			restore := safefile.Intercept(func(op, p string) error {
				if op == "create" && strings.HasSuffix(p, "manifest.jsonl") {
					_ = os.WriteFile(target, []byte("theirs"), 0o600)
					return errKilled // and the ledger fails
				}
				return nil
			})
			_, err := o.Continue(ctx, ContinueInput{Denier: "s1", Successor: "s2"})
			restore()
			if err == nil || !strings.Contains(err.Error(), target) {
				t.Errorf("%v", err)
			}
			if raw, _ := os.ReadFile(target); string(raw) != "theirs" {
				t.Errorf("%q", raw)
			}
		})
	}
}
