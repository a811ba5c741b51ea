package server

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"handoffd/configs"
	"handoffd/daemon/control"
	"handoffd/engine/fault"
	"handoffd/engine/pipeline"
	"handoffd/engine/store"
)

// bench is a server over a store of its own.
type bench struct {
	t   *testing.T
	dir string
	s   *Server
}

func newBench(t *testing.T, change func(*Config)) *bench {
	dir := t.TempDir()
	st := store.Store{Root: filepath.Join(dir, "store")}
	b := pipeline.New(st, pipeline.Options{})
	c := Config{
		Program: "handoffctl", Store: st, Builder: func() *pipeline.Builder { return b },
		DaemonSettings: func() (configs.Daemon, error) { return configs.Daemon{}, errors.New("none") },
	}
	if change != nil {
		change(&c)
	}
	return &bench{t, dir, New(c)}
}

// source writes a canonical transcript.
func (b *bench) source(name string, texts ...string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name+".jsonl")
	var text strings.Builder
	for _, s := range texts {
		raw, err := json.Marshal(map[string]string{"session": name, "role": "user", "text": s})
		if err != nil {
			b.t.Fatal(err)
		}
		text.Write(raw)
		text.WriteByte('\n')
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// post asks for a verb and decodes the answer into into.
func (b *bench) post(verb string, q, into any) *httptest.ResponseRecorder {
	b.t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		b.t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://handoffd/v1/"+verb, strings.NewReader(string(body)))
	w := b.do(r)
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			b.t.Fatalf("%s: %v: %s", verb, err, w.Body)
		}
	}
	return w
}

func (b *bench) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.s.ServeHTTP(w, r)
	if w.Header().Get(control.VersionHeader) == "" {
		b.t.Errorf("%s %s: no version in the answer", r.Method, r.URL)
	}
	return w
}

func TestRefusals(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []struct {
		what         string
		method, path string
		host, body   string
		header       [2]string
		status       int
	}{
		{"fine", "GET", "/v1/version", "localhost", "", [2]string{}, 200},
		{"fine by post", "POST", "/v1/version", "handoffd", "{}", [2]string{}, 200},
		{"no body is the empty object", "POST", "/v1/index", "handoffd", "", [2]string{}, 200},
		{"another host", "GET", "/v1/version", "example.com", "", [2]string{}, 403},
		{"a port", "GET", "/v1/version", "localhost:80", "", [2]string{}, 403},
		{"no host", "GET", "/v1/version", "", "", [2]string{}, 403},
		{"origin", "GET", "/v1/version", "localhost", "", [2]string{"Origin", "null"}, 403},
		{"empty origin", "GET", "/v1/version", "localhost", "", [2]string{"Origin", ""}, 403},
		{"referer", "GET", "/v1/version", "localhost", "", [2]string{"Referer", "x"}, 403},
		{"no such verb", "POST", "/v1/nothing", "localhost", "{}", [2]string{}, 404},
		{"no such path", "GET", "/", "localhost", "", [2]string{}, 404},
		{"a path that is cleaned elsewhere", "GET", "/v1/../v1/version", "localhost", "", [2]string{}, 404},
		{"wrong method", "GET", "/v1/build", "localhost", "", [2]string{}, 405},
		{"wrong method", "POST", "/v1/events", "localhost", "{}", [2]string{}, 405},
		{"wrong method", "DELETE", "/v1/status", "localhost", "", [2]string{}, 405},
		{"half a document", "POST", "/v1/list", "localhost", `{"all":`, [2]string{}, 400},
		{"two documents", "POST", "/v1/list", "localhost", `{}{}`, [2]string{}, 400},
		{"no object", "POST", "/v1/list", "localhost", `[]`, [2]string{}, 400},
		{"null", "POST", "/v1/list", "localhost", `null`, [2]string{}, 400},
		{"unknown member", "POST", "/v1/list", "localhost", `{"alll":true}`, [2]string{}, 400},
		{"other case", "POST", "/v1/list", "localhost", `{"ALL":true}`, [2]string{}, 400},
		{"twice", "POST", "/v1/list", "localhost", `{"all":true,"all":false}`, [2]string{}, 400},
		{"wrong type", "POST", "/v1/list", "localhost", `{"all":1}`, [2]string{}, 400},
		{"long body", "POST", "/v1/list", "localhost", `{"id":"` + strings.Repeat("x", control.MaxBody) + `"}`, [2]string{}, 413},
		{"another store", "POST", "/v1/list", "localhost", `{}`, [2]string{control.StoreHeader, url.QueryEscape("/elsewhere")}, 421},
		{"no store", "POST", "/v1/list", "localhost", `{}`, [2]string{control.StoreHeader, "%zz"}, 400},
		{"relative source", "POST", "/v1/build", "localhost", `{"source":"x"}`, [2]string{}, 400},
		{"no source", "POST", "/v1/build", "localhost", `{}`, [2]string{}, 404},
		{"source and session", "POST", "/v1/poke", "localhost", `{"source":"/x","session":"y"}`, [2]string{}, 400},
	} {
		r := httptest.NewRequest(c.method, "http://x"+c.path, strings.NewReader(c.body))
		r.Host = c.host
		if c.header[0] != "" {
			r.Header[c.header[0]] = []string{c.header[1]}
		}
		w := b.do(r)
		if w.Code != c.status {
			t.Errorf("%s: %d, want %d: %s", c.what, w.Code, c.status, w.Body)
		}
		if c.status == 200 {
			continue
		}
		var p control.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != c.status || p.Exit == 0 || p.Detail == "" ||
			w.Header().Get("Content-Type") != control.ContentProblem {
			t.Errorf("%s: %v %s", c.what, err, w.Body)
		}
	}
}

// Without a daemon, what only a daemon does is a failure of its own kind, and
// everything else works.
func TestNobody(t *testing.T) {
	b := newBench(t, nil)
	for _, path := range []string{"/v1/status", "/v1/events", "/metrics"} {
		r := httptest.NewRequest(http.MethodGet, "http://handoffd"+path, nil)
		var p control.Problem
		if err := json.Unmarshal(b.do(r).Body.Bytes(), &p); err != nil || p.Kind != "no-daemon" || p.Exit != 3 {
			t.Errorf("%s: %v %+v", path, err, p)
		}
	}
	for _, verb := range []string{control.Poke, control.Reload, control.Stop} {
		var p control.Problem
		b.post(verb, struct{}{}, &p)
		if p.Kind != "no-daemon" || p.Exit != 3 {
			t.Errorf("%s: %+v", verb, p)
		}
	}
	var built control.BuildAnswer
	b.post(control.Build, control.BuildRequest{Source: b.source("s1", "hello")}, &built)
	if !built.OK || built.Turns != 1 {
		t.Errorf("%+v", built)
	}
}

// auto leaves a fresh capture alone, but never the last change of a session
// that then rests.
func TestAutoKeepsTheTail(t *testing.T) {
	now := time.Now()
	b := newBench(t, func(c *Config) { c.Now = func() time.Time { return now } })
	path := b.source("s1", "one")
	auto := func() control.AutoAnswer {
		var a control.AutoAnswer
		if w := b.post(control.Auto, control.AutoRequest{Source: path}, &a); w.Code != 200 {
			t.Fatal(w.Body)
		}
		return a
	}
	if a := auto(); a.Action != control.ActionCaptured || !strings.HasPrefix(a.Output, "handoff: built s1 ") {
		t.Errorf("first: %+v", a)
	}
	b.source("s1", "one", "two")
	if a := auto(); a.Action != control.ActionSkipFresh || a.ManifestAt == 0 || a.SourceMtimeMS == 0 {
		t.Errorf("at once: %+v", a)
	}
	// The ancestor compares the source's time with the capture's alone and
	// would skip this for ever.
	now = now.Add(61 * time.Second)
	if a := auto(); a.Action != control.ActionCaptured {
		t.Errorf("a minute later: %+v", a)
	}
	now = now.Add(61 * time.Second)
	if a := auto(); a.Action != control.ActionUpToDate {
		t.Errorf("with nothing new: %+v", a)
	}
}

func TestShowIsAFileOrADocument(t *testing.T) {
	b := newBench(t, nil)
	b.post(control.Build, control.BuildRequest{Source: b.source("s1", "hello")}, nil)
	var doc control.ShowAnswer
	b.post(control.Show, control.ShowRequest{ID: "s"}, &doc)
	file, err := os.ReadFile(doc.File)
	if err != nil || doc.Text != string(file) || doc.Session != "s1" {
		t.Errorf("%v %+v", err, doc)
	}
	r := httptest.NewRequest(http.MethodPost, "http://handoffd/v1/show", strings.NewReader(`{"id":"s"}`))
	r.Header.Set("Accept", control.ContentRaw)
	if w := b.do(r); w.Body.String() != string(file) {
		t.Errorf("raw: %s", w.Body)
	}
	// What is appended and not committed is not shown.
	timeline := filepath.Join(filepath.Dir(doc.File), store.TimelineName)
	f, err := os.OpenFile(timeline, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("torn"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	b.post(control.Show, control.ShowRequest{ID: "s1", Timeline: true}, &doc)
	if strings.Contains(doc.Text, "torn") || !strings.Contains(doc.Text, "hello") {
		t.Errorf("timeline: %s", doc.Text)
	}
}

func TestVerifyOnRead(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Settings.VerifyOnRead = true })
	b.post(control.Build, control.BuildRequest{Source: b.source("s1", "hello")}, nil)
	var doc control.ShowAnswer
	b.post(control.Show, control.ShowRequest{ID: "s1"}, &doc)
	if !doc.OK {
		t.Fatalf("%+v", doc)
	}
	if err := os.WriteFile(doc.File, []byte("forged"), 0o600); err != nil {
		t.Fatal(err)
	}
	var p control.Problem
	b.post(control.Show, control.ShowRequest{ID: "s1"}, &p)
	if p.Kind != "integrity" || p.Exit != 1 {
		t.Errorf("%+v", p)
	}
}

// A failed verification is a problem with the whole answer beside it.
func TestVerifyFailureHasTheAnswer(t *testing.T) {
	b := newBench(t, nil)
	b.post(control.Build, control.BuildRequest{Source: b.source("s1", "hello")}, nil)
	b.post(control.Build, control.BuildRequest{Source: b.source("s2", "hello")}, nil)
	var doc control.ShowAnswer
	b.post(control.Show, control.ShowRequest{ID: "s2", Summary: true}, &doc)
	if err := os.WriteFile(doc.File, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var both struct {
		control.Problem
		Action   string             `json:"action"`
		Sessions []control.Verified `json:"sessions"`
	}
	w := b.post(control.Verify, control.VerifyRequest{All: true}, &both)
	if w.Code != http.StatusConflict || both.Exit != 1 || both.OK || len(both.Sessions) != 2 || !both.Sessions[0].OK || both.Sessions[1].OK {
		t.Errorf("%d %+v", w.Code, both)
	}
}

func TestPanicIsAProblem(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Builder = func() *pipeline.Builder { panic("boom") } })
	var p control.Problem
	if w := b.post(control.List, struct{}{}, &p); w.Code != 500 || p.Kind != "internal" || !strings.Contains(p.Detail, "boom") {
		t.Errorf("%d %+v", w.Code, p)
	}
}

// endless is a daemon whose events never end.
type endless struct{ nobody }

func (endless) Events(ctx context.Context, follow bool) (iter.Seq[control.Event], error) {
	return func(yield func(control.Event) bool) {
		if yield(control.Event{Type: control.EventCaptured}) && follow {
			<-ctx.Done()
		}
	}, nil
}

func TestFollowersAreBounded(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Daemon = endless{} })
	srv := httptest.NewUnstartedServer(b.s)
	srv.Start()
	defer srv.Close()
	get := func(query string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/events"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = control.Host
		res, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for range maxStreams {
		if res := get(""); res.StatusCode != 200 {
			t.Fatal(res.Status)
		} else {
			defer res.Body.Close()
		}
	}
	res := get("")
	defer res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one too many: %s", res.Status)
	}
	if raw, _ := io.ReadAll(res.Body); !strings.Contains(string(raw), "follow the events already") {
		t.Errorf("%s", raw)
	}
}

func TestEventsWithoutFollowing(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Daemon = endless{} })
	w := b.do(httptest.NewRequest(http.MethodGet, "http://handoffd/v1/events?follow=false", nil))
	if w.Code != 200 || strings.Count(w.Body.String(), "\n") != 1 || w.Header().Get("Content-Type") != control.ContentStream {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := b.do(httptest.NewRequest(http.MethodGet, "http://handoffd/v1/events?follow=perhaps", nil)); w.Code != 400 {
		t.Errorf("%d", w.Code)
	}
}

func TestListOfNothing(t *testing.T) {
	b := newBench(t, nil)
	var p control.Problem
	b.post(control.List, control.ListRequest{}, &p)
	if p.Exit != fault.NotFound.Exit() || p.Detail != "no handoffs yet" {
		t.Errorf("%+v", p)
	}
	b.post(control.List, control.ListRequest{Project: "a", ID: "b"}, &p)
	if p.Kind != "usage" {
		t.Errorf("%+v", p)
	}
}
