package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"handoffd/engine/sanitize"
)

const (
	fileRows   = 30
	toolRows   = 20
	sourceRows = 10
	stampStart = "- manifest sha256: "
)

// shown says how much of a list stands below, where it is not all of it.
func shown(n int, total int64) string {
	if int64(n) >= total {
		return ""
	}
	return fmt.Sprintf(" (%d of %d shown)", n, total)
}

// newest returns the last n of s.
func newest[T any](s []T, n int) []T { return s[len(s)-min(n, len(s)):] }

// row writes one line of a table. The cells are escaped already.
func row(b *strings.Builder, cells ...string) {
	b.WriteString("| ")
	b.WriteString(strings.Join(cells, " | "))
	b.WriteString(" |\n")
}

func table(b *strings.Builder, heads ...string) {
	row(b, heads...)
	b.WriteString("|" + strings.Repeat("---|", len(heads)) + "\n")
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func (in Input) objective(runes int) string {
	text := clip(Objective(in.M, in.D), runes)
	return "## Objective (verbatim)\n\n" + fenced(text) + quoteNote(text, runes) + "\n"
}

// quoteNote says that a quotation fills its room, and so may go on.
func quoteNote(text string, runes int) string {
	if !atLeast(text, runes) {
		return ""
	}
	return "\nCut after " + strconv.Itoa(runes) + " characters; the whole is in `timeline.jsonl`.\n"
}

// firstPrompt shows the first real prompt where the objective is another.
func (in Input) firstPrompt(runes int) string {
	prompt := strings.TrimSpace(in.D.f.Prompt)
	if prompt == "" || prompt == Objective(in.M, in.D) {
		return ""
	}
	text := clip(prompt, runes)
	return "## First prompt (verbatim)\n\n" + fenced(text) + quoteNote(text, runes) + "\n"
}

func (in Input) state(runes int) string {
	f := &in.D.f
	s := f.stateNow()
	var b strings.Builder
	b.WriteString("## State right now (verbatim tail)\n\n")
	b.WriteString(fenced(clipEnd(s.Tail, runes)))
	b.WriteString("\n" + f.endLine() + "\n\n")
	if f.Agent.At > 0 && f.unanswered() {
		b.WriteString("The last prompt, not answered in words yet:\n\n" + fenced(clipEnd(f.User.Tail, runes)) + "\n")
	}
	return b.String()
}

// endLine says in one sentence where the session stopped.
func (f *fold) endLine() string {
	end, last := f.ended()
	at := "Stopped at seq " + number(last.Seq) + ": "
	name, by := "a tool", ""
	if last.Tool != "" {
		name = inline(last.Tool, nameRunes)
	}
	if last.Agent != "" {
		by = " by subagent " + inline(last.Agent, nameRunes)
	}
	switch end {
	case endEmpty:
		return "No turn was captured."
	case endAnswered:
		return at + "the agent had answered; nothing follows."
	case endUnanswered:
		return at + "a prompt is waiting for its answer."
	case endOpenCall:
		return at + "a call of " + name + by + " has no result yet."
	case endAfterTool:
		return at + "after a result of " + name + by + "; the agent has not spoken since."
	case endError:
		return at + "at an error (see Errors)."
	case endThought:
		return at + "while the agent was thinking."
	}
	return at + "after a turn of class " + inline(string(last.Class), 16) + by + "."
}

func (f *fold) questionList(n int) string {
	all := f.openQuestions()
	if len(all) == 0 {
		return ""
	}
	list := newest(all, n)
	return "## Open questions" + shown(len(list), int64(len(all))) + "\n\nAsked by the agent at the end, without a reply:\n\n" +
		fenced(strings.Join(list, "\n")) + "\n"
}

func (f *fold) loopList(n int) string {
	if len(f.Loops) == 0 {
		return ""
	}
	var b strings.Builder
	list := newest(f.Loops, n)
	b.WriteString("## Open loops / next steps\n\n")
	total := int64(len(f.Loops)) + f.LoopsBeyond
	if int64(len(list)) < total {
		fmt.Fprintf(&b, "The newest %d of %d lines, newest last.\n\n", len(list), total)
	}
	for _, l := range list {
		line, _ := unticked(l.Line)
		fmt.Fprintf(&b, "- [%d] %s\n", l.Seq, sanitize.Cell(line, loopRunes+60))
	}
	b.WriteString("\n")
	return b.String()
}

func (f *fold) fileTable(n int) string {
	if len(f.Files) == 0 {
		return ""
	}
	list := f.filesByEdits()
	list = list[:min(n, len(list))]
	var b strings.Builder
	b.WriteString("## What changed\n\n")
	total := number(int64(len(f.Files)))
	if f.FilesBeyond > 0 {
		total = "more than " + total
	}
	fmt.Fprintf(&b, "%s in %s files, the most edited first", plural(int(f.Edits), "edit"), total)
	if len(list) < len(f.Files) || f.FilesBeyond > 0 {
		fmt.Fprintf(&b, " (%d of %s shown)", len(list), total)
	}
	b.WriteString(".\n\n")
	table(&b, "edits", "file")
	for _, e := range list {
		edits := number(e.Edits)
		if e.Partial {
			edits = "≥ " + edits
		}
		row(&b, edits, sanitize.Cell(e.Path, 200))
	}
	b.WriteString("\n")
	return b.String()
}

func (f *fold) commandTable(n int) string {
	c := f.Commands
	if c.Total == 0 {
		return ""
	}
	list := newest(c.Last, n)
	var b strings.Builder
	fmt.Fprintf(&b, "## Commands\n\n%d run: %d without an error, %d failed", c.Total, c.OK, c.Bad)
	if n := c.unknown(); n > 0 {
		fmt.Fprintf(&b, ", %d without a known result", n)
	}
	b.WriteString(shown(len(list), c.Total) + ", newest last.\n\n")
	table(&b, "seq", "ended", "command")
	for _, e := range list {
		row(&b, number(e.Seq), outcome(e.Done, e.Bad, e.Exit), sanitize.Cell(e.Line, commandRunes))
	}
	b.WriteString("\n")
	return b.String()
}

// outcome says how a call ended. Many harnesses report no exit status, and
// then the absence of an error is all that is known.
func outcome(done, bad bool, exit *int) string {
	switch {
	case !done:
		return "no result"
	case exit != nil:
		return "exit " + strconv.Itoa(*exit)
	case bad:
		return "error"
	}
	return "no error"
}

func (f *fold) errorTable(n int) string {
	if f.ErrorCount == 0 {
		return ""
	}
	list := newest(f.Errors, n)
	var b strings.Builder
	fmt.Fprintf(&b, "## Errors\n\n%d met, newest last%s.\n\n", f.ErrorCount, shown(len(list), f.ErrorCount))
	table(&b, "seq", "exit", "of", "text head")
	for _, e := range list {
		exit := ""
		if e.Exit != nil {
			exit = strconv.Itoa(*e.Exit)
		}
		row(&b, number(e.Seq), exit, sanitize.Cell(e.What, 100), sanitize.Cell(e.Head, 200))
	}
	b.WriteString("\n")
	return b.String()
}

func (f *fold) agentTable(n int) string {
	if f.SpawnCount == 0 && len(f.Agents) == 0 && f.AgentsBeyond == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Subagents\n\n")
	if f.SpawnCount > 0 {
		list := newest(f.Spawned, n)
		fmt.Fprintf(&b, "%d started%s.\n\n", f.SpawnCount, shown(len(list), f.SpawnCount))
		table(&b, "seq", "tool", "ended", "input head")
		for _, s := range list {
			row(&b, number(s.Seq), sanitize.Cell(s.Name, nameRunes), outcome(s.Done, s.Bad, nil), sanitize.Cell(s.Head, headRunes))
		}
		b.WriteString("\n")
	}
	if len(f.Agents) > 0 || f.AgentsBeyond > 0 {
		list := f.Agents[:min(n, len(f.Agents))]
		b.WriteString("Speaking in this session's files:")
		for i, a := range list {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %s (%s)", inline(a.ID, nameRunes), plural(int(a.Turns), "turn"))
		}
		rest := f.AgentsBeyond
		for _, a := range f.Agents[len(list):] {
			rest += a.Turns
		}
		if rest > 0 {
			fmt.Fprintf(&b, " and others (%s)", plural(int(rest), "turn"))
		}
		b.WriteString(".\n\n")
	}
	return b.String()
}

func (f *fold) toolTable(n int) string {
	if len(f.Tools) == 0 {
		return ""
	}
	list := f.toolsByUse()
	total := len(list)
	list = list[:min(n, len(list))]
	var b strings.Builder
	fmt.Fprintf(&b, "## Tools\n\n%s%s, the most used first.\n\n", plural(int(f.Counts.Tool), "tool turn"), shown(len(list), int64(total)))
	table(&b, "tool", "calls", "results", "failed")
	for _, t := range list {
		row(&b, toolName(t.Name), number(t.Calls), number(t.Results), number(t.Bad))
	}
	if o := f.ToolsOther; o.Calls+o.Results > 0 {
		row(&b, "(others)", number(o.Calls), number(o.Results), number(o.Bad))
	}
	b.WriteString("\n")
	return b.String()
}

// filesByEdits returns the edited files, the most edited first, the newest of
// those edited as often.
func (f *fold) filesByEdits() []file {
	list := slices.Clone(f.Files)
	slices.SortFunc(list, func(a, b file) int {
		return cmp.Or(cmp.Compare(b.Edits, a.Edits), cmp.Compare(b.At, a.At), cmp.Compare(a.Path, b.Path))
	})
	return list
}

// toolsByUse returns the tools, the most used first.
func (f *fold) toolsByUse() []tool {
	list := slices.Clone(f.Tools)
	slices.SortFunc(list, func(a, b tool) int {
		return cmp.Or(cmp.Compare(b.Calls+b.Results, a.Calls+a.Results), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func toolName(name string) string {
	if name == "" {
		return "(unnamed)"
	}
	return sanitize.Cell(name, nameRunes)
}

func (in Input) timeline(n int) string {
	f := &in.D.f
	list := newest(f.Recent, n)
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## Recent timeline (last %d of %d turns)\n\n", len(list), f.Turns)
	table(&b, "seq", "class", "text")
	for _, r := range list {
		who := sanitize.Cell(string(r.Class), 16)
		if r.Tool != "" {
			who += " " + sanitize.Cell(r.Tool, 24)
		}
		if r.Phase == "result" {
			who += " ←"
		}
		if r.Agent != "" {
			who += " @" + sanitize.Cell(r.Agent, 16)
		}
		row(&b, number(r.Seq), who, sanitize.Cell(r.Head, headRunes))
	}
	b.WriteString("\n")
	return b.String()
}
