package permission

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"handoffd/engine/fault"
)

var (
	classes = []Class{Unplaced, DeniedRoot, ApprovedWorkspace, PersonalDataPath, SystemPath, ExternalPath}
	levels  = []Level{DiscoveryOnly, ReadOnly, WorkspaceWrite, ExternalEffect, Destructive, Irreversible, "NEW_LEVEL"}
	grants  = []string{"allow", "needs_auth", "deny", "", "Allow", "ALLOW", "yes", "absent"}
)

func policyOf(level Level, grant string) Policy {
	p := Policy{RiskToLevel: map[Risk]Level{"RX": level}, Grants: map[Level]string{}}
	if grant != "absent" {
		p.Grants[level] = grant
	}
	return p
}

// want is the table of the documents, written down case by case and not
// computed as the code computes it.
func want(class Class, level Level, grant string) (Verdict, string) {
	reading := level == "READ_ONLY" || level == "DISCOVERY_ONLY"
	switch string(class) {
	case "DENIED_ROOT", "PERSONAL_DATA_PATH":
		return "DENIED", "target classified " + string(class) + " — denied at any risk level"
	case "EXTERNAL_PATH":
		if reading {
			return "DENIED", "EXTERNAL_PATH not readable at RX"
		}
		return "DENIED", "EXTERNAL_PATH outside approved workspace — writes/effects only inside workspace"
	case "SYSTEM_PATH":
		if !reading {
			return "DENIED", "SYSTEM_PATH outside approved workspace — writes/effects only inside workspace"
		}
	}
	switch grant {
	case "allow":
		if reading && class != "" {
			return "ALLOWED", string(class) + " read at RX"
		}
		return "ALLOWED", string(level) + " granted at RX"
	case "needs_auth":
		return "NEEDS_AUTH", string(level) + " requires explicit authorization at RX"
	case "absent":
		return "DENIED", `unknown grant "undefined" for ` + string(level) + " (default denial)"
	}
	return "DENIED", `unknown grant "` + grant + `" for ` + string(level) + " (default denial)"
}

func TestMatrix(t *testing.T) {
	n := 0
	for _, class := range classes {
		for _, level := range levels {
			for _, grant := range grants {
				n++
				d := Decide(policyOf(level, grant), "RX", class)
				verdict, reason := want(class, level, grant)
				shown := class
				if class == Unplaced && verdict != Denied {
					shown = ApprovedWorkspace
				}
				if d != (Decision{verdict, reason, "RX", level, shown}) {
					t.Errorf("%q %s %q: %+v\nwant %s, %s, %s", class, level, grant, d, verdict, reason, shown)
				}
			}
		}
	}
	if n != 6*7*8 {
		t.Errorf("%d cases", n)
	}
}

func TestUnknownRisks(t *testing.T) {
	p := Builtin("linux", "/ws", "/home/ada")
	for _, risk := range []Risk{"", "R5", "r0", "R0 ", " R0", "R", "READ_ONLY", "__proto__", "constructor"} {
		for _, class := range classes {
			d := Decide(p, risk, class)
			if d.Verdict != Denied || d.Level != "" || d.Reason != `unknown risk class "`+string(risk)+`" (default denial)` {
				t.Errorf("%q on %q: %+v", risk, class, d)
			}
		}
	}
	p.RiskToLevel["R7"] = ""
	if d := Decide(p, "R7", ApprovedWorkspace); d.Verdict != Denied || d.Level != "" {
		t.Errorf("a risk without a level: %+v", d)
	}
}

// The reasons that the published engine prints.
func TestReasons(t *testing.T) {
	p := Builtin("linux", "/ws", "/home/ada")
	for _, c := range []struct {
		risk   Risk
		class  Class
		reason string
		exit   int
	}{
		{"R0", ApprovedWorkspace, "APPROVED_WORKSPACE read at R0", 0},
		{"R0", SystemPath, "SYSTEM_PATH read at R0", 0},
		{"R1", ApprovedWorkspace, "WORKSPACE_WRITE granted at R1", 0},
		{"R2", ApprovedWorkspace, "EXTERNAL_EFFECT requires explicit authorization at R2", 4},
		{"R3", Unplaced, "DESTRUCTIVE requires explicit authorization at R3", 4},
		{"R4", Unplaced, "IRREVERSIBLE requires explicit authorization at R4", 4},
		{"R0", ExternalPath, "EXTERNAL_PATH not readable at R0", 3},
		{"R1", SystemPath, "SYSTEM_PATH outside approved workspace — writes/effects only inside workspace", 3},
		{"R4", PersonalDataPath, "target classified PERSONAL_DATA_PATH — denied at any risk level", 3},
		{"R0", DeniedRoot, "target classified DENIED_ROOT — denied at any risk level", 3},
	} {
		d := Decide(p, c.risk, c.class)
		if d.Reason != c.reason || fault.ExitOf(d.Err()) != c.exit {
			t.Errorf("%s on %s: %q ends with %d\nwant %q, %d", c.risk, c.class, d.Reason, fault.ExitOf(d.Err()), c.reason, c.exit)
		}
	}
}

// A model: whatever the policy says, what it does not say is denied, and no
// grant outweighs a denied class.
func TestDecideModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.SampledFrom(append([]Level{""}, levels...))
		p := Policy{
			Grants:      rapid.MapOf(level, rapid.OneOf(rapid.SampledFrom(grants), rapid.String())).Draw(t, "grants"),
			RiskToLevel: rapid.MapOf(rapid.SampledFrom([]Risk{"R0", "R1", "R2", ""}), level).Draw(t, "risks"),
		}
		risk := rapid.SampledFrom([]Risk{"R0", "R1", "R2", "R3", ""}).Draw(t, "risk")
		class := rapid.SampledFrom(classes).Draw(t, "class")
		d := Decide(p, risk, class)
		reading := slices.Contains([]Level{DiscoveryOnly, ReadOnly}, p.RiskToLevel[risk])
		may := class == Unplaced || class == ApprovedWorkspace || class == SystemPath && reading
		granted := p.RiskToLevel[risk] != "" && p.Grants[p.RiskToLevel[risk]] == "allow"
		asks := p.RiskToLevel[risk] != "" && p.Grants[p.RiskToLevel[risk]] == "needs_auth"
		switch {
		case may && granted && d.Verdict != Allowed, may && asks && d.Verdict != NeedsAuth, (!may || !granted && !asks) && d.Verdict != Denied:
			t.Fatalf("%s on %q under %+v: %+v", risk, class, p, d)
		case d.Reason == "" || d.Risk != risk:
			t.Fatalf("%+v says nothing", d)
		case (d.Err() == nil) != (d.Verdict == Allowed):
			t.Fatalf("%+v: %v", d, d.Err())
		}
	})
}
