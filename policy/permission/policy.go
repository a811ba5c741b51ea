package permission

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"handoffd/engine/fault"
	"handoffd/engine/safefile"
)

// FileName is the policy that a workspace may hold.
const FileName = "permission-policy.json"

// maxPolicy bounds a policy file, in bytes.
const maxPolicy = 1 << 20

// SchemaVersion is that of the published policy files.
const SchemaVersion = "1.0-permission-policy"

// Defaults of what a policy need not say.
const (
	DefaultProgram        = "node"
	DefaultMaxOutputBytes = 16 << 20
	DefaultRecords        = 1000
	DefaultDays           = 30
)

// Policy is a permission policy as it is written. Relative roots are meant
// from the workspace, "~" is the home directory.
type Policy struct {
	SchemaVersion       string           `json:"schema_version"`
	ApprovedWorkspaces  []string         `json:"approved_workspaces"`
	SystemReadOnlyRoots []string         `json:"system_read_only_roots"`
	PersonalDataRoots   []string         `json:"personal_data_roots"`
	DeniedRoots         []string         `json:"denied_roots"`
	Grants              map[Level]string `json:"grants"`
	RiskToLevel         map[Risk]Level   `json:"risk_to_level"`
	// Program is what spawn runs: a name that is looked up once, or a path.
	Program string `json:"program"`
	// MaxOutputBytes is how much of each output stream of a child is counted
	// and hashed.
	MaxOutputBytes int64     `json:"max_output_bytes"`
	Retention      Retention `json:"retention"`
	// NamedTargets says whether what a user names on a command line is
	// thereby approved.
	NamedTargets Naming `json:"named_targets"`
}

// Retention is what is kept of decision records: the newest Records, none
// older than Days.
type Retention struct {
	Records int `json:"records"`
	Days    int `json:"days"`
}

// Naming is what naming a target on a command line means.
type Naming string

// The namings: NamedAllow approves a named target unless it lies in a denied
// root; NamedClassify judges it like any other.
const (
	NamedAllow    Naming = "allow"
	NamedClassify Naming = "classify"
)

// wire is a policy file: everything may be absent, so that absence and null
// can be told apart from a value.
type wire struct {
	Schema              *string            `json:"$schema"`
	SchemaVersion       *string            `json:"schema_version"`
	ApprovedWorkspaces  []*string          `json:"approved_workspaces"`
	SystemReadOnlyRoots []*string          `json:"system_read_only_roots"`
	PersonalDataRoots   []*string          `json:"personal_data_roots"`
	DeniedRoots         []*string          `json:"denied_roots"`
	Grants              map[Level]*string  `json:"grants"`
	RiskToLevel         map[Risk]*Level    `json:"risk_to_level"`
	Program             *string            `json:"program"`
	MaxOutputBytes      *int64             `json:"max_output_bytes"`
	Retention           *map[string]*int64 `json:"retention"`
	NamedTargets        *Naming            `json:"named_targets"`
	// Resolved is what "runtime policy" adds for its reader. It says nothing
	// to us, but a policy that was printed must be one that can be read.
	Resolved jsontext.Value `json:"resolved"`
}

// Load reads a policy file. Every failure is fault.Config.
func Load(path string) (Policy, error) {
	raw, err := safefile.ReadSmall(path, maxPolicy)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Policy{}, fault.New(fault.Config, "policy not found: %s", path)
	case err != nil:
		return Policy{}, fault.New(fault.Config, "policy cannot be read: %s (%w)", path, err)
	}
	p, err := Parse(raw)
	var bad *invalid
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, errMissing):
		return Policy{}, fault.New(fault.Config, "%w: %s", err, path)
	case errors.As(err, &bad):
		return Policy{}, fault.New(fault.Config, "policy invalid: %s (%w)", path, err)
	}
	return Policy{}, fault.New(fault.Config, "policy invalid JSON: %s (%w)", path, err)
}

var errMissing = errors.New("policy missing grants/risk_to_level")

// invalid is JSON that says what no policy says.
type invalid struct{ text string }

// Error implements error.
func (i *invalid) Error() string { return i.text }

// Parse reads a policy: one JSON object, no duplicate and no unknown key, every
// value of its type. What is absent has its default; grants and risk_to_level
// must be there.
func Parse(raw []byte) (Policy, error) {
	var w wire
	var present map[string]jsontext.Value
	if err := json.Unmarshal(raw, &present); err != nil {
		return Policy{}, err
	}
	if present == nil {
		return Policy{}, &invalid{"a policy is a JSON object"}
	}
	for name, v := range present {
		if v.Kind() == 'n' {
			if name == "grants" || name == "risk_to_level" {
				return Policy{}, errMissing
			}
			return Policy{}, &invalid{name + " is null"}
		}
	}
	if err := json.Unmarshal(raw, &w, json.RejectUnknownMembers(true)); err != nil {
		return Policy{}, &invalid{err.Error()}
	}
	if w.Grants == nil || w.RiskToLevel == nil {
		return Policy{}, errMissing
	}
	return w.policy()
}

func (w wire) policy() (Policy, error) {
	p := Policy{
		SchemaVersion: SchemaVersion, Program: DefaultProgram, MaxOutputBytes: DefaultMaxOutputBytes,
		Retention: Retention{DefaultRecords, DefaultDays}, NamedTargets: NamedClassify,
		Grants: map[Level]string{}, RiskToLevel: map[Risk]Level{},
	}
	if w.SchemaVersion != nil && *w.SchemaVersion != SchemaVersion {
		return p, &invalid{"schema_version is " + *w.SchemaVersion + ", not " + SchemaVersion}
	}
	for _, list := range []struct {
		name string
		from []*string
		to   *[]string
	}{
		{"approved_workspaces", w.ApprovedWorkspaces, &p.ApprovedWorkspaces},
		{"system_read_only_roots", w.SystemReadOnlyRoots, &p.SystemReadOnlyRoots},
		{"personal_data_roots", w.PersonalDataRoots, &p.PersonalDataRoots},
		{"denied_roots", w.DeniedRoots, &p.DeniedRoots},
	} {
		*list.to = []string{}
		for _, s := range list.from {
			if s == nil || *s == "" || strings.ContainsRune(*s, 0) {
				return p, &invalid{"a root of " + list.name + " is empty, null or holds a NUL"}
			}
			*list.to = append(*list.to, *s)
		}
	}
	for level, grant := range w.Grants {
		if grant == nil {
			return p, &invalid{"the grant of " + string(level) + " is null"}
		}
		p.Grants[level] = *grant
	}
	for risk, level := range w.RiskToLevel {
		if level == nil {
			return p, &invalid{"the level of " + string(risk) + " is null"}
		}
		p.RiskToLevel[risk] = *level
	}
	return p, w.extras(&p)
}

// extras reads what the published policy files do not have.
func (w wire) extras(p *Policy) error {
	if w.Program != nil {
		if strings.TrimSpace(*w.Program) == "" || strings.ContainsRune(*w.Program, 0) {
			return &invalid{"program is empty"}
		}
		p.Program = *w.Program
	}
	if w.MaxOutputBytes != nil {
		if *w.MaxOutputBytes < 1 {
			return &invalid{"max_output_bytes is below 1"}
		}
		p.MaxOutputBytes = *w.MaxOutputBytes
	}
	if w.Retention != nil {
		for key, n := range *w.Retention {
			if !slices.Contains([]string{"records", "days"}, key) {
				return &invalid{`unknown key "` + key + `" in retention`}
			}
			if n == nil || *n < 1 || *n > 1<<30 {
				return &invalid{"retention." + key + " is not a whole number from 1 to 2^30"}
			}
			if key == "records" {
				p.Retention.Records = int(*n)
			} else {
				p.Retention.Days = int(*n)
			}
		}
	}
	if w.NamedTargets != nil {
		if *w.NamedTargets != NamedAllow && *w.NamedTargets != NamedClassify {
			return &invalid{"named_targets is neither allow nor classify"}
		}
		p.NamedTargets = *w.NamedTargets
	}
	return nil
}
