package daemon

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"handoffd/configs"
	"handoffd/daemon/capture"
	"handoffd/daemon/control"
	"handoffd/daemon/schedule"
	"handoffd/daemon/socket"
	"handoffd/engine/fault"
	"handoffd/engine/store"
)

// A socket that somebody removes, alone or with its directory, comes back.
func TestLostSocketComesBack(t *testing.T) {
	b := newBench(t)
	b.start()
	for i, lose := range []func() error{
		func() error { return os.Remove(b.socket()) },
		func() error { return os.RemoveAll(filepath.Dir(b.socket())) },
	} {
		b.client.Close() // its next call has to find the socket again
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		b.until("the socket", func() bool {
			return b.client.Remote(t.Context(), control.Version, new(control.VersionAnswer)) == nil
		})
		if n := strings.Count(b.log.String(), "the socket was removed"); n != i+1 {
			t.Errorf("said %d times after loss %d", n, i+1)
		}
	}
	if s := b.status(); !s.Healthy {
		t.Errorf("%+v", s)
	}
	if err := b.signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(b.socket()); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

// Neither connections that say nothing nor followers of events keep a client
// out for long.
func TestCrowdKeepsNobodyOut(t *testing.T) {
	for what, request := range map[string]string{
		"silent":    "",
		"followers": "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t)
			b.start()
			b.client.Close()
			var conns []net.Conn
			for range socket.MaxConns + 36 {
				c, err := socket.Dial(t.Context(), b.socket())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, _ = io.WriteString(c, request)
				conns = append(conns, c)
			}
			began := time.Now()
			b.until("an answer", func() bool {
				return b.client.Remote(t.Context(), control.Version, new(control.VersionAnswer)) == nil
			})
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("kept out for %v", took)
			}
			for _, c := range conns {
				c.Close()
			}
			if err := b.signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		})
	}
}

// Names that are not UTF-8 do not take an answer away.
func TestForeignBytesInStatus(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(b.home(), ".claude", "projects", "-\xff\xfebad")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skip("this file system takes no such name")
	}
	b.say(filepath.Join(dir, filepath.Base(b.session(7))), "captured or refused")
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(b.session(8))), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.say(b.session(1), "captured")
	b.start()
	b.until("the event", func() bool {
		stream, err := b.client.Open(t.Context(), control.Events, "follow=false", control.ContentStream)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		raw, _ := io.ReadAll(stream)
		return strings.Contains(string(raw), "\ufffdbad")
	})
	b.until("the capture", func() bool { return b.turns(b.session(1)) == 1 })
	b.status()
	// A request cannot carry such a name, and says so.
	err := b.call(control.Poke, control.PokeRequest{Source: dir + "/x.jsonl"}, nil)
	if !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), "not valid UTF-8") {
		t.Errorf("a request with such a name: %v", err)
	}
	if err := b.signal(os.Interrupt); err != nil {
		t.Error(err)
	}
}

// A reason whose text counts on is the same reason.
func TestReasonIsKnownByItsKind(t *testing.T) {
	d := &Daemon{}
	text := func(n int) string {
		var s capture.Stats
		for range n {
			s.Failures = append(s.Failures, schedule.Failure{Err: io.ErrUnexpectedEOF})
		}
		r := d.reasons(s)
		if len(r) != 1 || r[0].kind != "stuck" {
			t.Fatalf("%+v", r)
		}
		return r[0].text
	}
	if text(1) == text(2) {
		t.Error("the text does not count")
	}
}

// compare tells of a reason once, however it is worded by then.
func TestCompareTellsOfAReasonOnce(t *testing.T) {
	b := newBench(t)
	for n := 1; n <= 3; n++ {
		lock := store.Store{Root: b.store()}.SessionLock(id(b.session(n)))
		if err := os.MkdirAll(lock, 0o700); err != nil { // no session can be locked
			t.Fatal(err)
		}
	}
	b.start()
	for n := 1; n <= 3; n++ {
		b.say(b.session(n), "cannot be captured")
		b.until("the reason", func() bool {
			s := b.status()
			return len(s.Degraded) == 1 && strings.HasPrefix(s.Degraded[0], fmt.Sprintf("%d source(s)", n))
		})
		<-time.After(monitorEvery + 200*time.Millisecond) // it is compared
	}
	stream, err := b.client.Open(t.Context(), control.Events, "follow=false", control.ContentStream)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := io.ReadAll(stream)
	stream.Close()
	if d, r := strings.Count(string(raw), `"degraded"`), strings.Count(string(raw), `"recovered"`); d != 1 || r != 0 {
		t.Errorf("%d degraded, %d recovered\n%s", d, r, raw)
	}
	_ = b.signal(os.Interrupt) // what cannot be captured is left, or not
}

// What the configuration can say and nobody does is refused by name.
func TestUnsupportedDaemonKeys(t *testing.T) {
	c := configs.Daemon{Limits: configs.Limits{FileBytesPerPass: configs.DefaultFileBytesPerPass}}
	if err := supported(c); err != nil {
		t.Error(err)
	}
	c.Limits.FileBytesPerPass++
	if err := supported(c); !fault.Is(err, fault.Config) || !strings.Contains(err.Error(), "limits.file_bytes_per_pass is not supported by this version") {
		t.Error(err)
	}
}
