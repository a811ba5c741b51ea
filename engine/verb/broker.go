package verb

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/index"
	"handoffd/engine/pipeline"
	"handoffd/engine/safefile"
	"handoffd/engine/seal"
)

// entryName is the broker's program below runtime/, as seed LEVEL5 has it, in
// whatever form: scripts for node, or anything that can be executed.
const entryName = "request-child-worker"

var nodeScripts = []string{".mjs", ".js", ".cjs"}

// brokerEntry finds the command line that the broker's program begins with.
func brokerEntry(root string, out Outside) ([]string, error) {
	dir := filepath.Join(root, "runtime")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Missing, "look for the broker: %w", err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		if name := e.Name(); name == entryName || strings.HasPrefix(name, entryName+".") {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
				found[name] = true
			}
		}
	}
	for _, ext := range nodeScripts {
		path := filepath.Join(dir, entryName+ext)
		if !found[entryName+ext] {
			continue
		}
		node, err := out.Look("node")
		if err != nil {
			return nil, fault.New(fault.Missing, "%s needs node: %w", path, err)
		}
		return []string{node, path}, errors.Join(out.Execute(node), out.Execute(path))
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names) // the bare name comes first
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && executable(info) {
			return []string{path}, out.Execute(path)
		}
	}
	return nil, fault.New(fault.Missing, "the broker has no entry: %s", filepath.Join(dir, entryName+".mjs")).
		WithHint("--broker names the directory above runtime/")
}

func executable(info fs.FileInfo) bool {
	if runtime.GOOS == "windows" {
		ext := strings.ToLower(filepath.Ext(info.Name()))
		return ext == ".exe" || ext == ".cmd" || ext == ".bat"
	}
	return info.Mode()&0o111 != 0
}

// lastLine is what a program said last, for a message.
func lastLine(out []byte) string {
	out = bytes.TrimSpace(out)
	if i := bytes.LastIndexByte(out, '\n'); i >= 0 {
		out = out[i+1:]
	}
	if len(out) > 200 {
		out = out[:200]
		for len(out) > 0 && !utf8.Valid(out) {
			out = out[:len(out)-1]
		}
	}
	if len(out) == 0 {
		return "it said nothing"
	}
	return strings.ToValidUTF8(string(out), "\ufffd")
}

// dispatchDir holds the records of dispatches, below the session's directory.
const dispatchDir = ".dispatch"

// record is one dispatch that is made at most once. It is written before the
// broker is asked and completed with its answer: where the machine dies in
// between, the record says that the dispatch was begun, and no other is made.
type record struct {
	Session        string         `json:"session"`
	ContractSHA256 string         `json:"contract_sha256"`
	TaskSHA256     string         `json:"task_sha256"`
	Envelope       Envelope       `json:"envelope"`
	Status         string         `json:"status"` // UNCERTAIN until it is known
	Output         jsontext.Value `json:"broker_output,omitzero"`
}

// once makes the dispatch unless a record says that it was begun.
func once(ctx context.Context, b *pipeline.Builder, e index.Entry, q Dispatch, s Sent, contract string, send func() (jsontext.Value, error)) (Sent, error) {
	r := record{
		Session: s.Envelope.FromHandoff, ContractSHA256: contract, TaskSHA256: seal.Sum([]byte(q.Task)),
		Envelope: s.Envelope, Status: Uncertain,
	}
	dir := filepath.Join(b.Store.SessionDir(e.Project, e.ID), dispatchDir)
	s.Record = filepath.Join(dir, seal.Sum([]byte(r.Session + "\x00" + r.ContractSHA256 + "\x00" + r.TaskSHA256))[:24]+".json")
	before, err := begin(ctx, b, e, s.Record, r, q.Again)
	if err != nil {
		return s, err
	}
	if before != nil {
		s.Before, s.Status, s.Envelope, s.Output = true, before.Status, before.Envelope, before.Output
		if s.Status != Dispatched {
			return s, fault.New(fault.Internal, "this dispatch was begun at %s and its end is not known", before.Envelope.DispatchedAt).
				WithHint("ask the broker; --again sends it once more")
		}
		return s, nil
	}
	s.Output, err = send()
	var never *notStarted
	if errors.As(err, &never) {
		return s, errors.Join(err, finish(ctx, b, e, s.Record, nil))
	}
	if err != nil {
		s.Status = Uncertain
		return s, err
	}
	r.Status, r.Output = Dispatched, s.Output
	return s, finish(ctx, b, e, s.Record, &r)
}

// begin writes the record, or returns the one that is there.
func begin(ctx context.Context, b *pipeline.Builder, e index.Entry, path string, r record, again bool) (*record, error) {
	lock, err := b.Lock(ctx, e.UUID)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	raw, err := safefile.ReadSmall(path, maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && again:
	case err != nil:
		return nil, fault.New(fault.Internal, "read the record of a dispatch: %w", err)
	default:
		old := r
		if err := json.Unmarshal(raw, &old); err != nil {
			return nil, fault.New(fault.Integrity, "the record of a dispatch is damaged: %s: %w", path, err).
				WithHint("ask the broker; --again sends it once more")
		}
		if err := old.Output.Compact(); len(old.Output) > 0 && err != nil {
			return nil, fault.New(fault.Integrity, "the record of a dispatch is damaged: %s: %w", path, err)
		}
		return &old, nil
	}
	if err := safefile.MakeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return nil, save(path, r)
}

// finish completes the record, or takes it away when nothing was sent.
func finish(ctx context.Context, b *pipeline.Builder, e index.Entry, path string, r *record) error {
	lock, err := b.Lock(context.WithoutCancel(ctx), e.UUID)
	if err != nil {
		return err
	}
	defer lock.Release()
	if r == nil {
		return safefile.Remove(path)
	}
	return save(path, *r)
}

func save(path string, r record) error {
	raw, err := json.Marshal(r, jsontext.WithIndent("  "))
	if err != nil {
		return fault.New(fault.Internal, "encode the record of a dispatch: %w", err)
	}
	return safefile.Replace(path, append(raw, '\n'))
}

// maxRecord bounds the record of a dispatch, in bytes.
const maxRecord = 8 << 20
