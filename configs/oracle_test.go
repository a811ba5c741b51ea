package configs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"handoffd/configs/document"
	"handoffd/engine/fault"
)

// oracle checks a document with a complete JSON Schema implementation and
// says what is wrong in our words. It holds document.Schema to the standard.
type oracle struct{ schema *jsonschema.Schema }

func newOracle(t testing.TB, text []byte) oracle {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("mem://schema", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem://schema")
	if err != nil {
		t.Fatal(err) // the schema does not fit the 2020-12 meta-schema
	}
	return oracle{s}
}

func (o oracle) faults(t testing.TB, doc *document.Object) []string {
	t.Helper()
	err := o.schema.Validate(plain(doc))
	if err == nil {
		return nil
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		t.Fatal(err)
	}
	var out []string
	collect(t, ve, plain(doc), &out)
	slices.Sort(out)
	return out
}

// plain turns a document into the types that the library knows.
func plain(v any) any {
	switch v := v.(type) {
	case *document.Object:
		m := map[string]any{}
		for k, e := range v.Values {
			m[k] = plain(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = plain(e)
		}
		return l
	}
	return v
}

func collect(t testing.TB, ve *jsonschema.ValidationError, doc any, out *[]string) {
	t.Helper()
	for _, c := range ve.Causes {
		collect(t, c, doc, out)
	}
	at := ""
	for _, segment := range ve.InstanceLocation {
		switch here := doc.(type) {
		case []any:
			i, err := strconv.Atoi(segment)
			if err != nil {
				t.Fatal(err)
			}
			at += "[" + segment + "]"
			doc = here[i]
		case map[string]any:
			at += "." + segment
			doc = here[segment]
		}
	}
	at = strings.TrimPrefix(at, ".")
	add := func(format string, args ...any) { *out = append(*out, at+": "+fmt.Sprintf(format, args...)) }
	switch k := ve.ErrorKind.(type) {
	case *kind.Type:
		add("expected %s, got %s", sorted(strings.Join(k.Want, "|")), k.Got)
	case *kind.Enum:
		add("must be one of %s", list(k.Want))
	case *kind.Minimum:
		f, _ := k.Want.Float64()
		add("is below minimum %s", strconv.FormatFloat(f, 'f', -1, 64))
	case *kind.Maximum:
		f, _ := k.Want.Float64()
		add("is above maximum %s", strconv.FormatFloat(f, 'f', -1, 64))
	case *kind.MinLength:
		add("must be at least %d character(s)", k.Want)
	case *kind.MaxItems:
		add("must have at most %d item(s)", k.Want)
	case *kind.Required:
		for _, key := range k.Missing {
			add("missing required key %q", key)
		}
	case *kind.AdditionalProperties:
		for range k.Properties {
			add("unknown key")
		}
	case *kind.Schema, *kind.Group, *kind.Reference:
	default:
		t.Fatalf("the oracle has no words for %T", k)
	}
}

// sorted orders the types of a union; the library does not keep their order.
func sorted(union string) string {
	types := strings.Split(union, "|")
	slices.Sort(types)
	return strings.Join(types, "|")
}

func list(values []any) string {
	var parts []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			parts = append(parts, strconv.Quote(s))
		} else {
			parts = append(parts, fmt.Sprint(v))
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// ours renders document's faults without what the library does not say.
func ours(faults []document.Fault) []string {
	var out []string
	for _, f := range faults {
		msg := f.Msg
		switch {
		case strings.HasPrefix(msg, "must be one of"):
			msg = msg[:strings.Index(msg, "], got ")+1]
		case strings.HasPrefix(msg, "unknown key"):
			msg = "unknown key"
		case strings.HasPrefix(msg, "expected "):
			want, got, _ := strings.Cut(strings.TrimPrefix(msg, "expected "), ", got ")
			if got == "integer" {
				got = "number"
			}
			msg = "expected " + sorted(want) + ", got " + got
		}
		if i := strings.Index(msg, "is below minimum"); i > 0 {
			msg = msg[i:]
		}
		if i := strings.Index(msg, "is above maximum"); i > 0 {
			msg = msg[i:]
		}
		out = append(out, f.Path+": "+msg)
	}
	slices.Sort(out)
	return out
}

// agree reports a document on which document.Schema and the oracle differ.
func agree(t testing.TB, schema *document.Schema, o oracle, text []byte) {
	t.Helper()
	doc, _, err := document.Parse(text)
	if err != nil {
		return
	}
	got, want := ours(schema.Check(doc)), o.faults(t, doc)
	if !slices.Equal(got, want) {
		t.Fatalf("%s\nours\n  %s\noracle\n  %s", text, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// wrongs are documents that break each schema in every way it can be broken.
var wrongs = []string{
	`{}`, `{"version":1}`, `{"version":2}`, `{"version":1.0}`, `{"version":1.5}`, `{"version":"1"}`, `{"version":null}`,
	`{"version":1,"nope":1,"NOPE":{}}`, `{"$schema":1,"$schema":2}`,
	`{"handoff_dir":"","storage":{"type":"x","path":""}}`, `{"storage":[]}`, `{"storage":{"type":"sqlite"}}`,
	`{"project_name":1}`, `{"project_name":null}`, `{"max_brief_tokens":5}`, `{"max_brief_tokens":1e300}`, `{"max_brief_tokens":2000.5}`,
	`{"exclude_from_handoff":["a",1,null,[]]}`, `{"linking":{"min_overlap_score":2,"enabled":"yes","x":1}}`, `{"linking":{"min_overlap_score":-0.1}}`,
	`{"capture":{"max_tool_output_length":-1}}`, `{"gate":{"mode":"on","enforce":1,"signals":["x"]}}`,
	`{"version":1,"sources":[{}]}`, `{"version":1,"sources":[{"harness":"vim","root":""},1]}`, `{"version":1,"sources":{}}`,
	`{"version":1,"sources":[` + strings.Repeat(`1,`, 300) + `1]}`,
	`{"version":1,"workers":0,"quiet_ms":-1,"sweep_seconds":0,"min_fresh_ms":1e10}`,
	`{"version":1,"limits":{"line_bytes":1,"depth":256,"files":"x"},"log":{"level":"loud","format":1,"file":""}}`,
	`{"version":1,"redact":{"allow":[""]},"retention":{"quarantine_days":-1,"x":{}}}`,
}

func TestSchemasAgreeWithTheOracle(t *testing.T) {
	for _, c := range []struct {
		text   []byte
		schema *document.Schema
	}{{storeSchemaText, storeSchema()}, {daemonSchemaText, daemonSchema()}} {
		o := newOracle(t, c.text)
		for _, w := range wrongs {
			agree(t, c.schema, o, []byte(w))
		}
	}
}

func FuzzStoreConfig(f *testing.F) {
	fuzzFormat(f, storeFormat, storeSchemaText)
}

func FuzzDaemonConfig(f *testing.F) {
	fuzzFormat(f, daemonFormat, daemonSchemaText)
}

// fuzzFormat holds a parser to three things: it never panics, every error is a
// fault.Config with no settings, and it judges as the oracle does.
func fuzzFormat(f *testing.F, format format, schemaText []byte) {
	for _, w := range wrongs {
		f.Add([]byte(w))
	}
	for _, name := range []string{"handoff.config.sample.jsonc", "handoffd.sample.jsonc"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stripComments(text))
	}
	o := newOracle(f, schemaText)
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > FileMax {
			t.Skip("larger than any file that is read")
		}
		agree(t, format.schema(), o, text)
		l, err := format.parse("/x/"+format.name, text)
		if err != nil {
			if !fault.Is(err, fault.Config) || l.values != nil {
				t.Fatalf("%v with settings %v", err, l.values)
			}
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }) {
				t.Fatalf("control character in %q", err)
			}
			return
		}
		doc, faults, err := document.Parse(text)
		if err != nil || len(faults) > 0 || len(o.faults(t, doc)) > 0 {
			t.Fatalf("accepted %s", text)
		}
	})
}
