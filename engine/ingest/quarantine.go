package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/go-json-experiment/json"

	"handoffd/engine/harness"
	"handoffd/engine/seal"
	"handoffd/engine/store"
)

// fragment is skipped bytes on their way into quarantine, in pieces.
type fragment struct {
	Offset int64  `json:"offset"` // in the source
	At     int64  `json:"at"`     // in quarantine/raw.bin
	Length int64  `json:"length"`
	Hash   []byte `json:"hash"`
	Reason string `json:"reason"`
}

// Entry is a line of quarantine/index.jsonl: where skipped bytes came from and
// where in quarantine/raw.bin they are, verbatim.
type Entry struct {
	Source string `json:"source"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Reason string `json:"reason"`
	SHA256 string `json:"sha256"`
	At     int64  `json:"raw_at"`
}

// quarantine keeps skipped bytes. Returns whether they were new.
func (p *pass) quarantine(f harness.Fragment) (kept bool, err error) {
	src := p.source()
	open := src.Fragment
	if open == nil {
		if (p.rereading || src.Rewritten) && !f.More {
			known, err := p.knownFragment(seal.Sum(f.Raw), int64(len(f.Raw)))
			if err != nil || known {
				return false, err
			}
		}
		open = &fragment{Offset: f.Offset, At: -1, Reason: f.Reason, Hash: seal.NewHash().Save()}
	}
	h, err := seal.RestoreHash(open.Hash)
	if err != nil {
		return false, err
	}
	_, _ = h.Write(f.Raw)
	at, err := p.Journal.Quarantine(f.Raw)
	if err != nil {
		return false, err
	}
	if open.At < 0 {
		open.At = at
	}
	open.Length += int64(len(f.Raw))
	open.Hash = h.Save()
	src.Fragment = open
	if f.More {
		return false, nil
	}
	src.Fragment = nil
	line := []byte(`{"source":`)
	line = seal.AppendString(line, src.Path)
	line = append(line, `,"offset":`...)
	line = strconv.AppendInt(line, open.Offset, 10)
	line = append(line, `,"length":`...)
	line = strconv.AppendInt(line, open.Length, 10)
	line = append(line, `,"reason":`...)
	line = seal.AppendString(line, open.Reason)
	line = append(line, `,"sha256":"`...)
	line = append(line, h.Sum()...)
	line = append(line, `","raw_at":`...)
	line = strconv.AppendInt(line, open.At, 10)
	line = append(line, '}', '\n')
	return true, p.Journal.QuarantineEntry(line)
}

// knownFragment reports whether the same bytes were kept before. It is asked
// only while a source is read again, or was once rewritten, so that damage may
// come back with the history around it.
func (p *pass) knownFragment(sum string, length int64) (bool, error) {
	if p.fragments == nil {
		p.fragments = map[string]bool{}
		if p.Journal.QuarantineLost() {
			return false, nil
		}
		entries, err := ReadQuarantine(p.Dir)
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			p.fragments[e.SHA256+strconv.FormatInt(e.Length, 10)] = true
		}
	}
	return p.fragments[sum+strconv.FormatInt(length, 10)], nil
}

// ReadQuarantine lists what a session directory keeps in quarantine. Lines
// that do not parse are passed over: the list may end in an unfinished one.
func ReadQuarantine(dir string) ([]Entry, error) {
	f, err := os.Open(filepath.Join(dir, store.QuarantineList))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open quarantine: %w", err)
	}
	defer f.Close()
	var out []Entry
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		var e Entry
		if json.Unmarshal(bytes.TrimSpace(line), &e) == nil {
			out = append(out, e)
		}
		if err != nil {
			return out, nil
		}
	}
}
