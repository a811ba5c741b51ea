package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"handoffd/daemon/control"
	"handoffd/daemon/logging"
	"handoffd/engine/fault"
)

const (
	// readTimeout is for a whole request.
	readTimeout = 5 * time.Second
	// writeTimeout is for each piece of an answer.
	writeTimeout = 30 * time.Second
	// idleTimeout is between two requests of a connection.
	idleTimeout = 30 * time.Second
)

// HTTPServer returns the server that the daemon serves the socket with. Its
// deadlines bound what a bad client can hold.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: 16 << 10,
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := s.Now()
	w.Header().Set(control.VersionHeader, control.ThisRelease().Version)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	rec := &recorder{ResponseWriter: w, control: http.NewResponseController(w)}
	err := s.guarded(rec, r)
	if err != nil && !rec.wrote {
		writeProblem(rec, err)
	} else if err != nil {
		// Half an answer must not look whole.
		s.Log.Debug("answer broke off", logging.Verb, r.URL.Path, logging.Err, err)
		panic(http.ErrAbortHandler)
	}
	s.Log.Debug("request", logging.Verb, r.URL.Path, logging.Status, rec.status, logging.Took, s.Now().Sub(began))
}

func (s *Server) guarded(w *recorder, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("a verb panicked", logging.Verb, r.URL.Path, logging.Err, fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "panic: %v", p).WithHint("this is a bug; the daemon's log has the stack")
		}
	}()
	t, err := s.admit(w, r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	// From here on the time is the verb's: a build may take long, and the
	// deadline of the request would end its context.
	_ = w.control.SetReadDeadline(time.Time{})
	if t.heavy {
		select {
		case s.heavy <- struct{}{}:
			defer func() { <-s.heavy }()
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	return t.serve(s, w, r, body)
}

// admit refuses what no client of ours sends: a browser is not a client.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (route, error) {
	for _, h := range []string{"Origin", "Referer"} {
		if _, ok := r.Header[h]; ok {
			return route{}, refuse(http.StatusForbidden, "a request with the header %s is refused", h)
		}
	}
	if r.Host != control.Host && r.Host != control.HostAlias {
		return route{}, refuse(http.StatusForbidden, "the host %q is neither %s nor %s", r.Host, control.HostAlias, control.Host)
	}
	t, ok := s.routes[r.URL.Path]
	if !ok {
		return route{}, refuse(http.StatusNotFound, "no such route: %s", r.URL.Path)
	}
	if !slices.Contains(t.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(t.methods, ", "))
		return route{}, refuse(http.StatusMethodNotAllowed, "%s is asked for with %s", r.URL.Path, strings.Join(t.methods, " or "))
	}
	return t, s.sameStore(r.Header.Get(control.StoreHeader))
}

// sameStore refuses a request that means another store.
func (s *Server) sameStore(escaped string) error {
	if escaped == "" {
		return nil
	}
	want, err := url.QueryUnescape(escaped)
	if err != nil {
		return refuse(http.StatusBadRequest, "the header %s is not query escaped", control.StoreHeader)
	}
	if physical(want) != physical(s.Store.Root) {
		return refuse(http.StatusMisdirectedRequest, "this daemon serves %s, not %s", s.Store.Root, want)
	}
	return nil
}

// physical follows links as far as the path exists.
func physical(path string) string {
	rest := ""
	for dir := filepath.Clean(path); ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		} else if !errors.Is(err, os.ErrNotExist) {
			return path
		}
		up := filepath.Dir(dir)
		if up == dir {
			return path
		}
		dir, rest = up, filepath.Join(filepath.Base(dir), rest)
	}
}

func refuse(status int, format string, args ...any) error {
	return control.WithStatus(fault.New(fault.Usage, format, args...), status)
}

func readBody(w *recorder, r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Method == http.MethodGet {
		return nil, nil
	}
	if r.ContentLength > control.MaxBody {
		return nil, tooLong() // before it is waited for
	}
	body, err := io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, control.MaxBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, tooLong()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, "the request body did not arrive in time")
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "read the request body: %w", err)
	}
	return body, nil
}

func tooLong() error {
	return refuse(http.StatusRequestEntityTooLarge, "the request body is longer than %d bytes", control.MaxBody)
}

// recorder notes whether an answer has begun, and gives each piece of it a
// deadline.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController
	wrote   bool
	status  int
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	w.wrote, w.status = true, status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *recorder) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.ResponseWriter.Write(p)
}

// Unwrap serves http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
