// Package execute does what a permission policy allowed, within bounds: it
// reads a file, or runs the one program that the policy names, and records
// every decision before it acts on it. It never runs anything of which the
// verdict is not ALLOWED, never streams what a child prints, and is meant for
// the process of the user who asks, never for a daemon.
package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"handoffd/engine/fault"
	"handoffd/policy/permission"
)

// The operations, as they stand in records.
const (
	OpEvaluate = "evaluate"
	OpRead     = "read"
	OpSpawn    = "spawn"
)

// Timeout is how long a child may run.
const Timeout = 15 * time.Second

// Runner executes within a scope. It is for one goroutine at a time.
type Runner struct {
	Scope   permission.Scope
	Records *Records
	// Path is the search path for a program that the policy gives by name.
	Path string
	// Timeout is how long a child may run; 0 is the constant.
	Timeout time.Duration
	// Sole says that this process has no children of its own. Then whatever
	// it is given as a child while one runs is that one's descendant, however
	// it hid, and is ended with it.
	Sole bool
}

// Evaluate decides, records, and does nothing.
func (r *Runner) Evaluate(risk permission.Risk, target string) (permission.Decision, error) {
	d := r.Scope.Evaluate(risk, target)
	rec := r.Records.New(OpEvaluate, d)
	if target != "" {
		rec.Set("target", target)
	}
	rec.Set("executed", false)
	r.Records.describe(rec, d)
	_, err := rec.Write()
	return d, err
}

// Read is what reading a file came to. It was executed, or refused by the
// decision, or failed with an error.
type Read struct {
	Decision permission.Decision
	Executed bool
	Bytes    int64
	SHA256   string // of the bytes, in hex
	Record   string // path of the record, as it is shown
	Err      error  // why an allowed read failed
}

// Read reads a file and says how long it is and what its SHA-256 is. The error
// is a record that could not be written, or a ctx that ended.
func (r *Runner) Read(ctx context.Context, risk permission.Risk, target string) (Read, error) {
	f, d, err := r.Scope.OpenRead(risk, target)
	out := Read{Decision: d, Err: err}
	rec := r.Records.New(OpRead, d)
	rec.Set("target", target)
	if f != nil {
		defer f.Close()
		h := sha256.New()
		n, err := io.Copy(h, ended{ctx, f})
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if out.Err = err; err == nil {
			out.Executed, out.Bytes, out.SHA256 = true, n, hex.EncodeToString(h.Sum(nil))
		}
	}
	rec.Set("executed", out.Executed)
	switch {
	case out.Executed:
		rec.Set("bytes", out.Bytes)
		rec.Set("content_sha256", out.SHA256)
	case out.Err != nil:
		rec.Set("execution_error", out.Err.Error())
	}
	r.Records.describe(rec, d)
	if real, err := r.Scope.Real(target); err == nil {
		rec.Set("real_target", real)
	}
	out.Record, err = rec.Write()
	return out, err
}

// ended is a reader that ends with a context.
type ended struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (e ended) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(p)
}

// program finds the program that the policy names, once: what is found is what
// is run.
func (r *Runner) program() (string, error) {
	name := r.Scope.Policy.Program
	missing := func(why string) error {
		return fault.New(fault.Internal, "the program %s that the policy names %s", name, why).
			WithHint(`install it, or name another with the policy's key "program"`)
	}
	if filepath.Base(name) != name {
		real, err := r.Scope.Real(name)
		if err != nil {
			return "", missing("cannot be found: " + err.Error())
		}
		if !runnable(real) {
			return "", missing("is no program: " + real)
		}
		return real, nil
	}
	for _, dir := range filepath.SplitList(r.Path) {
		if !filepath.IsAbs(dir) {
			continue // it would mean whatever directory we happen to be in
		}
		// With a separator in it, this only adds what the platform adds.
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil && runnable(path) {
			real, err := r.Scope.Real(path)
			if err == nil {
				return real, nil
			}
		}
	}
	return "", missing("is not installed: it is nowhere on PATH")
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	_, err = exec.LookPath(path)
	return err == nil
}
