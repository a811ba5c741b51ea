package mutation

import (
	"path"
	"strings"
)

// The places of the published tool's files, from the root of the project,
// with slashes.
const (
	Ledger         = ".adlc"
	Handoffs       = ".adlc/handoffs"
	Sentinel       = ".adlc/.deny-store"
	LegacySentinel = ".adlc/handoffs/.deny-store"
	Denies         = ".adlc/handoffs/denies"
	Content        = ".adlc/handoffs/content"
)

// kept are the places that no session changes by itself.
var kept = []string{Handoffs, Sentinel}

// Cover says how a place stands to those that are protected.
type Cover int

// How a place stands to the protected ones.
const (
	Apart  Cover = iota
	Above        // it holds protected ones: the ledger's directory
	Within       // it is one or lies in one
)

// Place returns how a path stands to the protected places. rel is from the
// root, with slashes of either kind; the root itself and what is above it
// hold everything and protect nothing. Letter case is ignored, since there are
// disks that do.
func Place(rel string) Cover {
	rel = strings.ToLower(path.Clean(strings.ReplaceAll(rel, `\`, "/")))
	for _, k := range kept {
		if rel == k || strings.HasPrefix(rel, k+"/") {
			return Within
		}
	}
	if rel == Ledger {
		return Above
	}
	return Apart
}

// Relative returns a path as it is from the root: target is absolute or from
// dir, which is absolute. ok is false for what is not below the root. All
// paths have slashes of either kind.
func Relative(root, dir, target string) (rel string, ok bool) {
	root, dir, target = slashed(root), slashed(dir), slashed(target)
	if !absolute(target) {
		target = dir + "/" + target
	}
	target, root = path.Clean(target), path.Clean(root)
	if target == root {
		return ".", true
	}
	if root != "/" {
		root += "/"
	}
	return strings.CutPrefix(target, root)
}

func slashed(p string) string { return strings.ReplaceAll(p, `\`, "/") }

func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/'
}
