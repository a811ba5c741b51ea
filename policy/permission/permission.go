// Package permission decides what may be touched: a policy, the risk of an
// operation and where its target really is make a verdict. It opens a file only
// after the verdict allowed it, and then exactly the file that was judged. It
// never executes, never writes, and never asks anybody.
package permission

import (
	"handoffd/engine/fault"
)

// Risk is the class of an operation, as the caller declares it.
type Risk string

// The risks that the built-in policy knows. A policy may name others.
const (
	R0 Risk = "R0" // read
	R1 Risk = "R1" // write in the workspace
	R2 Risk = "R2" // network or another external effect
	R3 Risk = "R3" // delete or overwrite
	R4 Risk = "R4" // what cannot be undone
)

// Level is what a risk amounts to, and what a policy grants.
type Level string

// The levels.
const (
	DiscoveryOnly  Level = "DISCOVERY_ONLY"
	ReadOnly       Level = "READ_ONLY"
	WorkspaceWrite Level = "WORKSPACE_WRITE"
	ExternalEffect Level = "EXTERNAL_EFFECT"
	Destructive    Level = "DESTRUCTIVE"
	Irreversible   Level = "IRREVERSIBLE"
)

// Reads reports whether the level changes nothing.
func (l Level) Reads() bool { return l == DiscoveryOnly || l == ReadOnly }

// Class says what kind of place a target is in.
type Class string

// The classes, in the order in which they are tried. Unplaced is an operation
// without a target.
const (
	Unplaced          Class = ""
	DeniedRoot        Class = "DENIED_ROOT"
	ApprovedWorkspace Class = "APPROVED_WORKSPACE"
	PersonalDataPath  Class = "PERSONAL_DATA_PATH"
	SystemPath        Class = "SYSTEM_PATH"
	ExternalPath      Class = "EXTERNAL_PATH"
)

// Verdict is the outcome.
type Verdict string

// The verdicts.
const (
	Allowed   Verdict = "ALLOWED"
	Denied    Verdict = "DENIED"
	NeedsAuth Verdict = "NEEDS_AUTH"
)

// Grants that have a meaning; any other denies.
const (
	GrantAllow     = "allow"
	GrantNeedsAuth = "needs_auth"
)

// Decision is a verdict with its reason. Level is "" for a risk that the
// policy does not know; Classification is "" where nothing was classified.
type Decision struct {
	Verdict        Verdict
	Reason         string
	Risk           Risk
	Level          Level
	Classification Class
}

// Allowed reports whether the operation may run.
func (d Decision) Allowed() bool { return d.Verdict == Allowed }

// Err is nil for what is allowed, else the refusal: fault.Denied or
// fault.NeedsAuth.
func (d Decision) Err() error {
	switch d.Verdict {
	case Allowed:
		return nil
	case NeedsAuth:
		return fault.New(fault.NeedsAuth, "%s", d.Reason).WithHint("a policy that grants it authorizes it; see: handoffctl runtime policy")
	}
	return fault.New(fault.Denied, "%s", d.Reason).WithHint("see what the policy says with: handoffctl runtime policy")
}

// Decide is the verdict table. It is pure. The reasons are those of the
// published engine (github.com/Alot1z/agent-handoff, tools/runtime-engine.mjs
// 1.1.0), with one difference: a grant for reading is looked at too, so that
// a policy that takes it away is obeyed for targets as well.
func Decide(p Policy, risk Risk, class Class) Decision {
	level, known := p.RiskToLevel[risk]
	d := Decision{Verdict: Denied, Risk: risk, Level: level, Classification: class}
	if !known || level == "" {
		d.Level = ""
		d.Reason = `unknown risk class "` + string(risk) + `" (default denial)`
		return d
	}
	switch {
	case class == DeniedRoot || class == PersonalDataPath:
		d.Reason = "target classified " + string(class) + " — denied at any risk level"
		return d
	case class == Unplaced || class == ApprovedWorkspace:
	case level.Reads() && class == SystemPath:
	case level.Reads():
		d.Reason = string(class) + " not readable at " + string(risk)
		return d
	default:
		d.Reason = string(class) + " outside approved workspace — writes/effects only inside workspace"
		return d
	}
	grant, given := p.Grants[level]
	switch {
	case grant == GrantAllow && level.Reads() && class != Unplaced:
		d.Verdict, d.Reason = Allowed, string(class)+" read at "+string(risk)
	case grant == GrantAllow:
		d.Verdict, d.Reason = Allowed, string(level)+" granted at "+string(risk)
	case grant == GrantNeedsAuth:
		d.Verdict, d.Reason = NeedsAuth, string(level)+" requires explicit authorization at "+string(risk)
	default:
		if !given {
			grant = "undefined"
		}
		d.Reason = `unknown grant "` + grant + `" for ` + string(level) + " (default denial)"
	}
	if class == Unplaced && d.Verdict != Denied {
		d.Classification = ApprovedWorkspace
	}
	return d
}
