package daemon

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"handoffd/daemon/socket"
	"handoffd/engine/index"
	"handoffd/engine/store"
)

// Clients that hold every connection, send half a request or a byte now and
// then do not keep anything from being captured, and are cut off in time.
func TestBadClientsStallNothing(t *testing.T) {
	b := newBench(t)
	b.start()
	b.client.Close() // gives back its connection
	var conns []net.Conn
	for i := range socket.MaxConns {
		c, err := socket.Dial(t.Context(), b.socket())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		switch i % 4 {
		case 1:
			_, _ = io.WriteString(c, "GET /v1/status HT")
		case 2:
			_, _ = io.WriteString(c, "POST /v1/build HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
		case 3:
			_, _ = c.Write(bytes.Repeat([]byte("x"), 1<<15))
		}
		conns = append(conns, c)
	}
	began := time.Now()
	b.say(b.session(1), "captured all the same")
	stored := index.Open(store.Store{Root: b.store()})
	b.until("the capture", func() bool {
		list, err := stored.Entries()
		return err == nil && len(list) == 1
	})
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("captured after %v", took)
	}
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		answer, err := io.ReadAll(c)
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Fatal("a connection is held for longer than its deadline")
		}
		if s := string(answer); s != "" && !strings.HasPrefix(s, "HTTP/1.1 4") {
			t.Errorf("answered %q", s)
		}
	}
	if s := b.status(); !s.Healthy || s.Captures.Built != 1 {
		t.Errorf("%+v", s)
	}
	if err := b.signal(os.Interrupt); err != nil {
		t.Error(err)
	}
}
