package render

import (
	"slices"
	"strings"

	"handoffd/engine/fault"
	"handoffd/engine/seal"
)

// The evidence contract stands in the last section of the brief. Everything
// before that section is generated, and everything in it that a transcript
// wrote is fenced or escaped, so the first heading outside fences is ours
// whatever the contract itself holds.
const (
	contractHeading = "## Evidence contract (hand-authored — preserved across rebuilds)"
	contractHint    = "(none yet) — write the seven fields " +
		"RESULT, WHAT_CHANGED, VALIDATION, EVIDENCE, BLOCKERS, RISKS, FOLLOW_UP " +
		"here, each at the start of a line and followed by a colon; rebuilds keep them."
	hintStart   = "(none yet) — "
	footerStart = "- contract sha256: "
	footerEnd   = " (carried forward verbatim; the L4 gate reads this section)"
)

// FieldNames are the seven fields of an evidence contract, in their order.
var FieldNames = [...]string{"RESULT", "WHAT_CHANGED", "VALIDATION", "EVIDENCE", "BLOCKERS", "RISKS", "FOLLOW_UP"}

// Contract is the evidence contract that people write into a brief. The zero
// value is none.
type Contract struct {
	// Block is the text as written.
	Block string
	// SHA256 is the hash of Block, "" when there is none.
	SHA256 string
}

// NewContract returns the contract with the given text, none if it is blank.
func NewContract(block string) Contract {
	block = strings.ToValidUTF8(block, "\ufffd")
	if strings.TrimSpace(block) == "" {
		return Contract{}
	}
	return Contract{Block: block, SHA256: seal.Sum([]byte(block))}
}

// section returns the contract section of the brief. It has no final newline.
func (c Contract) section() string {
	c = NewContract(c.Block)
	if c.Block == "" {
		return contractHeading + "\n\n" + contractHint
	}
	return contractHeading + "\n\n" + c.Block + "\n\n" + footer(c.SHA256)
}

func footer(sum string) string { return footerStart + sum + footerEnd }

// ExtractContract reads the contract of a brief: one of this package's, edited
// or not, or one of the reference's. A brief without the section has none.
//
// In a brief of ours the section begins at the first heading that stands
// outside fences. The reference does not escape what it quotes, so there the
// fences prove nothing; but its section is always the last, so the last
// heading line counts. A heading that such a file properly fences is none; if
// the file looks like a whole brief all the same, that is fault.Integrity
// rather than a contract lost in silence.
func ExtractContract(brief []byte) (Contract, error) {
	text := strings.ToValidUTF8(string(brief), "\ufffd")
	ours, start, closed := findContract(text)
	switch {
	case start < 0:
		return Contract{}, nil
	case closed:
		return Contract{}, fault.New(fault.Integrity, "the contract section stands inside a code fence")
	}
	body := text[start:]
	if ours {
		if c, ok := untouched(body); ok {
			return c, nil
		}
	}
	return NewContract(cleaned(body)), nil
}

// findContract returns whether the brief is one of ours, where the body of its
// contract section starts, -1 if it has none, and whether that stands inside a
// fence that is closed again.
func findContract(text string) (ours bool, start int, closed bool) {
	var (
		f        fences
		preamble = true
		whole    bool // has the section that comes before the contract
		fenced   bool
		pos      int
	)
	start = -1
	for line := range strings.Lines(text) {
		at := pos
		pos += len(line)
		line = strings.TrimRight(line, "\r\n")
		inside := f.line(line)
		if ours && !inside && line != contractHeading && likeHeading(line) {
			// An editor touched it. Outside of fences nobody writes one like
			// it but us and whoever edits the brief.
			if i := strings.IndexByte(line, '\r'); i >= 0 {
				return true, at + i + 1, false
			}
			return true, pos, false
		}
		switch {
		case preamble && line == dataLine:
			ours = true
		case strings.HasPrefix(line, "## "):
			preamble = false
			whole = whole || line == "## Provenance"
		}
		switch {
		case line != contractHeading:
			if fenced && !inside {
				closed = true
			}
			continue
		case ours && !inside:
			return true, pos, false
		case !ours:
			start, fenced, closed = pos, inside, false
		}
	}
	if fenced && f.mark == 0 {
		closed = true
	}
	if closed && !whole {
		return ours, -1, false
	}
	return ours, start, closed
}

// likeHeading reports whether a line is the contract's heading as somebody may
// have left it: with another level, letter case, ending or dash.
func likeHeading(line string) bool {
	line, _, _ = strings.Cut(line, "\r")
	text := strings.TrimLeft(line, " ")
	rest := strings.TrimLeft(text, "#")
	level := len(text) - len(rest)
	if len(line)-len(text) > 3 || level == 0 || level > 6 {
		return false
	}
	words := strings.Fields(strings.ToLower(rest))
	return len(words) >= 2 && words[0] == "evidence" && words[1] == "contract"
}

// untouched returns the contract of a section whose last line is the footer
// with the hash of what stands before it.
func untouched(body string) (Contract, bool) {
	body, ok := strings.CutPrefix(body, "\n")
	if !ok {
		return Contract{}, false
	}
	i := strings.LastIndex(body, "\n\n"+footerStart)
	if i < 0 {
		return Contract{}, false
	}
	c := NewContract(body[:i])
	if c.Block == "" || strings.TrimRight(body[i+2:], "\r\n") != footer(c.SHA256) {
		return Contract{}, false
	}
	return c, true
}

// cleaned returns a section that someone edited, or that the reference wrote,
// without the lines that a generator put there. The reference took its own
// footers for part of the contract, one more at every build.
func cleaned(body string) string {
	var (
		f fences
		b strings.Builder
	)
	// The last line is the footer even where the contract leaves a fence open.
	body = strings.TrimRight(body, " \t\r\n")
	if i := strings.LastIndexByte(body, '\n') + 1; isFooter(body[i:]) {
		body = body[:i]
	}
	for line := range strings.Lines(body) {
		bare := strings.TrimRight(line, "\r\n")
		if !f.line(bare) && (isFooter(bare) || strings.HasPrefix(bare, hintStart)) {
			continue
		}
		b.WriteString(line)
	}
	return strings.Trim(b.String(), "\r\n")
}

// isFooter reports whether a line is the footer of some contract.
func isFooter(line string) bool {
	sum, ok := strings.CutPrefix(line, footerStart)
	if !ok {
		return false
	}
	sum, ok = strings.CutSuffix(sum, footerEnd)
	return ok && len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
}

// Fields returns the fields that a contract block has, each with the rest of
// its line, trimmed. A value never crosses a line end; the first line of a
// name counts.
func Fields(block string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.FieldsFunc(block, newline) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for _, known := range FieldNames {
			if _, seen := out[known]; name == known && !seen {
				out[known] = strings.TrimSpace(value)
			}
		}
	}
	return out
}

// Values returns the values of every line of a contract block that gives the
// field, trimmed, in their order.
func Values(block, field string) []string {
	var out []string
	for _, line := range strings.FieldsFunc(block, newline) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == field {
			out = append(out, strings.TrimSpace(value))
		}
	}
	return out
}

func newline(r rune) bool { return r == '\n' || r == '\r' }

// Texts returns the fields that a contract block has, each with its whole text:
// the rest of its line and the indented lines below it.
func Texts(block string) map[string]string {
	out := map[string]string{}
	open := ""
	for line := range strings.Lines(block) {
		bare := strings.TrimRight(line, "\r\n")
		name, value, ok := strings.Cut(bare, ":")
		known := ok && slices.Contains(FieldNames[:], name)
		_, seen := out[name]
		switch {
		case known && !seen:
			open, out[name] = name, strings.TrimSpace(value)
		case !known && open != "" && strings.TrimSpace(bare) != "" && (bare[0] == ' ' || bare[0] == '\t'):
			out[open] = strings.TrimSpace(out[open] + "\n" + strings.TrimSpace(bare))
		default:
			open = ""
		}
	}
	return out
}

// SetFields returns the block with the given fields, by name, put in the place
// of those that it has, or added in their order. A value of several lines is
// continued with indented lines, so that none of them is taken for a field.
func SetFields(block string, fields map[string]string) string {
	var b strings.Builder
	given := map[string]bool{}
	skipping := false
	for line := range strings.Lines(block) {
		bare := strings.TrimRight(line, "\r\n")
		name, _, isField := strings.Cut(bare, ":")
		value, replaced := fields[name]
		switch {
		case isField && replaced:
			skipping = true
			if !given[name] {
				given[name] = true
				b.WriteString(fieldLines(name, value))
			}
		case skipping && strings.TrimSpace(bare) != "" && (bare[0] == ' ' || bare[0] == '\t'):
		default:
			skipping = false
			b.WriteString(bare + "\n")
		}
	}
	for _, name := range FieldNames {
		if value, ok := fields[name]; ok && !given[name] {
			b.WriteString(fieldLines(name, value))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func fieldLines(name, value string) string {
	lines := strings.FieldsFunc(strings.ToValidUTF8(strings.TrimSpace(value), "\ufffd"), newline)
	text := strings.Join(lines, "\n  ")
	return strings.TrimRight(name+": "+text, " ") + "\n"
}

// Generated returns how much of a brief of ours, from its start, is made by
// this package: everything up to the body of the contract section.
func Generated(brief []byte) int {
	if ours, start, _ := findContract(string(brief)); ours && start >= 0 {
		return start
	}
	return len(brief)
}
