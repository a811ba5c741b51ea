package mutation

import (
	"path"
	"strings"
)

// Hits reports whether the command changes a protected place of the project
// at root. A program that nobody knows is only held to the places themselves,
// not to the directory above them.
func (t Touch) Hits(root string) bool {
	for _, word := range braces(t.Word, 0) {
		if t.hits(root, word) {
			return true
		}
	}
	return false
}

func (t Touch) hits(root, word string) bool {
	dir := t.Dir
	if dir == "" {
		dir = root
	}
	rel, ok := Relative(root, dir, word)
	if !ok {
		above, holds := Relative(word, "/", root)
		return t.All && holds && above != "" && absolute(slashed(word))
	}
	if rel == "." {
		return t.All
	}
	cover := Place(rel)
	if cover == Apart && strings.ContainsAny(rel, "*?[") {
		cover = globbed(rel)
	}
	return cover == Within || cover == Above && t.Whole && !t.Perhaps
}

// globbed is Place for a pattern.
func globbed(pattern string) Cover {
	parts := strings.Split(strings.ToLower(pattern), "/")
	best := Apart
	for _, k := range kept {
		names := strings.Split(k, "/")
		matched := true
		for i := range min(len(parts), len(names)) {
			hidden := names[i][0] == '.' && parts[i] != "" && parts[i][0] != '.'
			if ok, err := path.Match(parts[i], names[i]); err != nil || !ok || hidden {
				matched = false
				break
			}
		}
		switch {
		case matched && len(parts) >= len(names):
			return Within
		case matched:
			best = Above
		}
	}
	return best
}

// maxBraces bounds the words that one word with braces stands for.
const maxBraces = 64

// braces expands {a,b} as bash does (Bash Reference Manual 3.5.1).
func braces(word string, depth int) []string {
	open := strings.IndexByte(word, '{')
	if open < 0 || depth > 6 {
		return []string{word}
	}
	level, start := 0, open+1
	var parts []string
	for i := open; i < len(word); i++ {
		switch word[i] {
		case '{':
			level++
		case ',':
			if level == 1 {
				parts = append(parts, word[start:i])
				start = i + 1
			}
		case '}':
			if level--; level > 0 {
				continue
			}
			if parts == nil {
				return []string{word}
			}
			var out []string
			for _, p := range append(parts, word[start:i]) {
				for _, w := range braces(word[:open]+p+word[i+1:], depth+1) {
					if len(out) < maxBraces {
						out = append(out, w)
					}
				}
			}
			return out
		}
	}
	return []string{word}
}
