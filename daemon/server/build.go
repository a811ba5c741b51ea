package server

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/ingest"
	"handoffd/engine/pipeline"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

func (s *Server) build(ctx context.Context, q control.BuildRequest) (control.BuildAnswer, error) {
	if err := checkSource(q.Source); err != nil {
		return control.BuildAnswer{}, err
	}
	req := pipeline.Request{
		Source: q.Source, Session: q.Session, Harness: q.Harness, Model: q.Model, Project: q.Project, Objective: q.Objective,
		ForceHarness: q.ForceHarness, ForceModel: q.ForceModel, Strict: q.Strict,
	}
	list, many, err := ingest.Sessions(q.Source)
	switch {
	case many && err != nil:
		return control.BuildAnswer{}, err
	case many && q.Session == "":
		return s.captureAll(ctx, req, list)
	case many:
		i := slices.IndexFunc(list, func(m ingest.Session) bool { return m.ID == q.Session })
		if i < 0 {
			return control.BuildAnswer{}, fault.New(fault.NotFound, "no session %s in %s", q.Session, q.Source)
		}
		req.Source, req.Key, req.Session = list[i].Path, list[i].Key, ""
	}
	return s.capture(ctx, req)
}

// captureAll builds the sessions of a source that holds many. One that cannot
// be built is no reason to leave the others.
func (s *Server) captureAll(ctx context.Context, req pipeline.Request, list []ingest.Session) (control.BuildAnswer, error) {
	all := control.BuildAnswer{OK: true, Action: control.ActionUpToDate}
	for _, m := range list {
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		one := req
		one.Source, one.Key = safefile.PathBytes(m.Path), m.Key
		a, err := s.capture(ctx, one)
		switch kind := fault.KindOf(err); {
		case err == nil:
			all.Sessions = append(all.Sessions, a)
			if a.Action == control.ActionBuilt {
				all.Action = control.ActionBuilt
			}
		case kind == fault.NoTurns:
			all.Passed++
		default:
			all.OK = false
			all.Unbuilt = append(all.Unbuilt, control.Unbuilt{Source: m.Path, Kind: kind.String(), Err: err.Error()})
		}
	}
	if len(all.Sessions)+len(all.Unbuilt) == 0 {
		return all, fault.New(fault.NoTurns, "no usable turns parsed from %s: %d session(s) without any", req.Source, all.Passed)
	}
	return all, nil
}

// capture builds and tells the daemon.
func (s *Server) capture(ctx context.Context, req pipeline.Request) (control.BuildAnswer, error) {
	r, err := s.Builder().Build(ctx, req)
	if err != nil {
		return control.BuildAnswer{}, err
	}
	s.Daemon.Built(req.Source, r)
	a := control.BuildAnswer{
		OK: true, Action: control.ActionBuilt, Session: r.Session, Project: r.Project, Turns: r.Turns, New: r.New,
		Revision: r.Revision, Watermark: r.Watermark, Dir: r.Dir, CrossLinks: r.CrossLinks, Suggest: r.Suggest,
		Repaired: r.Repaired, Quarantined: r.Quarantined, NewDamage: r.NewDamage,
	}
	if !r.Built {
		a.Action = control.ActionUpToDate
	}
	return a, nil
}

// checkSource refuses a path that says nothing here. The client makes paths
// absolute: a relative one would mean the daemon's directory. Whether there is
// a transcript is for the engine to say, which also finds one that its harness
// has compressed.
func checkSource(path string) error {
	switch {
	case path == "":
		return fault.New(fault.SourceMissing, "no source given").WithHint("name the transcript with --source FILE")
	case !filepath.IsAbs(path):
		return fault.New(fault.Usage, "the source %s is not an absolute path", path)
	}
	return nil
}

// probeWait is how long auto looks at a session's lock: long enough for a busy
// machine to try once, too short for a capture.
const probeWait = 250 * time.Millisecond

// auto builds unless the session was captured a moment ago and the next call
// will still come in time. The ancestor skips whenever the source is little
// younger than the capture, however long ago that was, and so loses the tail
// of a session that then rests.
func (s *Server) auto(ctx context.Context, q control.AutoRequest) (control.AutoAnswer, error) {
	if err := checkSource(q.Source); err != nil {
		return control.AutoAnswer{}, err
	}
	fresh := time.Duration(control.DefaultMinFreshMS) * time.Millisecond
	if q.MinFreshMS != nil {
		if *q.MinFreshMS < 0 || *q.MinFreshMS > math.MaxInt64/int64(time.Millisecond) {
			return control.AutoAnswer{}, fault.New(fault.Usage, "min_fresh_ms must not be negative")
		}
		fresh = time.Duration(*q.MinFreshMS) * time.Millisecond
	}
	req := pipeline.Request{Source: q.Source, Session: q.Session, Harness: q.Harness, Project: q.Project}
	// Of a source that holds many, the one that changed last is meant.
	if list, many, err := ingest.Sessions(q.Source); many {
		if err != nil {
			return control.AutoAnswer{}, err
		}
		if len(list) == 0 {
			return control.AutoAnswer{}, fault.New(fault.NoTurns, "no usable turns parsed from %s", q.Source)
		}
		req.Source, req.Key = safefile.PathBytes(list[0].Path), list[0].Key
	}
	id, loc, captured, err := s.Builder().Find(req)
	if err != nil {
		return control.AutoAnswer{}, err
	}
	if captured {
		m, _, err := store.ReadManifest(s.Store.SessionDir(loc.Project, loc.Dir))
		if err == nil {
			if a, skip := s.skip(m, q.Source, fresh); skip {
				return a, nil
			}
		}
	}
	inFlight := fault.New(fault.Locked, "capture already in flight for %s", id).WithHint("try again when it has ended")
	// Unlike build, auto does not wait: whoever holds the lock captures, and
	// the next call comes soon.
	probe, err := safefile.Acquire(ctx, s.Store.SessionLock(id), probeWait)
	if fault.Is(err, fault.Locked) {
		return control.AutoAnswer{}, inFlight
	} else if err != nil {
		return control.AutoAnswer{}, err
	}
	if err := probe.Release(); err != nil {
		return control.AutoAnswer{}, fault.New(fault.Internal, "release the lock: %w", err)
	}
	b, err := s.capture(ctx, req)
	if fault.Is(err, fault.Locked) {
		return control.AutoAnswer{}, inFlight
	} else if err != nil {
		return control.AutoAnswer{}, err
	}
	a := control.AutoAnswer{OK: true, Action: control.ActionCaptured, Session: b.Session, Output: b.Line()}
	if b.Action == control.ActionUpToDate {
		a.Action = control.ActionUpToDate
	}
	return a, nil
}

// skip decides whether a captured source can wait.
func (s *Server) skip(m *session.Manifest, source string, fresh time.Duration) (control.AutoAnswer, bool) {
	info, err := os.Stat(source)
	if err != nil {
		return control.AutoAnswer{}, false
	}
	at, err := time.Parse(time.RFC3339, m.UpdatedAt)
	if err != nil {
		return control.AutoAnswer{}, false
	}
	if info.ModTime().Sub(at) >= fresh || s.Now().Sub(at) >= fresh {
		return control.AutoAnswer{}, false
	}
	return control.AutoAnswer{
		OK: true, Action: control.ActionSkipFresh, Session: m.Session,
		SourceMtimeMS: float64(info.ModTime().UnixNano()) / 1e6, ManifestAt: at.UnixMilli(),
	}, true
}
