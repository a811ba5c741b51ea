package logging

import (
	"context"
	"encoding"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"handoffd/engine/sanitize"
)

// sanitizer turns every text of a record into a safe one before the next
// handler sees it. It must come first: tint writes messages raw and, with
// colour on, turns the text \x1b in a value back into an escape.
type sanitizer struct {
	next slog.Handler
	safe func(string) string
}

func (h *sanitizer) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h *sanitizer) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, h.safe(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

func (h *sanitizer) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &sanitizer{next: h.next.WithAttrs(h.attrs(attrs)), safe: h.safe}
}

func (h *sanitizer) WithGroup(name string) slog.Handler {
	return &sanitizer{next: h.next.WithGroup(h.safe(name)), safe: h.safe}
}

func (h *sanitizer) attrs(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = h.attr(a)
	}
	return out
}

func (h *sanitizer) attr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: h.safe(a.Key), Value: h.value(a.Value)}
}

// value returns v with nothing in it that could print unsafe text.
func (h *sanitizer) value(v slog.Value) slog.Value {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(h.safe(v.String()))
	case slog.KindGroup:
		return slog.GroupValue(h.attrs(v.Group())...)
	case slog.KindAny, slog.KindLogValuer:
		if list, ok := v.Any().([]string); ok {
			safe := make([]string, len(list))
			for i, s := range list {
				safe[i] = h.safe(s)
			}
			return slog.AnyValue(safe)
		}
		if v.Any() == nil {
			return slog.AnyValue(nil)
		}
		return slog.StringValue(h.safe(text(v.Any())))
	case slog.KindTime, slog.KindDuration, slog.KindBool, slog.KindFloat64, slog.KindInt64, slog.KindUint64:
		return v
	}
	return slog.StringValue(h.safe(v.String()))
}

// text returns the words of a value of any type. A value whose method panics
// costs its words only.
func text(v any) (s string) {
	defer func() {
		if r := recover(); r != nil {
			if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && p.IsNil() {
				s = "<nil>"
				return
			}
			s = fmt.Sprintf("!PANIC: %v", r)
		}
	}()
	switch v := v.(type) {
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	case encoding.TextMarshaler:
		if b, err := v.MarshalText(); err == nil {
			return string(b)
		}
	case []byte:
		return string(v)
	}
	return fmt.Sprintf("%+v", v)
}

// safeJSON makes text safe for slog's JSON, which quotes but passes DEL, C1
// and bidirectional controls.
func safeJSON(s string) string { return sanitize.Line(s) }

// safeText makes text safe for tint 1.2.1, which undoes two things: with
// colour it replaces the four characters \x1b by ESC, wherever they come
// from, and without colour it cuts a quoted value at U+FFFD.
func safeText(s string) string {
	s = sanitize.Line(s)
	if strings.Contains(s, `\x1b`) {
		s = strings.ReplaceAll(s, `\x1b`, `\u001b`)
	}
	if strings.Contains(s, "\ufffd") {
		s = strings.ReplaceAll(s, "\ufffd", `\ufffd`)
	}
	return s
}
