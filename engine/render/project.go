package render

import (
	"fmt"
	"strings"
	"time"

	"handoffd/engine/sanitize"
)

// ProjectPage returns the beginning of PROJECT.md; suggested is a name from
// SuggestName or "".
func ProjectPage(project, suggested string) []byte {
	page := "# Project: " + inline(project, 128) + "\n\n<!-- suggested-title: replace me -->\n"
	if suggested != "" {
		page += "<!-- suggested-session-name: " + marker(suggested) + " -->\n"
	}
	return []byte(page + "\n## Sessions\n\n")
}

// ProjectLine returns the line of a session in PROJECT.md, newline included.
func ProjectLine(session string, turns, revision int, objective string) string {
	return fmt.Sprintf("- session %s (turns=%d, rev=%d) :: %s\n", inline(session, 128), turns, revision, sanitize.Cell(objective, 80))
}

// LinkPage returns the beginning of links/<project>.md.
func LinkPage(project string) []byte {
	return []byte("# Cross-links: " + inline(project, 128) + "\n\nRelated sessions from other projects:\n")
}

// LinkMarker returns the comment that tells whether a session is on a page
// already. dir is the name of its directory.
func LinkMarker(project, dir string) string {
	return "<!-- xlink:" + marker(project) + "/" + marker(dir) + " -->"
}

// LinkNote returns the line of a related session, newline included.
func LinkNote(at time.Time, project, dir string, overlap float64, objective string) string {
	return fmt.Sprintf("- [%s] related: projects/%s/%s (overlap=%.2f) :: %s %s\n",
		at.UTC().Format("2006-01-02T15:04:05.000Z"), inline(project, 128), inline(dir, 160), overlap,
		sanitize.Cell(objective, 100), LinkMarker(project, dir))
}

// MergeMarker returns the comment that tells whether a merge is noted on a
// page already. dir is the name of its directory.
func MergeMarker(dir string) string { return "<!-- merged:" + marker(dir) + " -->" }

// MergeNote returns the line of a merge, newline included.
func MergeNote(at time.Time, project, dir string, turns int) string {
	return fmt.Sprintf("- [%s] merged: projects/%s/%s (%d turns) %s\n",
		at.UTC().Format("2006-01-02T15:04:05.000Z"), inline(project, 128), inline(dir, 160), turns, MergeMarker(dir))
}

// marker returns s as text inside an HTML comment, which nothing escapes:
// what is not safe there is written as its code.
func marker(s string) string {
	var b strings.Builder
	prev := rune(0)
	for _, r := range s {
		safe := r == '_' || r == '.' || r == '+' || r == '-' && prev != '-' ||
			r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if safe {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "%%%02X", r)
		}
		prev = r
	}
	return b.String()
}

// stopwords are common words that say nothing about a subject.
var stopwords = wordSet(`about after again all also and any are because been before being between
both but can cannot could did does doing done down each else even every fine first for from further
get give going have having here hers high his how into its itself just keep know later least less like
line lines look made make makes many may more most much must need needs next now off once one only
onto other our ours out over own part please rather really same see set shall should show since some
still such sure take than thank thanks that the their theirs them then there these they thing things
this those though through too toward try under until upon use used using very want wants was well
went were what when where which while who whom whose why will with within without work would yes yet
you your yours`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// keywords returns the distinct keywords of s in their order: ASCII words of
// four characters or more that are no stopwords.
func keywords(s string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range strings.FieldsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		w = strings.ToLower(w)
		if len(w) >= 4 && !stopwords[w] && !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

// minKeywords is how many keywords an objective must have to be related to
// anything.
const minKeywords = 3

// KeywordsOverlap returns the Jaccard index of the keywords of an objective
// and of another text, 0 for an objective that says too little.
func KeywordsOverlap(objective, other string) float64 {
	a, b := keywords(objective), keywords(other)
	if len(a) < minKeywords {
		return 0
	}
	inB := make(map[string]bool, len(b))
	for _, w := range b {
		inB[w] = true
	}
	common := 0
	for _, w := range a {
		if inB[w] {
			common++
		}
	}
	return float64(common) / float64(len(a)+len(b)-common)
}

// SuggestName returns a readable name for a session whose id says nothing,
// "" for another id or an objective without keywords. created is RFC 3339.
func SuggestName(session, created, objective string) string {
	words := keywords(objective)
	if !opaque(session) || len(words) == 0 || len(created) < 10 {
		return ""
	}
	for i, w := range words {
		words[i] = w[:min(len(w), 20)]
	}
	return strings.Join(append([]string{marker(created[:10])}, words[:min(3, len(words))]...), "-")
}

// SuggestRetitle returns the command that gives a session the suggested name,
// "" when there is none.
func SuggestRetitle(session, created, objective string) string {
	name := SuggestName(session, created, objective)
	if name == "" {
		return ""
	}
	return "handoffctl retitle " + session[:min(12, len(session))] + " " + name
}

// opaque reports whether an id is made by a machine: one that begins like a
// UUID, or up to four letters and four digits or more.
func opaque(id string) bool {
	if len(id) > 12 && id[8] == '-' && strings.Trim(id[:8]+id[9:13], "0123456789abcdefABCDEF") == "" {
		return true
	}
	digits := strings.TrimLeft(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	letters := len(id) - len(digits)
	return letters >= 1 && letters <= 4 && len(digits) >= 4 && strings.Trim(digits, "0123456789") == ""
}
