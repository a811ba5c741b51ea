package configs

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"handoffd/configs/document"
	"handoffd/engine/fault"
)

// OriginDefault is the origin of a value that no file, flag or variable set.
const OriginDefault = "default"

// layer is one file's settings, by dotted key.
type layer struct {
	file   string
	values map[string]any
}

func (l layer) text(key string) string {
	s, _ := l.values[key].(string)
	return s
}

func (l layer) texts(key string) []string {
	list, _ := l.values[key].([]any)
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, _ := e.(string)
		out = append(out, s)
	}
	return out
}

// settings are layers, the strongest first, and a note of which layer decided
// each key that was asked for.
type settings struct {
	layers []layer
	origin map[string]string
}

// lookup returns the value of key in the first layer that has it. The values
// have passed the schema, so a type that does not fit is an explicit null,
// which is T's zero value.
func lookup[T any](s *settings, key string, byDefault T) T {
	for _, l := range s.layers {
		v, ok := l.values[key]
		if !ok {
			continue
		}
		s.origin[key] = l.file
		var out T
		switch p := any(&out).(type) {
		case *bool:
			*p, _ = v.(bool)
		case *string:
			*p, _ = v.(string)
		case *int:
			n, _ := v.(int64)
			*p = int(min(n, math.MaxInt))
		case *int64:
			*p, _ = v.(int64)
		case *float64:
			switch v := v.(type) {
			case int64:
				*p = float64(v)
			case float64:
				*p = v
			}
		case *[]string:
			*p = l.texts(key)
		case *Patterns:
			*p = l.texts(key)
		}
		return out
	}
	s.origin[key] = OriginDefault
	return byDefault
}

// format is one kind of configuration file.
type format struct {
	name       string // as faults are prefixed
	schemaName string
	schema     func() *document.Schema
	// further returns what the schema cannot say.
	further func(layer) []document.Fault
}

// parse reads the text of the file at path. What is wrong is one error with
// every fault on its own line.
func (f format) parse(path string, text []byte) (layer, error) {
	o, faults, err := document.Parse(text)
	switch {
	case errors.Is(err, document.ErrNotObject):
		return layer{}, fault.New(fault.Config, "%s must contain a JSON object", path)
	case err != nil:
		return layer{}, fault.New(fault.Config, "cannot parse %s: %w", path, err)
	}
	schema := f.schema()
	broken := schema.Check(o)
	faults = append(faults, broken...)
	// A fault of one key must not hide those of another, nor reach the code
	// below, which relies on the schema.
	l := layer{file: path, values: schema.Settings(without(o, broken))}
	faults = append(faults, f.further(l)...)
	if len(faults) > 0 {
		return layer{}, f.invalid(path, faults)
	}
	return l, nil
}

// without returns o less the top-level keys that have a fault.
func without(o *document.Object, faults []document.Fault) *document.Object {
	bad := map[string]bool{}
	for _, f := range faults {
		key, _, _ := strings.Cut(f.Path, ".")
		key, _, _ = strings.Cut(key, "[")
		bad[key] = true
	}
	out := &document.Object{Values: map[string]any{}}
	for _, key := range o.Keys {
		if !bad[key] {
			out.Keys = append(out.Keys, key)
			out.Values[key] = o.Values[key]
		}
	}
	return out
}

// faultsMax bounds the lines of one message.
const faultsMax = 50

func (f format) invalid(path string, faults []document.Fault) *fault.Error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is invalid against %s:", path, f.schemaName)
	for i, ft := range faults {
		if i == faultsMax {
			fmt.Fprintf(&b, "\n  - and %d more", len(faults)-i)
			break
		}
		b.WriteString("\n  - " + ft.Text(f.name))
	}
	return fault.New(fault.Config, "%s", b.String())
}
