package verify

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"handoffd/engine/fault"
	"handoffd/engine/render"
	"handoffd/engine/safefile"
	"handoffd/engine/session"
	"handoffd/engine/store"
)

// The verdicts of the evidence gate.
const (
	Verified = "VERIFIED"
	Rejected = "REJECTED"
)

// Verdict is what the evidence gate says of a handoff.
type Verdict struct {
	OK      bool
	Session string
	Project string
	// Checks are sha, counts, payload, contract and evidence, in that order.
	Checks []Check
	// Contract is the one that was judged.
	Contract render.Contract
}

// Word is VERIFIED or REJECTED.
func (v Verdict) Word() string {
	if v.OK {
		return Verified
	}
	return Rejected
}

// Failed names the checks that failed, each with why.
func (v Verdict) Failed() []string {
	var out []string
	for _, c := range v.Checks {
		if c.Result == Fail {
			out = append(out, c.Name+" ("+c.Detail+")")
		}
	}
	return out
}

// Gate runs the five checks of the evidence gate on the session at loc. It
// proves less than Session does, and asks for what that does not: a record of
// the work that says what it rests on. The error is fault.NotFound when there
// is no session.
func Gate(s store.Store, loc store.Location) (Verdict, error) {
	dir := s.SessionDir(loc.Project, loc.Dir)
	raw, err := os.ReadFile(filepath.Join(dir, store.ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return Verdict{}, fault.New(fault.NotFound, "no manifest for %s", loc.Dir)
	} else if err != nil {
		return Verdict{}, fault.New(fault.Internal, "read manifest: %w", err)
	}
	m, err := session.Decode(raw)
	if err != nil {
		m = &session.Manifest{Session: loc.Dir}
	} else {
		err = session.Sealed(raw)
	}
	var r Report
	next := staged(dir, m)
	// A manifest of ours covers what stands beside it, and so its seal does.
	covers := m.Schema > 0
	if err == nil && covers {
		content := Report{next: next}
		content.appended(dir, m)
		content.renders(dir, m)
		err = reason(content.Reason)
	}
	r.add("sha", err, "")
	counted := Report{next: next}
	counted.timeline(dir, m)
	r.add("counts", reason(counted.Reason), "")
	whole := Report{next: next}
	if covers {
		whole.payload(dir, m)
	} else {
		whole.foreignPayload(dir)
	}
	r.add("payload", reason(whole.Reason), "")
	c, err := Written(dir)
	if err == nil {
		err = Complete(c)
	}
	r.add("contract", err, "")
	r.add("evidence", Evidenced(c), "")
	return Verdict{OK: r.Reason == "", Session: m.Session, Project: loc.Project, Checks: r.Checks, Contract: c}, nil
}

func reason(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// Written returns the contract as it stands in the brief, none when there is
// no brief.
func Written(dir string) (render.Contract, error) {
	brief, err := safefile.ReadSmall(filepath.Join(dir, store.BriefName), store.MaxRender)
	if errors.Is(err, fs.ErrNotExist) {
		return render.Contract{}, errors.New(store.BriefName + " missing")
	}
	if err != nil {
		return render.Contract{}, err
	}
	return render.ExtractContract(brief)
}

// Complete says which fields a contract lacks.
func Complete(c render.Contract) error {
	if missing := lacking(c); len(missing) > 0 {
		return errors.New("missing contract fields: " + strings.Join(missing, ", "))
	}
	return nil
}

func lacking(c render.Contract) []string {
	have := render.Fields(c.Block)
	var missing []string
	for _, name := range render.FieldNames {
		if _, ok := have[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// Evidenced refuses a contract that says DONE, in any letter case, without
// words of evidence on the line of that field.
func Evidenced(c render.Contract) error {
	done := false
	for _, value := range render.Values(c.Block, "RESULT") {
		done = done || saysDone(value)
	}
	if !done {
		return nil
	}
	for _, value := range render.Values(c.Block, "EVIDENCE") {
		if substantial(value) {
			return nil
		}
	}
	return errors.New("RESULT is DONE without EVIDENCE")
}

// Ready is the gate of a dispatch: the contract is complete, and does not say
// DONE without evidence. The words are the reference's.
func Ready(c render.Contract) error {
	missing, bare := lacking(c), Evidenced(c) != nil
	if len(missing) == 0 && !bare {
		return nil
	}
	list := "none"
	if len(missing) > 0 {
		list = strings.Join(missing, ", ")
	}
	return fault.New(fault.GateRejected, "handoff fails the evidence gate (missing contract fields: %s; DONE-without-EVIDENCE=%t)", list, bare)
}

// saysDone reports whether the first word of a result is DONE.
func saysDone(value string) bool {
	words := strings.FieldsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return len(words) > 0 && strings.EqualFold(words[0], "done")
}

// placeholders are what stands in a form that nobody filled in.
var placeholders = map[string]bool{
	"none": true, "na": true, "n a": true, "nil": true, "null": true, "tbd": true, "todo": true, "pending": true,
	"empty": true, "not yet": true, "none yet": true, "nothing": true, "no": true, "missing": true, "xxx": true,
}

// blank reports letters that show nothing: the fillers of Hangul.
func blank(r rune) bool { return r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 }

// substantial reports whether a value is more than punctuation or a
// placeholder.
func substantial(value string) bool {
	words := strings.FieldsFunc(strings.ToLower(value), func(r rune) bool { return blank(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return len(words) > 0 && !placeholders[strings.Join(words, " ")]
}
