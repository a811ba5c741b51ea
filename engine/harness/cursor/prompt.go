package cursor

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"handoffd/engine/turn"
)

const (
	queryOpen  = "<user_query>"
	queryClose = "</user_query>"
	timeOpen   = "<timestamp>"
	timeClose  = "</timestamp>"
)

// segment is a part of a prompt: what the user typed, or what Cursor put
// around it.
type segment struct {
	class turn.Class
	text  string
}

// prompt cuts the text of a user message. Where a query is marked, everything
// around it is Cursor's; where none is, everything but blocks in Cursor's tags
// was typed. stamp is the time that the text tells, as it stands there.
func prompt(text string) (list []segment, stamp string) {
	text, stamp = cutStamp(text)
	add := func(class turn.Class, s string) {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, segment{class, s})
		}
	}
	if !strings.Contains(text, queryOpen) {
		for text != "" {
			start, end := injected(text)
			add(turn.User, text[:start])
			add(turn.Other, text[start:end])
			text = text[end:]
		}
		return list, stamp
	}
	for {
		before, after, ok := strings.Cut(text, queryOpen)
		add(turn.Other, before)
		if !ok {
			return list, stamp
		}
		// A query may speak of the tag: it ends at the last one before
		// the next query.
		limit := len(after)
		if next := strings.Index(after, "\n"+queryOpen); next >= 0 {
			limit = next
		}
		end := strings.LastIndex(after[:limit], queryClose)
		if end < 0 { // cut short
			add(turn.User, after[:limit])
			text = after[limit:]
			continue
		}
		add(turn.User, after[:end])
		text = after[end+len(queryClose):]
	}
}

// cutStamp takes the time out of a prompt. It stands before the query.
func cutStamp(text string) (rest, stamp string) {
	before, after, ok := strings.Cut(text, timeOpen)
	if !ok || strings.Contains(before, queryOpen) {
		return text, ""
	}
	inner, after, ok := strings.Cut(after, timeClose)
	if inner = strings.TrimSpace(inner); !ok || len(inner) > 128 {
		return text, ""
	}
	if ts, _ := clock(inner); ts == "" {
		return text, "" // somebody's own words
	}
	return before + after, inner
}

// tag is the start of a block that Cursor puts into a prompt: words joined by
// an underscore or a hyphen, which HTML that somebody pastes has not.
var tag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*<([a-z]+(?:[_-][a-z]+)+|rules)(?: [^>\n]*)?>`)
})

// injected finds the first whole block of Cursor's in text; without one both
// results are its length.
func injected(text string) (start, end int) {
	for at := 0; at < len(text); {
		m := tag().FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		name := text[at+m[2] : at+m[3]]
		if n := strings.Index(text[at+m[1]:], "</"+name+">"); n >= 0 {
			return at + m[0], at + m[1] + n + len("</"+name+">")
		}
		at += m[1]
	}
	return len(text), len(text)
}

// workspace finds the directory that <user_info> names.
func workspace(text string) string {
	const sign = "Workspace Path: "
	for line := range strings.Lines(text) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), sign); ok {
			return strings.TrimSpace(dir)
		}
	}
	return ""
}

// layouts are how Cursor writes a time, without the zone.
var layouts = []string{
	"Monday, Jan 2, 2006, 3:04 PM", "Monday, January 2, 2006, 3:04 PM",
	"Monday, Jan 2, 2006, 3:04:05 PM", "Monday, Jan 2, 2006, 15:04",
	"Monday Jan 2, 2006, 3:04 PM", "Jan 2, 2006, 3:04 PM",
}

// clock reads a time such as "Sunday, Jul 26, 2026, 1:06 PM (UTC+3)"
// (vshulcz/deja-vu#3349) and gives it in UTC, or "" for another text. The zone
// is an offset in hours, with minutes or without; a time that tells none is
// taken as UTC, and zoned is false.
func clock(s string) (ts string, zoned bool) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t.UTC().Format(stampLayout), true
	}
	s = strings.NewReplacer("\u202f", " ", "\u00a0", " ").Replace(s)
	body, zone, zoned := strings.Cut(s, "(")
	where := time.UTC
	if zoned {
		offset, ok := offset(strings.TrimSuffix(strings.TrimSpace(zone), ")"))
		if !ok {
			return "", false
		}
		where = time.FixedZone("", offset)
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, strings.TrimSpace(body), where); err == nil {
			return t.UTC().Format(stampLayout), zoned
		}
	}
	return "", false
}

const stampLayout = "2006-01-02T15:04:05.000Z"

// offset reads "UTC", "UTC+3", "GMT-03:30" or "UTC+5:45", in seconds.
func offset(zone string) (seconds int, ok bool) {
	rest, utc := strings.CutPrefix(zone, "UTC")
	if !utc {
		if rest, ok = strings.CutPrefix(zone, "GMT"); !ok {
			return 0, false
		}
	}
	if rest == "" || rest == "±0" {
		return 0, true
	}
	sign := 1
	switch {
	case strings.HasPrefix(rest, "+"):
		rest = rest[1:]
	case strings.HasPrefix(rest, "-"):
		sign, rest = -1, rest[1:]
	case strings.HasPrefix(rest, "\u2212"):
		sign, rest = -1, strings.TrimPrefix(rest, "\u2212")
	default:
		return 0, false
	}
	hours, minutes, _ := strings.Cut(rest, ":")
	h, err := strconv.Atoi(hours)
	if err != nil || h < 0 || h > 15 {
		return 0, false
	}
	m := 0
	if minutes != "" {
		if m, err = strconv.Atoi(minutes); err != nil || m < 0 || m > 59 {
			return 0, false
		}
	}
	return sign * (h*3600 + m*60), true
}
