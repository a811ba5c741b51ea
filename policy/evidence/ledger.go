package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
	"handoffd/policy/deny"
	"handoffd/policy/lockfile"
)

const (
	// maxLedger bounds what is read of a ledger, in bytes.
	maxLedger = 256 << 20
	// patience is how long the published tool's lock is waited for, and poll
	// how often it is looked at: 400 times 5 ms, as it waits itself.
	patience = 2 * time.Second
	poll     = 5 * time.Millisecond
	// cutover is the gate of the entry that ends a root ledger which goes on
	// in segments.
	cutover = "manifest-cutover"
)

// Ledger is the record of one project.
type Ledger struct {
	Dir  string // .adlc
	Host string
	Now  func() time.Time
}

func (l Ledger) root() string     { return filepath.Join(l.Dir, "manifest.jsonl") }
func (l Ledger) segments() string { return filepath.Join(l.Dir, "manifest.d") }

// read returns a ledger's bytes; one that is not there is empty.
func read(path string) ([]byte, error) {
	raw, err := safefile.ReadSmall(path, maxLedger)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.Operational, "the ledger cannot be read: %w", err)
	}
	return raw, nil
}

// segmented reports whether the ledger is kept in segments.
func (l Ledger) segmented(root Chain) bool {
	raw, err := safefile.ReadSmall(filepath.Join(l.segments(), ".store.json"), 64<<10)
	var store struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	return root.LastGate == cutover || err == nil && json.Unmarshal(raw, &store) == nil && store.Format == "adlc-manifest-segments" && store.Version == 1
}

var segmentName = regexp.MustCompile(`\A[A-Za-z0-9._-]+\z`)

// open returns the file that is appended to.
func (l Ledger) open(key []byte) (path string, c Chain, segment bool, err error) {
	raw, err := read(l.root())
	if err != nil {
		return "", c, false, err
	}
	if c, err = Check(raw, key, false); err != nil || !l.segmented(c) {
		return l.root(), c, false, err
	}
	lineage, err := safefile.ReadSmall(filepath.Join(l.segments(), ".lineage"), 64<<10)
	var at struct {
		Segment string `json:"segment"`
	}
	if err != nil || json.Unmarshal(lineage, &at) != nil || !segmentName.MatchString(at.Segment) {
		return "", c, true, fault.New(fault.Operational, "the ledger is kept in segments, and none is open").
			WithHint("begin one with the published tool; any of its entries does")
	}
	path = filepath.Join(l.segments(), strings.TrimSuffix(at.Segment, ".jsonl")+".jsonl")
	if raw, err = read(path); err == nil && len(raw) == 0 {
		err = fault.New(fault.Operational, "the open segment %s of the ledger is not there", at.Segment)
	}
	if err != nil {
		return "", c, true, err
	}
	c, err = Check(raw, key, true)
	return path, c, true, err
}

// Verify checks the chain, and with a key its signatures. A ledger that is not
// there is no damage.
func (l Ledger) Verify(key []byte) error {
	_, _, segment, err := l.open(key)
	if segment && err != nil && key == nil {
		return nil // segments of which nothing is known here
	}
	return err
}

// lockBody is who holds the ledger, as the published tool writes it.
type lockBody struct {
	Version int    `json:"version"`
	Token   string `json:"token"`
	PID     int    `json:"pid"`
	Host    string `json:"hostname"`
	Started string `json:"startedAt"`
	By      string `json:"by,omitempty"`
}

func (l Ledger) lock(ctx context.Context, path string) (*lockfile.Lock, error) {
	body, err := deny.Encode(lockBody{1, deny.Nonce(), os.Getpid(), l.Host, deny.Stamp(l.Now()), "handoffd"})
	if err != nil {
		return nil, err
	}
	f := lockfile.Format{Body: body, Host: l.Host, Parse: func(raw []byte) lockfile.Owner {
		var b lockBody
		err := json.Unmarshal(raw, &b, jsontext.AllowDuplicateNames(true))
		return lockfile.Owner{PID: b.PID, Host: b.Host, Known: err == nil && b.PID > 0 && b.Host != "", Ours: b.By == "handoffd"}
	}}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		held, err := lockfile.Take(ctx, path+".lock", f)
		if err == nil || !fault.Is(err, fault.Refused) {
			return held, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fault.New(fault.Operational, "the ledger is in use: %w", err)
		}
	}
}

// Append adds an entry of a gate to the ledger, after checking all of it, and
// returns the entry's number. The error is fault.Operational.
func (l Ledger) Append(ctx context.Context, key []byte, gate, ticket string, data any) (seq int64, err error) {
	defer func() {
		if err != nil && !fault.Is(err, fault.Operational) {
			err = fault.New(fault.Operational, "append to the ledger: %w", err)
		}
	}()
	if err := safefile.MakeDir(l.Dir); err != nil {
		return 0, err
	}
	held, err := l.lock(ctx, l.root())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	path, c, segment, err := l.open(key)
	if err != nil {
		return 0, err
	}
	if segment {
		inner, err := l.lock(ctx, path)
		if err != nil {
			return 0, err
		}
		defer func() { _ = inner.Release() }()
		raw, err := read(path)
		if err != nil {
			return 0, err
		}
		if c, err = Check(raw, key, true); err != nil {
			return 0, err
		}
	}
	e := Entry{Seq: c.Seq + 1, Gate: gate, TS: deny.Stamp(l.Now()), Ticket: ticket}
	if segment {
		e.SigVersion = 2
	}
	if c.Entries > 0 {
		e.Prev = &c.LastHash
	}
	if e.Data, err = json.Marshal(data, json.Deterministic(true)); err != nil {
		return 0, err
	}
	line, err := e.line(key)
	if err != nil {
		return 0, err
	}
	line = append(line, '\n')
	if c.Open {
		line = append([]byte{'\n'}, line...)
	}
	return e.Seq, safefile.Append(path, line)
}

// Mend takes the unfinished last line off the root ledger, which a writer that
// died in the middle leaves, and keeps its bytes beside. It returns where, or
// "" when there was none. Anything else that is damaged stays.
func (l Ledger) Mend(ctx context.Context) (kept string, err error) {
	raw, err := read(l.root())
	if err != nil || len(raw) == 0 || raw[len(raw)-1] == '\n' {
		return "", err
	}
	held, err := l.lock(ctx, l.root())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	if raw, err = read(l.root()); err != nil {
		return "", err
	}
	whole := raw[:bytes.LastIndexByte(raw, '\n')+1]
	tail := raw[len(whole):]
	if len(tail) == 0 {
		return "", nil
	}
	if _, err := ParseEntry(tail); err == nil {
		return "", nil
	}
	kept = fmt.Sprintf("%s.torn.%d", l.root(), l.Now().UnixMilli())
	if err := safefile.Create(kept, tail); err != nil {
		return "", err
	}
	return kept, safefile.Swap(l.root(), whole)
}

const (
	recentEntries = 12
	recentBytes   = 64 << 10
)

// Recent returns the newest entries that can be read, at most 12 and from the
// last 64 KiB of the newest chain, the oldest first. It fails soft.
func (l Ledger) Recent() []Entry {
	path := l.root()
	if list, err := os.ReadDir(l.segments()); err == nil {
		var names []string
		for _, e := range list {
			if strings.HasSuffix(e.Name(), ".jsonl") {
				names = append(names, e.Name())
			}
		}
		if len(names) > 0 {
			path = filepath.Join(l.segments(), slices.Max(names))
		}
	}
	raw, err := safefile.ReadSmall(path, maxLedger)
	if err != nil {
		return nil
	}
	if cut := len(raw) - recentBytes; cut > 0 {
		raw = raw[cut:]
		_, raw, _ = bytes.Cut(raw, []byte("\n"))
	}
	var out []Entry
	for line := range bytes.SplitSeq(raw, []byte("\n")) {
		if e, err := ParseEntry(line); err == nil {
			out = append(out, e)
		}
	}
	return out[max(0, len(out)-recentEntries):]
}
