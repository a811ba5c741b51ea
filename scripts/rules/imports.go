package rules

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// checkImports holds sources to the law and the bans. module is the path that
// our own imports begin with. A finding is one line for people.
func checkImports(sources []source, module string) []string {
	var out []string
	for _, s := range sources {
		r, own, ok := roomOf(s.folder())
		if !ok {
			out = append(out, fmt.Sprintf("%s: the folder %s is not in the law", s.name, s.folder()))
			continue
		}
		for _, imported := range s.imports {
			if to, ours := strings.CutPrefix(imported, module+"/"); ours {
				if !allowed(s, r, own, to) {
					out = append(out, fmt.Sprintf("%s imports %s: %s may import %s (%s)", s.name, to, own, list(r.may), r.reason))
				}
				continue
			}
			for _, b := range bans {
				if !s.isTest() && s.folder() != conformance && covers(b.folder+"/...", s.folder()) && covers(b.path, imported) {
					out = append(out, fmt.Sprintf("%s imports %s: %s", s.name, imported, b.reason))
				}
			}
		}
	}
	return append(out, checkFormats(sources, module)...)
}

// roomOf returns the room that folder belongs to, and the folder within which
// its packages are at home.
func roomOf(folder string) (r room, own string, ok bool) {
	for _, candidate := range law {
		if covers(candidate.folder+"/...", folder) && len(candidate.folder) > len(r.folder) {
			r, own, ok = candidate, candidate.folder, true
		}
	}
	if r.folder == "engine/harness" && folder != r.folder {
		format, _, _ := strings.Cut(strings.TrimPrefix(folder, "engine/harness/"), "/")
		i := slices.IndexFunc(law, func(r room) bool { return r.folder == anyFormat })
		return law[i], "engine/harness/" + format, true
	}
	return r, own, ok
}

func allowed(s source, r room, own, to string) bool {
	if covers(own+"/...", to) {
		// The contract's folder holds the formats, which are not at home in it.
		if own != "engine/harness" || to == own {
			return true
		}
	}
	if slices.ContainsFunc(r.may, func(m string) bool { return covers(m, to) }) {
		return true
	}
	if s.isExternal() && (covers("engine/...", s.folder()) || covers("policy/...", s.folder())) {
		return covers("engine/...", to)
	}
	return s.isTest() && r.folder == anyFormat && to == "engine/harness/harnesstest"
}

// checkFormats holds engine/harness/all to being complete and alone.
func checkFormats(sources []source, module string) []string {
	var out []string
	formats := map[string]bool{}     // folder -> listed by all
	several := map[string][]string{} // folder -> formats it imports
	hasList := false
	for _, s := range sources {
		if s.isTest() {
			continue
		}
		if r, own, ok := roomOf(s.folder()); ok && r.folder == anyFormat {
			formats[own] = formats[own] || false
		}
		hasList = hasList || s.folder() == "engine/harness/all"
	}
	for _, s := range sources {
		for _, imported := range s.imports {
			to, ours := strings.CutPrefix(imported, module+"/")
			if _, isFormat := formats[to]; s.isTest() || !ours || !isFormat {
				continue
			}
			if s.folder() == "engine/harness/all" {
				formats[to] = true
			} else if !slices.Contains(several[s.folder()], to) {
				several[s.folder()] = append(several[s.folder()], to)
			}
		}
	}
	for folder, to := range several {
		if len(to) > 1 {
			out = append(out, fmt.Sprintf("%s imports %s: only engine/harness/all imports more than one format", folder, list(to)))
		}
	}
	for folder, listed := range formats {
		if hasList && !listed {
			out = append(out, fmt.Sprintf("engine/harness/all does not import %s: a format that is not listed is never used", folder))
		}
	}
	sort.Strings(out)
	return out
}

func list(folders []string) string {
	if len(folders) == 0 {
		return "nothing of ours"
	}
	return strings.Join(folders, ", ")
}
