package document

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type Schema struct{ root *node }

// Key is one setting that a schema knows.
type Key struct {
	Path    string // dotted, such as "capture.include_tool_outputs"
	Default any    // as Parse would read it; nil also when none is given
	// HasDefault tells a default of null from none.
	HasDefault bool
}

type node struct {
	types      []string
	enum       []any
	min, max   *float64
	minLength  int
	maxItems   int // -1 is no limit
	items      *node
	names      []string // of properties, in the order of the schema
	properties map[string]*node
	required   []string
	closed     bool // additionalProperties: false
	def        any
	hasDefault bool
}

// annotations are the keywords that say something to people and nothing to Check.
var annotations = []string{"$schema", "$id", "$comment", "title", "description", "examples"}

// Compile reads a schema. A keyword that Check would not honour is an error,
// so that a schema cannot promise more than is enforced.
func Compile(data []byte) (*Schema, error) {
	o, faults, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("read schema: %s", faults[0].Text("schema"))
	}
	root, err := compile(o, "schema")
	if err != nil {
		return nil, err
	}
	if !slices.Equal(root.types, []string{"object"}) {
		return nil, fmt.Errorf("schema: the document must be an object")
	}
	return &Schema{root}, nil
}

func compile(v any, at string) (*node, error) {
	o, ok := v.(*Object)
	if !ok {
		return nil, fmt.Errorf("%s: a schema is an object", at)
	}
	n := &node{maxItems: -1, properties: map[string]*node{}}
	for _, key := range o.Keys {
		if err := n.keyword(key, o.Values[key], at); err != nil {
			return nil, err
		}
	}
	if len(n.types) == 0 {
		return nil, fmt.Errorf("%s: no type", at)
	}
	return n, nil
}

func (n *node) keyword(key string, v any, at string) error {
	bad := func() error { return fmt.Errorf("%s: unusable %s", at, key) }
	ok := true
	switch key {
	case "type":
		if s, single := v.(string); single {
			n.types = []string{s}
		} else {
			n.types, ok = texts(v)
		}
	case "enum":
		n.enum, ok = v.([]any)
	case "minimum":
		n.min, ok = bound(v)
	case "maximum":
		n.max, ok = bound(v)
	case "minLength":
		n.minLength, ok = count(v)
	case "maxItems":
		n.maxItems, ok = count(v)
	case "required":
		n.required, ok = texts(v)
	case "additionalProperties":
		var open bool
		open, ok = v.(bool)
		n.closed = !open
	case "default":
		n.def, n.hasDefault = v, true
	case "items":
		sub, err := compile(v, at+".items")
		if err != nil {
			return err
		}
		n.items = sub
	case "properties":
		o, isObject := v.(*Object)
		if !isObject {
			return bad()
		}
		for _, name := range o.Keys {
			sub, err := compile(o.Values[name], at+"."+name)
			if err != nil {
				return err
			}
			n.names = append(n.names, name)
			n.properties[name] = sub
		}
	default:
		if !slices.Contains(annotations, key) {
			return fmt.Errorf("%s: keyword %q is not supported", at, key)
		}
	}
	if !ok {
		return bad()
	}
	return nil
}

func texts(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	var out []string
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

func bound(v any) (*float64, bool) {
	f, ok := float(v)
	return &f, ok
}

func count(v any) (int, bool) {
	n, ok := v.(int64)
	return int(n), ok && n >= 0
}

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Check returns everything that is wrong with o, in the order of its text.
func (s *Schema) Check(o *Object) []Fault {
	var c checker
	c.value(s.root, o, "")
	return c.faults
}

type checker struct{ faults []Fault }

func (c *checker) fault(path, format string, args ...any) {
	c.faults = append(c.faults, Fault{path, fmt.Sprintf(format, args...)})
}

func (c *checker) value(n *node, v any, path string) {
	if !slices.ContainsFunc(n.types, func(t string) bool { return isType(v, t) }) {
		c.fault(path, "expected %s, got %s", strings.Join(n.types, "|"), typeOf(v))
		return
	}
	if n.enum != nil && !slices.ContainsFunc(n.enum, func(e any) bool { return same(e, v) }) {
		c.fault(path, "must be one of %s, got %s", text(n.enum), text(v))
	}
	if f, ok := float(v); ok {
		if n.min != nil && f < *n.min {
			c.fault(path, "%s is below minimum %s", text(v), text(*n.min))
		}
		if n.max != nil && f > *n.max {
			c.fault(path, "%s is above maximum %s", text(v), text(*n.max))
		}
	}
	switch v := v.(type) {
	case string:
		if utf8.RuneCountInString(v) < n.minLength {
			c.fault(path, "must be at least %d character(s)", n.minLength)
		}
	case []any:
		if n.maxItems >= 0 && len(v) > n.maxItems {
			c.fault(path, "must have at most %d item(s)", n.maxItems)
		}
		if n.items != nil {
			for i, e := range v {
				c.value(n.items, e, path+"["+strconv.Itoa(i)+"]")
			}
		}
	case *Object:
		c.object(n, v, path)
	}
}

func (c *checker) object(n *node, o *Object, path string) {
	for _, key := range n.required {
		if _, ok := o.Values[key]; !ok {
			c.fault(path, "missing required key %s", quote(key))
		}
	}
	for _, key := range o.Keys {
		if sub, ok := n.properties[key]; ok {
			c.value(sub, o.Values[key], dotted(path, key))
		} else if n.closed {
			c.fault(path, "unknown key %s", quote(key))
		}
	}
}

func dotted(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int64:
		return "integer"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func isType(v any, want string) bool {
	got := typeOf(v)
	return got == want || got == "integer" && want == "number"
}

// same compares scalars; an enum of ours holds nothing else.
func same(a, b any) bool {
	if x, ok := float(a); ok {
		y, ok := float(b)
		return ok && x == y
	}
	switch a.(type) {
	case []any, *Object:
		return false
	}
	switch b.(type) {
	case []any, *Object:
		return false
	}
	return a == b
}

// text renders a value as compact JSON for a message.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case float64:
		// Plain digits as far as JavaScript prints them.
		if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e21 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = text(e)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *Object:
		return "object"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return typeOf(v)
	}
	return string(b)
}

// Keys returns every setting that the schema knows, in its order. An object
// with properties of its own is not a setting; an array of objects is one.
func (s *Schema) Keys() []Key { return s.root.keys("") }

func (n *node) keys(path string) []Key {
	if len(n.names) == 0 {
		return []Key{{path, n.def, n.hasDefault}}
	}
	var out []Key
	for _, name := range n.names {
		out = append(out, n.properties[name].keys(dotted(path, name))...)
	}
	return out
}

// Settings returns o's values by dotted path, as far down as Keys goes. The
// document must have passed Check.
func (s *Schema) Settings(o *Object) map[string]any {
	out := map[string]any{}
	s.root.settings(o, "", out)
	return out
}

func (n *node) settings(o *Object, path string, out map[string]any) {
	for _, key := range o.Keys {
		at := dotted(path, key)
		sub, ok := n.properties[key]
		if inner, isObject := o.Values[key].(*Object); ok && isObject && len(sub.names) > 0 {
			sub.settings(inner, at, out)
			continue
		}
		out[at] = o.Values[key]
	}
}
