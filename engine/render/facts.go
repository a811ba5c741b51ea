package render

import (
	"fmt"
	"strconv"
	"strings"

	"handoffd/engine/sanitize"
	"handoffd/engine/session"
)

// Caveats returns what a reader must know before he trusts the rest: what is
// unfinished, damaged, gone or not this session's own. The lines hold escaped
// text only.
func Caveats(m *session.Manifest, d *Digest) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if n := m.Provisional; n > 0 {
		add("Provisional: the source was being written; the last %s may still change.", plural(n, "turn"))
	}
	if n := m.Quarantined; n > 0 {
		add("Damage: %s unreadable, kept in `quarantine/`.", plural(n, "record"))
	}
	if n := m.Unknown; n > 0 {
		add("Unknown: %s of a kind unknown to this version, kept in `quarantine/`.", plural(n, "record"))
	}
	gone, rewritten, flagged := 0, 0, 0
	for _, s := range m.Sources {
		if s.Gone {
			gone++
		}
		if s.Rewritten {
			rewritten++
		}
		flagged += s.Flagged
	}
	if flagged > 0 {
		add("Lenient: %s readable only leniently.", plural(flagged, "record"))
	}
	if gone > 0 {
		add("Gone: %s no longer there; this handoff is what is left.", isAre(gone, len(m.Sources)))
	}
	if rewritten > 0 {
		add("Rewritten: %s no longer what was captured first; the old turns are kept.", isAre(rewritten, len(m.Sources)))
	}
	for _, k := range []struct{ word, text string }{
		{"conflict", "Conflict: %s at odds with an earlier reading of the same record."},
		{"rewound", "Rewound: %s taken back by the user."},
		{"approximate-time", "Time: %s with an approximate time."},
	} {
		if n := d.f.marked(k.word); n > 0 {
			add(k.text, plural(int(n), "turn"))
		}
	}
	if s := m.Meta.ForkedFrom; s != "" {
		line := "Fork: continues session " + inline(s, 100)
		if n := m.Meta.Inherited; n > 0 {
			line += fmt.Sprintf(" and begins with %s of it", plural(n, "turn"))
		}
		out = append(out, line+".")
	}
	if s := m.Meta.Parent; s != "" {
		add("Subagent: started by session %s.", inline(s, 100))
	}
	if len(m.MergedFrom) > 0 {
		var ids []string
		for _, s := range m.MergedFrom[:min(4, len(m.MergedFrom))] {
			ids = append(ids, inline(s, 60))
		}
		add("Merged: made from %s: %s.", plural(len(m.MergedFrom), "session"), strings.Join(ids, ", "))
	}
	if m.PromotedStale {
		add("Promotion: turns were added after the session was promoted.")
	}
	return out
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func isAre(n, of int) string {
	switch {
	case n == 1 && of == 1:
		return "the source is"
	case n == 1:
		return fmt.Sprintf("1 of %d sources is", of)
	}
	return fmt.Sprintf("%d of %d sources are", n, of)
}

// list returns lines as a list without a heading, "" when there are none.
func list(lines []string, n int) string {
	var b strings.Builder
	for i, l := range lines {
		if i == n {
			fmt.Fprintf(&b, "- and %d more.\n", len(lines)-n)
			break
		}
		b.WriteString("- " + l + "\n")
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

func (in Input) notes(n int) string { return list(Caveats(in.M, in.D), n) }

// facts says under which circumstances the session ran.
func (in Input) facts(n int) string {
	m, f := in.M, &in.D.f
	var lines []string
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	add("title", inline(m.Meta.Title, 120))
	c := f.Counts
	add("turns", fmt.Sprintf("%d USER, %d AGENT, %d THOUGHT, %d TOOL, %d OTHER", c.User, c.Agent, c.Thought, c.Tool, c.Other))
	add("tokens", tokens(m.Meta.Tokens))
	add("context", window(m.Meta.Tokens))
	if m.Meta.Compactions > 0 {
		add("compactions", strconv.Itoa(m.Meta.Compactions))
	}
	if m.Meta.Model != m.Model {
		add("newest model", inline(m.Meta.Model, 64))
	}
	version := inline(m.Meta.Version, 40)
	if version != "" && m.Format != "" {
		version = inline(m.Format, 40) + " " + version
	}
	add("harness version", version)
	add("directory", inline(m.Meta.CWD, 160))
	add("branch", inline(m.Meta.Branch, 100))
	if m.Meta.FirstTS != "" || m.Meta.LastTS != "" {
		add("time", inline(m.Meta.FirstTS, 40)+" to "+inline(m.Meta.LastTS, 40))
	}
	add("kind", inline(m.Meta.Kind, 40))
	if m.PromotedAt != "" {
		add("promoted", inline(m.PromotedAt, 40)+" with gate "+inline(m.PromotedGate, 40))
	}
	return "## Session\n\n" + list(lines, n)
}

func tokens(t session.Tokens) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{t.Input, "input"}, {t.Output, "output"}, {t.CacheRead, "cache read"}, {t.CacheWrite, "cache write"}} {
		if p.n > 0 {
			parts = append(parts, number(p.n)+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

func window(t session.Tokens) string {
	switch {
	case t.Context <= 0:
		return ""
	case t.Window <= 0:
		return number(t.Context) + " tokens at the last turn; window size not reported"
	}
	return fmt.Sprintf("%d of %d tokens (%.0f%%) at the last turn", t.Context, t.Window, 100*float64(t.Context)/float64(t.Window))
}

// places says where the rest of the handoff is. Only names: a handoff may be
// copied to another machine.
func (in Input) places(int) string {
	return "## Where everything lives\n\n" +
		fmt.Sprintf("- `timeline.jsonl` — every turn in full, one JSON object a line (%d)\n", in.M.TurnCount) +
		fmt.Sprintf("- `TOOLS.md` — every tool call and result verbatim (%d)\n", in.M.Counts.Tool) +
		"- `HANDOFF.llm.json` — full payload for machines\n" +
		"- `HANDOFF.summary.json` — compact payload\n" +
		"- `manifest.json` — provenance, counters and hashes\n\n"
}

func (in Input) provenance(n int) string {
	m := in.M
	var b strings.Builder
	b.WriteString("## Provenance\n\n")
	for _, p := range m.SourcePaths[:min(n, len(m.SourcePaths))] {
		note := ""
		if i, ok := m.Source(p); ok {
			note = sourceNote(m.Sources[i])
		}
		fmt.Fprintf(&b, "- source: %s%s\n", inline(p, 300), note)
	}
	if rest := len(m.SourcePaths) - n; rest > 0 {
		fmt.Fprintf(&b, "- and %d more sources (see `manifest.json`)\n", rest)
	}
	b.WriteString(in.history())
	fmt.Fprintf(&b, "- raw sha256: %s\n%s%s\n- incremental: revisions=%d (update-not-recreate)\n\n",
		sanitize.Cell(m.RawSHA256, 64), stampStart, m.ManifestSHA256, m.Revisions)
	return b.String()
}

// history says what was done with the handoff as a whole.
func (in Input) history() string {
	m := in.M
	var b strings.Builder
	if len(m.MergedFrom) > 0 {
		names := make([]string, len(m.MergedFrom))
		for i, id := range m.MergedFrom {
			names[i] = inline(id, 128)
		}
		fmt.Fprintf(&b, "- merged from: %s; each turn of `timeline.jsonl` names its origin\n", strings.Join(names, ", "))
	}
	if m.FederatedFrom != "" {
		fmt.Fprintf(&b, "- imported from: %s at %s\n", inline(m.FederatedFrom, 300), inline(m.FederatedAt, 32))
	}
	if m.PromotedAt != "" {
		since := ""
		if m.PromotedStale {
			since = "; **what follows was not judged**: it has changed since"
		}
		fmt.Fprintf(&b, "- promoted: %s at %s%s\n", inline(m.PromotedGate, 32), inline(m.PromotedAt, 32), since)
	}
	return b.String()
}

func sourceNote(s session.Source) string {
	note := fmt.Sprintf(" (%d bytes", s.Bytes)
	if s.Gone {
		note += ", gone"
	}
	if s.Rewritten {
		note += ", rewritten"
	}
	if s.Quarantined > 0 {
		note += fmt.Sprintf(", %d quarantined", s.Quarantined)
	}
	return note + ")"
}
