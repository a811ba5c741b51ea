package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// maxLines is how many different lines RateLimit remembers.
const maxLines = 1024

// RateLimit returns a handler that passes the same line, that is the same
// level and message whatever the attributes, on to next at most once per
// interval. The next one that passes says in the attribute Suppressed how many
// did not. Handlers derived from it count together. An interval that is not
// positive limits nothing.
func RateLimit(next slog.Handler, interval time.Duration) slog.Handler {
	if interval <= 0 {
		return next
	}
	return &limiter{next: next, lines: &lines{interval: interval, seen: map[line]*count{}}}
}

type line struct {
	level slog.Level
	msg   string
}

type count struct {
	until      time.Time
	suppressed int
}

type lines struct {
	interval time.Duration
	mu       sync.Mutex
	seen     map[line]*count // at most maxLines
}

// pass reports whether a line may pass now, and how many before it did not.
func (l *lines) pass(key line, now time.Time) (bool, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.seen[key]
	if c == nil {
		if len(l.seen) >= maxLines {
			l.shrink(now)
		}
		c = new(count)
		l.seen[key] = c
	} else if now.Before(c.until) {
		c.suppressed++
		return false, 0
	}
	n := c.suppressed
	c.until, c.suppressed = now.Add(l.interval), 0
	return true, n
}

// shrink drops the lines whose interval is over, and all if there are none: a
// flood of different lines is not what is limited here.
func (l *lines) shrink(now time.Time) {
	for key, c := range l.seen {
		if !now.Before(c.until) {
			delete(l.seen, key)
		}
	}
	if len(l.seen) >= maxLines {
		clear(l.seen)
	}
}

type limiter struct {
	next  slog.Handler
	lines *lines
}

func (h *limiter) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h *limiter) Handle(ctx context.Context, r slog.Record) error {
	ok, n := h.lines.pass(line{r.Level, r.Message}, time.Now())
	if !ok {
		return nil
	}
	if n > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int(Suppressed, n))
	}
	return h.next.Handle(ctx, r)
}

func (h *limiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limiter{next: h.next.WithAttrs(attrs), lines: h.lines}
}

func (h *limiter) WithGroup(name string) slog.Handler {
	return &limiter{next: h.next.WithGroup(name), lines: h.lines}
}
