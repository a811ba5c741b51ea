package server

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
)

func (s *Server) version(_ context.Context, _ struct{}) (control.VersionAnswer, error) {
	a := control.VersionAnswer{
		OK: true, Program: s.Program, Release: control.ThisRelease(), PID: os.Getpid(), Store: s.Store.Root,
	}
	s.Daemon.About(&a)
	return a, nil
}

func (s *Server) status(ctx context.Context, _ control.StatusRequest) (control.StatusAnswer, error) {
	return s.Daemon.Status(ctx)
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request, _ []byte) error {
	return s.Daemon.Metrics(w, r)
}

func (s *Server) reload(ctx context.Context, _ control.ReloadRequest) (control.Done, error) {
	detail, err := s.Daemon.Reload(ctx)
	return control.Done{OK: true, Action: "reloaded", PID: os.Getpid(), Detail: detail}, err
}

func (s *Server) stop(ctx context.Context, _ control.StopRequest) (control.Done, error) {
	return control.Done{OK: true, Action: "stopping", PID: os.Getpid()}, s.Daemon.Stop(ctx)
}

// poke answers 202 at once, or 200 when the newest bytes are stored.
func (s *Server) poke(w http.ResponseWriter, r *http.Request, body []byte) error {
	var q control.PokeRequest
	if err := decode(body, &q); err != nil {
		return err
	}
	paths, err := s.poked(q)
	if err != nil {
		return err
	}
	err = s.Daemon.Poke(r.Context(), paths, q.Wait)
	var vain *control.Uncaptured
	switch {
	case errors.As(err, &vain):
		return &partial{err, control.PokeAnswer{Action: control.Poke, Sources: paths, Failed: vain.Failed}}
	case err != nil:
		return err
	}
	if q.Wait {
		return writeJSON(w, http.StatusOK, control.PokeAnswer{OK: true, Action: control.ActionStored, Sources: paths})
	}
	return writeJSON(w, http.StatusAccepted, control.PokeAnswer{OK: true, Action: control.ActionPoked, Sources: paths})
}

// poked lists the sources that a request means.
func (s *Server) poked(q control.PokeRequest) ([]string, error) {
	switch {
	case q.Source != "" && q.Session != "":
		return nil, fault.New(fault.Usage, "name a source or a session, not both")
	case q.Source != "":
		if err := checkSource(q.Source); err != nil {
			return nil, err
		}
		if !present(q.Source) {
			return nil, fault.New(fault.SourceMissing, "source not found: %s", q.Source)
		}
		return []string{q.Source}, nil
	case q.Session == "":
		return []string{}, nil
	}
	e, err := s.find(q.Session)
	if err != nil {
		return nil, err
	}
	m, err := s.manifest(e)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, src := range m.Sources {
		if present(src.Path) {
			paths = append(paths, src.Path)
		}
	}
	if len(paths) == 0 {
		return nil, fault.New(fault.SourceMissing, "no source of %s exists any more", m.Session)
	}
	return paths, nil
}

// present reports whether a source, or its compressed form, is there.
func present(path string) bool {
	for _, p := range []string{path, path + ".zst"} {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// events streams NDJSON: what is remembered, then what happens, unless
// follow=false.
func (s *Server) events(w http.ResponseWriter, r *http.Request, _ []byte) error {
	follow := true
	if v := r.URL.Query().Get("follow"); v != "" {
		var err error
		if follow, err = strconv.ParseBool(v); err != nil {
			return refuse(http.StatusBadRequest, "follow is true or false")
		}
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return control.WithStatus(fault.New(fault.Internal, "%d clients follow the events already", maxStreams), http.StatusServiceUnavailable)
	}
	list, err := s.Daemon.Events(r.Context(), follow)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", control.ContentStream)
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	for e := range list {
		raw, err := control.Encode(e)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(raw, '\n')); err != nil {
			return nil // the client has gone
		}
		_ = flush.Flush()
	}
	return nil
}
