package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/daemon/control"
	"handoffd/engine/fault"
)

// answer makes a route of a verb that takes Q and answers A.
func answer[Q, A any](verb func(*Server, context.Context, Q) (A, error)) func(*Server, http.ResponseWriter, *http.Request, []byte) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request, body []byte) error {
		var q Q
		if err := decode(body, &q); err != nil {
			return err
		}
		a, err := verb(s, r.Context(), q)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, a)
	}
}

// decode reads a request body: one JSON object, no unknown members, no
// duplicates, nothing behind it. Nothing at all is the empty object.
func decode(body []byte, q any) error {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	if body[0] != '{' {
		return refuse(http.StatusBadRequest, "the request body is not a JSON object")
	}
	if err := json.Unmarshal(body, q, json.RejectUnknownMembers(true)); err != nil {
		return refuse(http.StatusBadRequest, "the request body is not understood: %w", err)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, status int, a any) error {
	raw, err := control.Encode(a)
	if err != nil {
		return fault.New(fault.Internal, "encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", control.ContentJSON)
	w.WriteHeader(status)
	_, err = w.Write(append(raw, '\n'))
	return err
}

// partial is a failure that has an answer all the same.
type partial struct {
	error
	answer any
}

// Unwrap returns the failure.
func (p *partial) Unwrap() error { return p.error }

// writeProblem answers a failure.
func writeProblem(w http.ResponseWriter, err error) {
	p := control.ProblemOf(err)
	doc, _ := control.Encode(p) // texts and numbers cannot fail
	var half *partial
	if errors.As(err, &half) {
		doc = join(doc, half.answer)
	}
	w.Header().Set("Content-Type", control.ContentProblem)
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(doc, '\n'))
}

// join puts the members of answer, but for "ok", behind those of doc. Where
// both have one, the answer's stands: a dispatch has a status of its own.
func join(doc []byte, answer any) []byte {
	raw, err := control.Encode(answer)
	if err != nil {
		return doc
	}
	theirs, err := members(raw)
	if err != nil {
		return doc
	}
	mine, err := members(doc)
	if err != nil {
		return doc
	}
	answered := map[string]bool{}
	for _, m := range theirs {
		answered[m.name] = true
	}
	out := bytes.NewBufferString("{")
	for i, m := range append(mine, theirs...) {
		ok := m.name == `"ok"`
		if ours := i < len(mine); ours && answered[m.name] && !ok || !ours && ok {
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.WriteString(m.name)
		out.WriteByte(':')
		out.Write(m.value)
	}
	out.WriteByte('}')
	return out.Bytes()
}

// member is a member of a JSON object, its name quoted.
type member struct {
	name  string
	value jsontext.Value
}

func members(doc []byte) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewReader(doc), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errors.New("not an object")
	}
	var out []member
	for d.PeekKind() == '"' {
		name, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m := member{name: string(name)}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = value.Clone()
		out = append(out, m)
	}
	return out, nil
}
