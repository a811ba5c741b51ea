package aider

import (
	"slices"
	"strings"

	"handoffd/engine/turn"
)

// The marks of a block that replaces text.
const (
	searchMark  = "<<<<<<< SEARCH"
	replaceMark = ">>>>>>> REPLACE"
)

// answer hands out what the model said. Fenced blocks that change files are
// calls of a tool; the line that names the file stands before the fence, or
// inside it.
func (d *decoder) answer(lines []string) {
	var prose []string
	speak := func() {
		if text := strings.TrimSpace(strings.Join(prose, "\n")); text != "" {
			d.emit(turn.Turn{Class: turn.Agent, Text: text})
		}
		prose = nil
	}
	last := ""
	for i := 0; i < len(lines); {
		if !strings.HasPrefix(strings.TrimSpace(lines[i]), fence) {
			prose = append(prose, lines[i])
			i++
			continue
		}
		end := closing(lines, i)
		block := lines[i:min(end+1, len(lines))]
		files, named := edits(block, prose)
		if files == nil && replaces(block) && last != "" {
			files = []string{last}
		}
		if files == nil || end == len(lines) { // prose, or cut short
			prose = append(prose, block...)
			i += len(block)
			continue
		}
		text := block
		if named {
			at := lastLine(prose)
			text = append([]string{prose[at]}, block...)
			prose = prose[:at]
		}
		speak()
		last = files[len(files)-1]
		for _, file := range files {
			if !slices.Contains(d.Proposed, file) {
				d.Proposed = append(d.Proposed, file)
			}
		}
		d.emit(turn.Turn{Class: turn.ToolUse, Text: strings.TrimSpace("tool_call edit\n" + strings.Join(text, "\n")), Tool: &turn.Tool{
			Phase: turn.Call, Name: "edit", Edits: files,
		}})
		i += len(block)
	}
	speak()
}

// closing is the line that ends the block that opens at i; it is len(lines) for
// one that is cut short. What a block puts into a file may hold fences too.
func closing(lines []string, i int) int {
	inside := false
	for n := i + 1; n < len(lines); n++ {
		switch s := strings.TrimSpace(lines[n]); {
		case s == searchMark:
			inside = true
		case s == replaceMark:
			inside = false
		case !inside && s == fence:
			return n
		}
	}
	if inside {
		// Without its end nobody knows what the block was.
		for n := i + 1; n < len(lines); n++ {
			if strings.TrimSpace(lines[n]) == fence {
				return n
			}
		}
	}
	return len(lines)
}

func replaces(block []string) bool {
	return slices.ContainsFunc(block, func(s string) bool { return strings.TrimSpace(s) == searchMark }) &&
		slices.ContainsFunc(block, func(s string) bool { return strings.TrimSpace(s) == replaceMark })
}

// edits are the files that a block changes, nil for one that changes none;
// named says that the line before the block named the file.
func edits(block, before []string) (files []string, named bool) {
	if replaces(block) {
		if file := fileName(block[1]); file != "" && strings.TrimSpace(block[1]) != searchMark {
			return []string{file}, false
		}
		if at := lastLine(before); at >= 0 {
			if file := fileName(before[at]); file != "" {
				return []string{file}, true
			}
		}
		return nil, false
	}
	if strings.TrimSpace(block[0]) != fence+"diff" {
		return nil, false
	}
	for i := range block {
		// A file that is deleted has no new name.
		name, ok := strings.CutPrefix(block[i], "+++ ")
		if !ok || i == 0 || !strings.HasPrefix(block[i-1], "--- ") {
			continue
		}
		if strings.TrimSpace(name) == "/dev/null" {
			name = strings.TrimPrefix(block[i-1], "--- ")
		}
		name, _, _ = strings.Cut(strings.TrimSpace(name), "\t")
		if file := strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/"); file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files, false
}

// lastLine is the index of the last line with text, -1 without one.
func lastLine(lines []string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimSpace(lines[i]) != "" {
			return i
		}
	}
	return -1
}

// fileName is the file that a line names alone, as models decorate it, or "".
func fileName(line string) string {
	s := strings.TrimSpace(line)
	s = strings.TrimSpace(strings.TrimPrefix(s, "#"))
	s = strings.Trim(s, "*`")
	s = strings.TrimSuffix(s, ":")
	s = strings.Trim(s, "*`")
	if s == "" || len(s) > 255 || strings.ContainsAny(s, "<>|\"{}();=") || strings.HasPrefix(s, "```") {
		return ""
	}
	if strings.ContainsAny(s, " \t") && !strings.ContainsAny(s, `/\`) || strings.HasSuffix(s, ".") || !strings.ContainsAny(s, `./\`) && strings.Contains(s, " ") {
		return ""
	}
	return s
}
