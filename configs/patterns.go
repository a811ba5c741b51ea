package configs

import (
	"path"
	"strings"
)

// Patterns choose paths. A pattern that ends in a slash is a directory at any
// depth, with all below it. One with a slash elsewhere is held against the
// whole path, "**" standing for any number of directories. Any other is held
// against the base name. Within a name, * ? and [...] are those of path.Match.
type Patterns []string

// Match reports whether a pattern chooses name, a slash-separated path.
func (p Patterns) Match(name string) bool {
	segments := strings.Split(strings.Trim(name, "/"), "/")
	for _, pattern := range p {
		if matchOne(pattern, segments) {
			return true
		}
	}
	return false
}

func matchOne(pattern string, name []string) bool {
	dir, isDir := strings.CutSuffix(pattern, "/")
	switch {
	case isDir:
		// The last segment is the file itself.
		want := append(append([]string{"**"}, split(dir)...), "**")
		return matchSegments(want, name[:len(name)-1])
	case strings.Contains(pattern, "/"):
		return matchSegments(split(pattern), name)
	default:
		return matchName(pattern, name[len(name)-1])
	}
}

func split(pattern string) []string { return strings.Split(strings.Trim(pattern, "/"), "/") }

// matchSegments goes back to the latest "**" only, which is enough and keeps
// the cost below the product of both lengths.
func matchSegments(pattern, name []string) bool {
	p, n := 0, 0
	star, from := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, from = p, n
			p++
		case p < len(pattern) && matchName(pattern[p], name[n]):
			p++
			n++
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}

func matchName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// malformed reports whether path.Match would refuse a part of pattern.
func malformed(pattern string) bool {
	for _, segment := range split(pattern) {
		if _, err := path.Match(segment, ""); err != nil {
			return true
		}
	}
	return false
}
