package client

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"handoffd/configs"
	"handoffd/daemon/control"
	"handoffd/daemon/socket"
	"handoffd/engine/fault"
)

// A daemon that is stopped takes connections, for the kernel does, and never
// answers: every verb says so within a moment.
func TestMuteDaemon(t *testing.T) {
	b := newBench(t)
	l, err := socket.Listen(b.env["HANDOFFD_SOCKET"])
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for verb, hint := range map[string]string{control.Status: "", control.List: "--local works without it"} {
		began := time.Now()
		_, err := call(t, b.client(nil), verb)
		if !fault.Is(err, fault.Unreachable) || !strings.HasPrefix(err.Error(), "the daemon does not answer") || fault.HintOf(err) != hint {
			t.Errorf("%s: %v, hint %q", verb, err, fault.HintOf(err))
		}
		if took := time.Since(began); took > 2*answerWait {
			t.Errorf("%s took %v", verb, took)
		}
	}
}

// One that answers may take its time, until the caller has enough.
func TestSlowVerbIsWaitedFor(t *testing.T) {
	b := newBench(t)
	b.serve(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see the client go
		if !strings.HasSuffix(r.URL.Path, control.Version) {
			select {
			case <-time.After(answerWait + time.Second/2):
			case <-r.Context().Done():
				return
			}
		}
		echo(w, r)
	})
	if _, err := call(t, b.client(nil), control.List); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := b.client(nil).Call(ctx, control.List, struct{}{}, nil); err == nil || ctx.Err() == nil || fault.Is(err, fault.Unreachable) {
		t.Errorf("after an interrupt: %v", err)
	}
}

// What a project's file may say and nobody does is refused by name.
func TestUnsupportedKeys(t *testing.T) {
	if err := supported(configs.StoreDefaults()); err != nil {
		t.Error(err)
	}
	for key, text := range map[string]string{
		"auto_capture":                   `{"auto_capture":true}`,
		"exclude_from_handoff":           `{"exclude_from_handoff":["a"]}`,
		"capture.exclude_patterns":       `{"capture":{"exclude_patterns":["x/"]}}`,
		"capture.include_tool_outputs":   `{"capture":{"include_tool_outputs":false}}`,
		"capture.truncate_tool_outputs":  `{"capture":{"truncate_tool_outputs":true}}`,
		"capture.max_tool_output_length": `{"capture":{"max_tool_output_length":7}}`,
	} {
		b := newBench(t)
		if err := os.WriteFile(filepath.Join(b.dir, configs.StoreFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := call(t, b.client(nil), control.Config)
		if !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), key+" is not supported by this version") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
