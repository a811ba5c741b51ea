package opencode

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/harness"
	"handoffd/engine/harness/ledger"
)

// maxFile bounds a file of the tree in memory; a larger one is passed over.
const maxFile = 64 << 20

// storage is the directory that a session's file is in, two levels down.
func storage(path string) string { return filepath.Dir(filepath.Dir(filepath.Dir(path))) }

// files lists the JSON files of a directory in the order of their names, which
// is that of time. A directory that is missing or cannot be read has none: it
// is looked at again when anything changes.
func files(dir string) []fs.DirEntry {
	list, _ := os.ReadDir(dir)
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool { return e.IsDir() || !strings.HasSuffix(e.Name(), ".json") })
}

// List implements harness.Bundle.
func (t Tree) List(path string, _ *harness.Listing) (*harness.Listing, error) {
	id := stem(path)
	key, ok, err := t.Key(path, id)
	if err != nil || !ok {
		return nil, fault.New(fault.SourceMissing, "source not found: %s", path)
	}
	return &harness.Listing{Members: map[string]harness.Member{id: {ID: id, Key: key}}}, nil
}

// Key implements harness.Bundle. It is made of the looks of every file of the
// session, so that a part that was unreadable and is whole now is seen.
func (Tree) Key(path, id string) (string, bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && stem(path) != id {
		return "", false, nil
	}
	if err != nil {
		return "", false, fault.New(fault.SourceMissing, "look at source: %w", err)
	}
	h := fnv.New64a()
	add := func(name string, info fs.FileInfo) { fmt.Fprintf(h, "%s %s\n", name, ledger.Looks(info)) }
	add("", info)
	n := 0
	walk(path, func(_, name string, e fs.DirEntry) error {
		if info, err := e.Info(); err == nil {
			add(name, info)
			n++
		}
		return nil
	})
	return fmt.Sprintf("%d-%x", n, h.Sum64()), true, nil
}

// walk visits the files of a session's messages, each followed by those of its
// parts, until visit fails.
func walk(path string, visit func(kind, name string, e fs.DirEntry) error) error {
	root, id := storage(path), stem(path)
	messages := filepath.Join(root, "message", id)
	for _, m := range files(messages) {
		if err := visit("message", filepath.Join(messages, m.Name()), m); err != nil {
			return err
		}
		parts := filepath.Join(root, "part", strings.TrimSuffix(m.Name(), ".json"))
		for _, p := range files(parts) {
			if err := visit("part", filepath.Join(parts, p.Name()), p); err != nil {
				return err
			}
		}
	}
	return nil
}

// young is how long after its last change a session's parts are looked at one
// by one: OpenCode writes the session's file at every prompt, and parts until
// the answer is there.
const young = 24 * time.Hour

// Glance implements harness.Bundle.
func (t Tree) Glance(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if time.Since(info.ModTime()) < young {
		key, _, _ := t.Key(path, stem(path))
		return key
	}
	glance := ledger.Glance(path)
	if dir, err := os.Stat(filepath.Join(storage(path), "message", stem(path))); err == nil {
		glance += fmt.Sprintf("-%d", dir.ModTime().UnixNano())
	}
	return glance
}

// Owner implements harness.Bundle.
func (t Tree) Owner(path string) (string, bool) { return path, t.Holds(path) }

// Export implements harness.Bundle. A file that is empty, filled with NUL bytes
// or no JSON costs itself alone; it is read when it is whole.
func (Tree) Export(path, id string, w harness.Spool) error {
	if err := w.Reset(); err != nil {
		return err
	}
	if stem(path) != id {
		return fault.New(fault.SourceMissing, "no session %s in %s", id, path)
	}
	raw, err := object(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.SourceMissing, "source not found: %s", path)
	}
	if err != nil {
		return fault.New(fault.NoTurns, "no usable turns parsed from %s: %w", path, err)
	}
	var line ledger.Line
	put := func(kind, id string, raw []byte) error {
		line.Begin(kind)
		line.Text("id", id)
		line.JSON("data", raw)
		return line.End(w)
	}
	if err := put("session", id, raw); err != nil {
		return err
	}
	broken := "" // the message whose file is unreadable: nobody knows who said its parts
	return walk(path, func(kind, name string, e fs.DirEntry) error {
		id := strings.TrimSuffix(e.Name(), ".json")
		if kind == "part" && filepath.Base(filepath.Dir(name)) == broken {
			return nil
		}
		raw, err := object(name)
		if err != nil {
			if kind == "message" {
				broken = id
			}
			return nil
		}
		return put(kind, id, raw)
	})
}

// object reads a file that holds a JSON object.
func object(path string) ([]byte, error) {
	raw, err := ledger.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(raw)
	if value.Kind() != '{' || !value.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil, errors.New("not a whole JSON object")
	}
	return raw, nil
}
