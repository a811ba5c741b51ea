// Package continuation is what the holder of a project's key does about denied
// sessions: write down what they hand off, let another session go on with it,
// lift a deny once, mend what is damaged. Each verb is attested in the ledger,
// and one that fails takes back what it wrote, where nobody wrote after it. It
// never runs without being asked, and never un-denies a session.
package continuation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
	"handoffd/policy/capture"
	"handoffd/policy/deny"
	"handoffd/policy/evidence"
	"handoffd/policy/mutation"
)

// Operator works on one project.
type Operator struct {
	Store  deny.Store
	Ledger evidence.Ledger
	Key    []byte
	// DryRun says what would be done, and changes nothing.
	DryRun bool
	// Ticket is what the environment says the project works on.
	Ticket string
	// Narrative reads transcripts, Tree the state of the working tree.
	Narrative capture.Read
	Tree      func(ctx context.Context, dir string) (branch string, status []string)
}

// Gate names of entries in the ledger.
const (
	gateWrite    = "context-handoff-write"
	gateResume   = "context-handoff-resume"
	gateBypass   = "context-handoff-bypass"
	gateRepair   = "context-handoff-repair"
	gateContinue = "context-handoff-continue"
)

// Attested is the entry of the ledger that a verb added.
type Attested struct {
	Gate string `json:"gate"`
	Seq  int64  `json:"seq"`
}

// Final is what a session handed off.
type Final struct {
	Schema  int     `json:"schema"`
	Session string  `json:"session_id"`
	Ticket  *string `json:"ticket_id"`
	Written string  `json:"written_at"`
	Host    string  `json:"host"`
	Hash    string  `json:"content_hash"`
	Kind    string  `json:"content_kind,omitempty"`
}

// DefaultHash is the hash of a final that nobody gave one: of what in it does
// not change.
func DefaultHash(session string, ticket *string, host string) string {
	raw, err := json.Marshal(map[string]any{"host": host, "schema": 1, "session_id": session, "ticket_id": ticket})
	if err == nil {
		raw, err = seal.Canonical(raw)
	}
	if err != nil {
		return seal.Sum([]byte(session + "\x00" + host)) // of text that is no UTF-8
	}
	return seal.Sum(raw)
}

func (o Operator) final(session string, ticket *string, host, hash, kind string) Final {
	return Final{Schema: 1, Session: session, Ticket: ticket, Written: deny.Stamp(o.Store.Now()), Host: host, Hash: hash, Kind: kind}
}

// local is the host of records whose harness nobody named.
const local = "local"

func orLocal(host string) string {
	if host = strings.TrimSpace(host); host == "" {
		return local
	}
	return host
}

// keyed refuses to change anything without a key.
func (o Operator) keyed() error {
	if len(o.Key) == 0 && !o.DryRun {
		return fault.New(fault.Operational, "nothing is written without the project's key").WithHint("set ADLC_MANIFEST_KEY, or name a file with --key-file")
	}
	return nil
}

// named refuses ids that cannot name files.
func named(flag, id string) error {
	if id == "" {
		return fault.New(fault.Operational, "--%s is missing", flag)
	}
	if !mutation.SafeID(id) {
		return fault.New(fault.Operational, "--%s: %q is no id of a session", flag, id)
	}
	return nil
}

// attest adds an entry to the ledger.
func (o Operator) attest(ctx context.Context, gate, ticket string, data any) (*Attested, error) {
	seq, err := o.Ledger.Append(ctx, o.Key, gate, ticket, data)
	if err != nil {
		return nil, err
	}
	return &Attested{gate, seq}, nil
}

// locked runs f under the lock of a session.
func (o Operator) locked(ctx context.Context, session string, f func() error) (err error) {
	l, err := o.Store.Lock(ctx, session)
	if err != nil {
		return err
	}
	defer func() {
		if released := l.Release(); err == nil && released != nil {
			err = fmt.Errorf("give the lock back: %w", released)
		}
	}()
	return f()
}

// maxFile bounds what a transaction reads of a file, in bytes.
const maxFile = 8 * capture.MaxBody

// transaction is what a verb wrote so far.
type transaction struct{ writes []written }

type written struct {
	path          string
	before, after []byte // nil for no file
}

// current returns a file's bytes, nil when there is none.
func current(path string) ([]byte, error) {
	raw, err := safefile.ReadOwn(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Operational, "%s is in the way: %w", path, err)
	}
	if raw == nil {
		raw = []byte{}
	}
	return raw, nil
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && string(a) == string(b) }

// put replaces a file that has the bytes before. The error is fault.Refused
// when it has others by now.
func (t *transaction) put(path string, before []byte, doc any) error {
	after, isText := doc.([]byte)
	if !isText {
		var err error
		if after, err = deny.Encode(doc); err != nil {
			return err
		}
	}
	if err := safefile.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	now, err := current(path)
	if err != nil {
		return err
	}
	if !same(now, before) {
		return fault.New(fault.Refused, "%s was changed by another", path).WithHint("try again")
	}
	t.writes = append(t.writes, written{path, before, after})
	if before == nil {
		err = safefile.Create(path, after)
	} else {
		err = safefile.Swap(path, after)
	}
	if errors.Is(err, fs.ErrExist) {
		t.writes = t.writes[:len(t.writes)-1]
		return fault.New(fault.Refused, "%s was made by another", path).WithHint("try again")
	}
	return err
}

// undo takes back what was written, the last first, where it still stands as
// it was written. It returns err, which is why, with what had to be left.
func (t *transaction) undo(err error) error {
	var left []string
	for i := len(t.writes) - 1; i >= 0; i-- {
		w := t.writes[i]
		now, readErr := current(w.path)
		if readErr == nil && same(now, w.before) {
			continue
		}
		if readErr != nil || !same(now, w.after) {
			left = append(left, w.path)
			continue
		}
		var undoErr error
		if w.before == nil {
			undoErr = safefile.Remove(w.path)
		} else {
			undoErr = safefile.Swap(w.path, w.before)
		}
		if undoErr != nil {
			left = append(left, w.path)
		}
	}
	if len(left) == 0 {
		return err
	}
	kind := fault.KindOf(err)
	if kind != fault.Refused {
		kind = fault.Operational
	}
	return fault.New(kind, "%w; left as they are now: %s", err, strings.Join(left, ", ")).WithHint("%s", fault.HintOf(err))
}
