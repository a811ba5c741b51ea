package client

import (
	"io"
	"net/http"
	"sync"
)

// inProcess is a transport that calls a handler in this process. The handler
// runs while its answer is read; closing the answer ends it.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	read, write := io.Pipe()
	w := &pipeWriter{header: http.Header{}, pipe: write, begun: make(chan struct{})}
	served := r.Clone(r.Context())
	served.Host = r.URL.Host
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			// As on a connection: an aborted answer breaks off.
			if p := recover(); p == http.ErrAbortHandler {
				w.WriteHeader(http.StatusInternalServerError)
				_ = write.CloseWithError(io.ErrUnexpectedEOF)
			} else if p != nil {
				panic(p)
			}
		}()
		t.handler.ServeHTTP(w, served)
		w.WriteHeader(http.StatusOK)
		_ = write.Close()
	}()
	<-w.begun
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &pipeBody{read, done}, ContentLength: -1, Request: r,
	}, nil
}

// pipeWriter is the http.ResponseWriter of a handler in this process.
type pipeWriter struct {
	header http.Header
	pipe   *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closed when status and sent are set
	status int
	sent   http.Header
}

// Header implements http.ResponseWriter.
func (w *pipeWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

// Write implements io.Writer.
func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush implements http.Flusher: nothing is held back.
func (w *pipeWriter) Flush() {}

// pipeBody waits for the handler when it is closed.
type pipeBody struct {
	*io.PipeReader
	done chan struct{}
}

// Close implements io.Closer.
func (b *pipeBody) Close() error {
	err := b.PipeReader.Close()
	<-b.done
	return err
}
