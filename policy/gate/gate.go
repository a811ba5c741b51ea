// Package gate asks everything that decides whether one tool call may change
// something: the bands, the deny store, authorizations, grants and captures.
// It writes nothing for a call that a clean project allows, uses a grant up
// only when nothing else denies, and never lets a call change the store that
// it decides by.
package gate

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"handoffd/policy/capture"
	"handoffd/policy/deny"
	"handoffd/policy/evidence"
	"handoffd/policy/mutation"
	"handoffd/policy/pressure"
	"handoffd/policy/signed"
)

// Tool is what a call does.
type Tool string

// The kinds of tools. Reading is never denied.
const (
	Edit  Tool = "edit"
	Shell Tool = "shell"
	Read  Tool = "read"
)

// Reasons beyond those of the pure gate.
const (
	ReasonEnsure       = "ensure_deny_marker:"
	ReasonTamper       = "capture_tamper:"
	ReasonUnverifiable = "resume_auth_unverifiable:no_manifest_key"
	ReasonUnverified   = "resume_auth_unverified"
	ReasonShell        = "bash_fail_closed_under_deny"
	ReasonCLI          = "bash_handoff_mutating_cli"
	ReasonShellPath    = "path_protected_shell:"
)

// Call is one tool call of a session.
type Call struct {
	Store   deny.Store
	Ledger  evidence.Ledger
	Session string
	Tool    Tool
	Targets []string // from Dir, or absolute
	Command string   // of a shell
	Dir     string   // absolute; where the tool runs
	// Pressure is what may deny of what was measured.
	Pressure pressure.Observation
	Ticket   string // that a new marker is bound to, "" for none
	Host     string // name of the harness, for a new marker
	Key      []byte // nil where nothing can be verified
	// EverDenied says that the caller knows of a deny of this session.
	EverDenied bool
	// Grant is what the host says of a grant: nothing at all makes the gate
	// look by itself, null is none.
	Grant jsontext.Value
	// Own says whether a path is that of Program, which may lead out of a
	// deny; nil for nobody.
	Own     func(path string) bool
	Program string
	// KeyInReach says that the session's own shell has the key: then no
	// command of its own leads out.
	KeyInReach bool
}

// Verdict is what the gate decides.
type Verdict struct {
	Deny    bool     `json:"deny"`
	Reasons []string `json:"reasons"`
	// Ensured says that the session has a marker because of this call.
	Ensured bool `json:"ensuredMarker"`
	// EverDenied is for the next call of the session.
	EverDenied bool `json:"denyEverWritten"`
	// Recovery tells people what leads out, "" when nothing is denied.
	Recovery string `json:"recovery,omitempty"`
}

// reasons are in order and once each.
type reasons []string

func (r *reasons) add(list ...string) {
	for _, x := range list {
		if !slices.Contains(*r, x) {
			*r = append(*r, x)
		}
	}
}

// Decide returns the verdict on a call. A project without a ledger directory
// is none of the gate's.
func Decide(c Call) Verdict {
	v := Verdict{Reasons: []string{}, EverDenied: c.EverDenied}
	if !c.Store.Present() || c.Tool == Read {
		return v
	}
	if c.Tool == Shell && !c.KeyInReach && c.Own != nil && mutation.Recovery(c.Command, c.Session, c.Own) || c.Tool == Shell && c.Command == "pwd" {
		return v
	}
	var why reasons
	for _, t := range c.Targets {
		if r := c.Store.Protects(t, c.Dir); r != "" {
			why.add(r)
		}
	}
	shellPaths := c.shellPaths()
	why.add(c.state(&v, len(why) > 0 || len(shellPaths) > 0)...)
	if c.Tool == Shell && len(why) > 0 {
		why.add(ReasonShell)
		if mutation.MutatingCLI(c.Command) {
			why.add(ReasonCLI)
		}
	}
	why.add(shellPaths...)
	v.Reasons = append(v.Reasons, why...)
	v.Deny = len(why) > 0
	if v.Deny {
		v.Recovery = c.recovery(v.Reasons)
	}
	return v
}

// shellPaths returns the protected places that a command changes.
func (c Call) shellPaths() (why reasons) {
	if c.Tool != Shell {
		return nil
	}
	for _, t := range mutation.Touches(c.Command, filepath.ToSlash(c.Dir)) {
		hit := t.Hits(filepath.ToSlash(c.Store.Root))
		if dir := t.Dir; !hit {
			if dir == "" {
				dir = c.Store.Root
			}
			place := filepath.FromSlash(t.Word)
			if !filepath.IsAbs(place) {
				place = filepath.Join(dir, place)
			}
			cover := c.Store.Leads(place)
			// A link is removed or moved without what it leads to.
			hit = cover == mutation.Within && !(t.Whole && c.link(place)) || cover == mutation.Above && t.Whole && !t.Perhaps && !c.link(place)
		}
		if hit {
			why.add(ReasonShellPath + t.Word)
		}
	}
	return why
}

// state returns what the state of the project has against the call. others
// says that the call is denied anyway, so that no grant is used up for it.
func (c Call) state(v *Verdict, others bool) (why reasons) {
	full := c.Pressure.Bands().Deny()
	l := c.Store.Load()
	if !mutation.SafeID(c.Session) {
		if full || l.Hot() {
			why.add(mutation.ReasonSession)
		}
		return why
	}
	sticky := false
	if full {
		e := c.Store.Ensure(c.Session, deny.Bind(c.Ticket), nil, "", c.Host)
		v.Ensured, v.EverDenied = e.OK, true
		if !e.OK {
			why.add(ReasonEnsure + e.Reason)
			sticky = true
		}
		l = c.Store.Load()
	} else if c.EverDenied {
		m, outcome := c.Store.Read(c.Session)
		if r := deny.Reentry(m, outcome, true); r != "" {
			why.add(r)
		}
	}
	in := l.Input(c.Session)
	in.Sticky = in.Sticky || sticky
	for _, m := range l.Markers {
		v.EverDenied = v.EverDenied || m.Session == c.Session
	}
	auth, hasAuth, authThere := signed.ReadAuth(c.Store, c.Session)
	verified := hasAuth && auth.Verified(c.Key)
	if hasAuth {
		in.Auth = auth.Gate(verified)
	}
	grant, claim := c.grant()
	if in.Auth != nil || grant != nil {
		in.ManifestFailed = c.Ledger.Verify(c.Key) != nil
	}
	tampered := c.tampered(l)
	without := mutation.Gate(in)
	denied := func(list []string) bool { return len(list) > 0 || len(why) > 0 || len(tampered) > 0 }
	if grant != nil && !others && (len(without) > 0) {
		in.Grant = grant
		if with := mutation.Gate(in); !denied(with) && claim() {
			return nil
		} else if denied(with) {
			// The grant is not used up, but what it would lift is not what
			// keeps the session.
			without = append(with, without...)
		}
	}
	why.add(without...)
	why.add(tampered...)
	if len(why) > 0 && authThere && !verified {
		if len(c.Key) == 0 {
			why.add(ReasonUnverifiable)
		} else {
			why.add(ReasonUnverified)
		}
	}
	return why
}

// grant returns the grant of the session and how it is used up.
func (c Call) grant() (*mutation.Grant, func() bool) {
	if len(c.Grant) > 0 {
		return mutation.ParseGrant(c.Grant, c.Session), func() bool { return true }
	}
	g, raw, ok := signed.ReadGrant(c.Store, c.Key, c.Session)
	if !ok {
		return nil, nil
	}
	return g.Gate(), func() bool { return signed.Claim(c.Store, g, raw) }
}

// tampered holds every capture that a record is bound to against its hash.
func (c Call) tampered(l deny.Loaded) (why reasons) {
	for _, m := range l.Markers {
		if m.Kind != mutation.KindCapture {
			continue
		}
		if _, reason := capture.Verify(c.Store.Capture(m.Session), deny.Text(m.Hash)); reason != "" {
			why.add(ReasonTamper + m.Session + ":" + reason)
		}
	}
	return why
}

// recovery says what leads out of the reasons.
func (c Call) recovery(why []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This call may not change anything: %s.\n", strings.Join(why, ", "))
	if !slices.ContainsFunc(why, func(r string) bool { return !strings.HasPrefix(r, "path_protected") }) {
		b.WriteString("The files of the continuity store are changed by its own verbs alone: handoffctl context --help.\n")
		return b.String()
	}
	b.WriteString("Write a handoff summary (state, done, remaining, next, dead ends) as your final message, then stop.\n")
	said := map[string]bool{}
	say := func(verb, what string, flags ...string) {
		command := mutation.RecoveryCommand(c.Program, verb, flags...)
		if command == "" {
			command = "handoffctl context " + verb + " --help (a name here cannot be written as a command)"
		}
		if !said[command] {
			said[command] = true
			b.WriteString(what + ": " + command + "\n")
		}
	}
	for _, r := range why {
		kind, id, _ := strings.Cut(r, ":")
		switch {
		case strings.HasPrefix(r, mutation.ReasonOpen):
			id = strings.TrimPrefix(r, mutation.ReasonOpen)
			if m, outcome := c.Store.Read(id); outcome == deny.OK && !m.Record().Bound() {
				say("repair", "To bind that work to a ticket first, with the key", "session", id, "ticket", "TICKET", "content-hash", "HASH")
			}
			say("continue", "To go on with that work in a new session, with the key", "deny-session", id)
		case strings.HasPrefix(r, mutation.ReasonInvalid):
			say("repair", "To make the record whole, with the key", "session", strings.TrimPrefix(r, mutation.ReasonInvalid), "ticket", "TICKET", "content-hash", "HASH")
		case r == mutation.ReasonUnavailable:
			say("repair --forget", "To give up records that are gone, with the key")
		case kind+":" == ReasonTamper:
			id, _, _ = strings.Cut(id, ":")
			say("repair", "To let go of a lost or edited capture, with the key", "session", id, "ticket", "TICKET", "content-hash", "HASH")
		}
	}
	unlifted := slices.ContainsFunc(why, func(r string) bool {
		return strings.HasPrefix(r, ReasonTamper) || strings.HasPrefix(r, "D1:") || strings.HasPrefix(r, ReasonEnsure)
	})
	switch {
	case c.Session == "":
		b.WriteString("The call names no session; its harness must.\n")
	case !unlifted: // nothing that a grant does not lift is in the way
		say("bypass", "To let one call through, with the key", "session", c.Session)
	}
	return b.String()
}

// Failed is the verdict when the gate itself does not work: a project that
// asked for it is not left open, and another one is not locked.
func Failed(c Call, err error) Verdict {
	v := Verdict{Reasons: []string{}, EverDenied: c.EverDenied}
	if c.Tool == Read || !c.Store.OptedIn() {
		return v
	}
	v.Deny, v.Reasons = true, []string{"gate_error:" + strings.ReplaceAll(err.Error(), "\n", " ")}
	v.Recovery = c.recovery(v.Reasons)
	return v
}
